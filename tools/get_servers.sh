#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# get_servers.sh FOLDER: puts newer servers than this Debian's into FOLDER, for the tests: Redis 8.0
# as FOLDER/redis-8.0/redis-server, and Valkey 8.1 as FOLDER/valkey-8.1/valkey-server. Nothing is
# installed and nothing is compiled: the packages of a newer suite are unpacked, and run by its own
# loader and C library. What is in place is left alone. apt checks the signatures.
set -eu

folder=${1:?usage: get_servers.sh FOLDER}
case $folder in /*) ;; *) folder=$PWD/$folder ;; esac
suite=trixie
libraries='libc6 libatomic1 libcap2 libgcc-s1 libjemalloc2 liblzf1 libssl3t64 libstdc++6 libsystemd0
  libzstd1 zlib1g'
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

say() { echo "get_servers: $*"; }

give_up() {
  say "$1" >&2
  [ ! -s "$tmp/log" ] || tail -n 15 "$tmp/log" >&2
  exit 1
}

. "$(dirname "$0")/private_apt.sh"

# put NAME KIND: KIND-server in a folder of its own, with the version in its name. Debian's program
# is one file for several names; it goes by the name that it is started with.
put() {
  mkdir -p "$new/$1"
  cp "$new/unpacked/usr/bin/$2-check-rdb" "$new/unpacked/usr/bin/$2-server"
  cat > "$new/$1/$2-server" <<END
#!/bin/sh
unpacked=\$(dirname "\$0")/../unpacked
for loader in "\$unpacked"/usr/lib/*-linux-gnu/ld-linux-*; do
  exec "\$loader" --library-path "\${loader%/*}" "\$unpacked/usr/bin/$2-server" "\$@"
done
END
  chmod +x "$new/$1/$2-server"
  "$new/$1/$2-server" --version > "$tmp/version" 2>&1 || give_up "$1 does not run here"
  grep -q " v=${1#*-}\\." "$tmp/version" || give_up "$suite has no $1, but $(cat "$tmp/version")"
}

if [ -d "$folder" ]; then
  say "servers of $suite are there"
  exit 0
fi
[ "$ID" = debian ] || give_up "no recipe for this system (${ID:-unknown})"
for tool in apt-get dpkg; do
  command -v $tool > /dev/null || give_up "missing: $tool"
done
name_suite deb "$suite" main
say "fetching servers of $suite"
mkdir -p "$tmp/debs" "$(dirname "$folder")"
# shellcheck disable=SC2086 # a list of words
{
  private_apt update &&
    (cd "$tmp/debs" && private_apt download redis-tools valkey-tools $libraries)
} > "$tmp/log" 2>&1 || give_up "packages of $suite cannot be fetched (is there a network?)"
# Beside its place, and moved there when it is complete.
new=$folder.new
rm -rf "$new"
mkdir "$new"
for package in "$tmp"/debs/*.deb; do dpkg -x "$package" "$new/unpacked"; done
put redis-8.0 redis
put valkey-8.1 valkey
rm -rf "$new"/unpacked/usr/share "$new"/unpacked/usr/lib/*/gconv
mv "$new" "$folder"
say "in $folder: $(cd "$folder" && echo *-*)"
