#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# demo.sh ROOT: four shell workers and a C program add to the number in a file, first under a lock,
# then with two C programs that retain it, then without. One shell worker is killed while it holds
# the lock. ROOT is the top of a built tree. The server is an embedded one: the first of them starts
# it. Exit code 0: everything was as promised.
#
# Other binaries can be named by REDLATCH_BIN and DEMO_COUNTER.
set -u

lock=demo:counter
ttl_ms=1500
shell_times=10  # Of each of the four.
c_times=40
retain=5s
expected=$((4 * shell_times + c_times))
unlocked_tries=3

# ---- one increment, as a command that runs under the lock ----------------------------------------

step() {
  local who=$1 began=${EPOCHREALTIME/[.,]/} count
  read -r count <"$DEMO_DIR/count"
  if [ -n "${DEMO_DIE:-}" ]; then
    # It has read and not yet written: say who is to be killed, and wait for it.
    echo "$began $REDLATCH_FENCE $who $((10#$count)) $REDLATCH_PID" >"$DEMO_DIR/victim.new"
    mv "$DEMO_DIR/victim.new" "$DEMO_DIR/victim"
    exec sleep 60
  fi
  sleep 0.01
  # Without emptying the file first: nobody may read half a number even when there is no lock.
  printf '%08d\n' $((10#$count + 1)) 1<>"$DEMO_DIR/count"
  echo "$began ${EPOCHREALTIME/[.,]/} ${REDLATCH_FENCE:-0} $who $((10#$count)) $((10#$count + 1))" \
    >>"$DEMO_DIR/log"
}

if [ "${1:-}" = --step ]; then
  step "$2"
  exit
fi

# ---- what we need --------------------------------------------------------------------------------

fail() {
  echo "demo: $*" >&2
  exit 1
}

root=${1:-}
[ -n "$root" ] || fail "usage: demo.sh ROOT"

first_executable() {
  local candidate
  for candidate in "$@"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      echo "$candidate"
      return
    fi
  done
}

redlatch=$(first_executable "${REDLATCH_BIN:-}" "$root"/build/{release,dev}/cli/redlatch)
counter=$(first_executable "${DEMO_COUNTER:-}" "$root"/build/{release,dev}/examples/demo_counter \
  "$root"/build/{release,dev}/examples/demo/demo_counter)
[ -n "$redlatch" ] || fail "no redlatch command under $root/build: run scripts/setup first"
[ -n "$counter" ] || fail "no demo_counter under $root/build: run scripts/setup first"
self=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$(basename "${BASH_SOURCE[0]}")

DEMO_DIR=$(mktemp -d "${TMPDIR:-/tmp}/redlatch-demo.XXXXXX") || fail "cannot make a folder"
export DEMO_DIR
# The settings of whoever runs this are for other servers.
unset DEMO_DIE REDLATCH_FENCE REDLATCH_NAMESPACE REDLATCH_PASSWORD_FILE REDISCLI_AUTH
workers=()

clean_up() {
  local pid
  for pid in "${workers[@]}"; do kill -TERM -- "-$pid" 2>/dev/null; done
  # The server ends by itself when it sees that nobody is there any more.
  rm -rf "$DEMO_DIR"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A folder of its own, so that nobody's locks are in the way.
url=embedded://$DEMO_DIR/server
export REDLATCH_URL=$url

# ---- workers -------------------------------------------------------------------------------------

# guarded_step WHO: one increment under the lock. A killed one is repeated by its worker.
guarded_step() {
  "$redlatch" run --wait 20s --ttl "${ttl_ms}ms" "$lock" -- "$self" --step "$1"
}

shell_worker() {
  local who=$1 with_lock=$2 done=0
  while [ "$done" -lt "$shell_times" ]; do
    if [ "$with_lock" = no ]; then
      "$self" --step "$who" || return 1
    elif [ "$who" = shell-3 ] && [ "$done" = 4 ] && [ ! -e "$DEMO_DIR/victim" ]; then
      DEMO_DIE=1 guarded_step "$who"
      [ $? = 137 ] || return 1
      continue
    else
      guarded_step "$who" || return 1
    fi
    done=$((done + 1))
  done
}

# add_in_c URL [RETAIN]
add_in_c() {
  "$counter" "$1" "$lock" "$DEMO_DIR/count" "$DEMO_DIR/log" "$c_times" "${@:2}" \
    2>>"$DEMO_DIR/errors"
}

wait_for_lines() {
  local tries
  for ((tries = 0; tries < 1000; ++tries)); do
    [ "$(wc -l <"$DEMO_DIR/log")" -lt "$1" ] || return
    sleep 0.01
  done
  fail "the first C program does not get on"
}

# start_workers yes|no|retain: with the lock, without, or with the lock and two C programs that
# retain it. The first of them is alone for a while.
start_workers() {
  local with_lock=$1 who c_url=$url option=()
  [ "$with_lock" != no ] || c_url=-
  [ "$with_lock" != retain ] || option=("$retain")
  rm -f "$DEMO_DIR/victim"
  : >"$DEMO_DIR/log"
  echo 00000000 >"$DEMO_DIR/count"
  workers=()
  set -m # Each worker is a process group, so that all of it can be ended.
  if [ "$with_lock" = retain ]; then
    add_in_c "$url" "$retain" &
    workers+=($!)
    wait_for_lines 10
  fi
  for who in shell-1 shell-2 shell-3 shell-4; do
    shell_worker "$who" "$with_lock" 2>>"$DEMO_DIR/errors" &
    workers+=($!)
  done
  add_in_c "$c_url" "${option[@]}" &
  workers+=($!)
  set +m
}

wait_for_workers() {
  local pid result=0
  for pid in "${workers[@]}"; do wait "$pid" || result=1; done
  workers=()
  [ $result = 0 ] && return
  cat "$DEMO_DIR/errors" >&2
  fail "a worker failed"
}

# Kills the holder that has read and not yet written. Leaves the time of it in $killed_us.
kill_victim() {
  local tries pid
  for ((tries = 0; tries < 1000; ++tries)); do
    [ ! -e "$DEMO_DIR/victim" ] || break
    sleep 0.01
  done
  read -r _ _ _ _ pid <"$DEMO_DIR/victim" || fail "nobody came to the point of being killed"
  kill -KILL "$pid" || fail "the holder was gone before it was killed"
  killed_us=${EPOCHREALTIME/[.,]/}
}

# ---- what happened -------------------------------------------------------------------------------

# Rows around what matters; the log is in the order of the holders, because each writes its line
# while it holds the lock.
show_rows() {
  awk -v killed="$killed_us" -v victim="$(cat "$DEMO_DIR/victim")" -v rows="$expected" '
    function row(number) {
      return number <= 4 || number > rows - 3 || (number >= after - 3 && number <= after + 3)
    }
    { line[NR] = $0; if (!after && $1 > killed) after = NR }
    END {
      split(victim, v, " ")
      split(line[1], first, " ")
      printf "       at      held  who          count      fence\n"
      for (i = 1; i <= NR; ++i) {
        split(line[i], f, " ")
        if (i == after) {
          printf "  %7.3f s            %-9s %4d -> ??   %s   killed before it wrote\n", \
            (v[1] - first[1]) / 1e6, v[3], v[4], v[2]
        }
        if (row(i)) {
          printf "  %7.3f s  %5.1f ms  %-9s %4d -> %-4d %s%s\n", (f[1] - first[1]) / 1e6, \
            (f[2] - f[1]) / 1e3, f[4], f[5], f[6], f[3], \
            i == after ? sprintf("   %.2f s after the kill", (f[1] - killed) / 1e6) : ""
        } else if (row(i - 1)) {
          print "            .."
        }
      }
    }' "$DEMO_DIR/log"
}

# A lane for each worker: # = it held the lock then, X = it was killed.
show_lanes() {
  awk -v killed="$killed_us" -v victim="$(cat "$DEMO_DIR/victim")" -v width=64 '
    function column(at) { return int((at - begin) / (end - begin + 1) * width) }
    { who[NR] = $4; from[NR] = $1; to[NR] = $2; end = $2; if (NR == 1) begin = $1 }
    END {
      split(victim, v, " ")
      n = split("shell-1 shell-2 shell-3 shell-4 c-program", lanes, " ")
      for (i = 1; i <= NR; ++i)
        for (c = column(from[i]); c <= column(to[i]); ++c) mark[who[i], c] = "#"
      for (c = column(v[1]); c <= column(killed); ++c) mark[v[3], c] = "X"
      for (l = 1; l <= n; ++l) {
        printf "  %-9s |", lanes[l]
        for (c = 0; c < width; ++c) printf "%s", (lanes[l], c) in mark ? mark[lanes[l], c] : " "
        print "|"
      }
      printf "  %-9s 0 s %*.1f s\n", "", width - 5, (end - begin) / 1e6
    }' "$DEMO_DIR/log"
}

failures=0
check() {
  local text=$1
  shift
  if "$@"; then
    echo "  ok      $text"
  else
    echo "  FAILED  $text"
    failures=$((failures + 1))
  fi
}

number_in_file() { echo $((10#$(cat "$DEMO_DIR/count"))); }

fences_rise() {
  {
    cat "$DEMO_DIR/log"
    awk '{ print $1, $1, $2, $3, $4, $4 }' "$DEMO_DIR/victim"
  } | sort -n -k1,1 | awk '$3 <= last { bad = 1 } { last = $3 } END { exit bad }'
}

nobody_met() { awk '$1 < last { bad = 1 } { last = $2 } END { exit bad }' "$DEMO_DIR/log"; }

# Milliseconds from the kill to the next holder.
recovery_ms() {
  awk -v killed="$killed_us" \
    '$1 > killed { printf "%d", ($1 - killed) / 1000; exit }' "$DEMO_DIR/log"
}

# Of those that had the lock from the server, no two have fences next to each other.
local_acquisitions() {
  awk '$3 == last + 1 { ++count } { last = $3 } END { print count + 0 }' "$DEMO_DIR/log"
}

seconds() { awk -v ms="$1" 'BEGIN { printf "%.2f s", ms / 1000 }'; }

# check_all TIMES: what is promised of a run with the lock.
check_all() {
  local recovered_ms limit_ms=$((ttl_ms + 500)) # The lease, and time for a busy machine to notice.
  local final recovery
  recovered_ms=$(recovery_ms)
  final=$(number_in_file)
  check "$1 increments made, the file says $final" [ "$final" = "$1" ]
  check "every fence is higher than the one before" fences_rise
  check "nobody met anybody else" nobody_met
  recovery="next holder $(seconds "${recovered_ms:-0}") after the kill"
  check "$recovery; the lease is $(seconds $ttl_ms)" \
    [ "${recovered_ms:-$((limit_ms + 1))}" -le "$limit_ms" ]
}

# ---- the demo ------------------------------------------------------------------------------------

"$redlatch" run "$lock" -- true || fail "the embedded server did not start"
cat <<END
Four shell workers ($shell_times times each, by \`redlatch run\`) and a C program ($c_times times)
add 1 to the number in a file: read, pause, write. The server is an embedded one, private to this
demo: $("$redlatch" server | sed -n 's/^version *//p').

1. With the lock. shell-3 is killed (SIGKILL) between read and write; its worker repeats.

END
start_workers yes
kill_victim
wait_for_workers
show_rows
echo
show_lanes
echo
check_all "$expected"

cat <<END

2. The same with two C programs that retain the lock until another process wants it, for $retain at
   most. One of them begins alone.

END
lock=demo:retained
start_workers retain
kill_victim
wait_for_workers
check_all $((expected + c_times))
local_count=$(local_acquisitions)
check "$local_count of them without the server" [ "$local_count" -gt 0 ]

printf '\n3. The first without the lock.\n\n'
for ((try = 1; try <= unlocked_tries; ++try)); do
  start_workers no
  wait_for_workers
  final=$(number_in_file)
  [ "$final" = "$expected" ] || break
done
check "$expected increments made, the file says $final: $((expected - final)) got lost" \
  [ "$final" -lt "$expected" ]

echo
[ "$failures" = 0 ] || fail "$failures of the promises above were not kept"
echo "All as promised, in $SECONDS s."
