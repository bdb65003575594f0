# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# Sourced by get_hiredis.sh and get_servers.sh: apt with another suite, and with lists of its own,
# so the system's package state stays as it is. The caller has `tmp`, which is a folder, `say` and
# `give_up`.

ID='' VERSION_CODENAME=''
[ ! -r /etc/os-release ] || . /etc/os-release

private_apt() {
  apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$tmp/parts" \
    -o Dir::State::lists="$tmp/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache= \
    -o APT::Sandbox::User= -o Acquire::Retries=3 "$@"
}

# The machine's own archive entry, mirrors and keys included, with only the type ($1: deb or
# deb-src), the suite ($2) and the components ($3) changed. Sources come in two forms: paragraphs of
# fields (*.sources) and lines (*.list).
name_suite() {
  if [ "$VERSION_CODENAME" = "$2" ]; then
    say "this is $2 already: using its own package"
  fi

  mkdir -p "$tmp/lists/partial" "$tmp/parts"
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -f "$file" ] || continue
    awk -v type="$1" -v suite="$2" -v codename="$VERSION_CODENAME" -v components="$3" '
      function flush() {
        if (wanted && !done) { print text "\n"; done = 1 }
        text = ""; wanted = 0
      }
      /^[ \t]*$/ { flush(); next }
      /^#/ { next }
      /^Suites:/ {
        for (i = 2; i <= NF; i++) if ($i == codename) wanted = 1
        $0 = "Suites: " suite
      }
      /^Types:/ { $0 = "Types: " type }
      /^Components:/ { $0 = "Components: " components }
      { text = text (text == "" ? "" : "\n") $0 }
      END { flush() }' "$file"
  done > "$tmp/parts/newer.sources"
  if [ ! -s "$tmp/parts/newer.sources" ]; then
    rm "$tmp/parts/newer.sources"
    line="^deb(-src)?( +\[[^]]*\])? +([^ ]+) +$VERSION_CODENAME +.*"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
      sed -nE "s/$line/$1\2 \3 $2 $3/p" | head -n 1 > "$tmp/parts/newer.list"
    [ -s "$tmp/parts/newer.list" ] ||
      give_up "no apt source of $VERSION_CODENAME to change to $2"
  fi
}
