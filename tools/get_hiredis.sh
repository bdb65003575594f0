#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# get_hiredis.sh [--needs | --source] PREFIX: sees to it that a hiredis >= 1.0 can be linked *into*
# libredlatch. That takes a static, position independent archive, so a system that has only the
# shared library is not enough. Where the system's own will not do, it is built into PREFIX: from
# PREFIX/hiredis-*.tar.gz, which an sdist carries, else from the source package of a newer suite.
# apt fetches that, so its signature is checked (private_apt.sh); it is kept in PREFIX, and the next
# build needs no network.
#
# With --needs it only prints which commands it would miss, or `recipe` where it knows no way. With
# --source it only sees to it that the source is in PREFIX, as the amalgamation needs it.
set -eu

only_needs='' only_source=''
case ${1:-} in
  --needs) only_needs=1; shift ;;
  --source) only_source=1; shift ;;
esac
prefix=${1:?usage: get_hiredis.sh [--needs | --source] PREFIX}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
. "$(dirname "$0")/private_apt.sh"
min=1.0.0
# That of a caller which is a CMake itself, such as pip's.
cmake=${CMAKE:-cmake}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

say() { echo "get_hiredis: $*"; }

give_up() {
  {
    say "$1"
    say "install one of these, then run it again:"
    say "  - hiredis >= $min, as a static archive built with -fPIC, with its pkg-config file;"
    say "    PKG_CONFIG_PATH names a prefix of its own"
    say "  - its source, hiredis-VERSION.tar.gz, in $prefix: that takes no network, but"
    say "    cmake pkg-config gcc make; scripts/setup in a checkout leaves it in .deps"
    say "  - on Debian or Ubuntu, to fetch and build it here: these, dpkg-dev, and the network"
    [ ! -s "$tmp/log" ] || { say "the last lines of what was tried:"; tail -n 15 "$tmp/log"; }
  } >&2
  exit 1
}

# An archive without -fPIC is only noticed when it goes into a shared library: try that.
usable() {
  pkg-config --atleast-version="$min" hiredis 2>/dev/null || return 1
  archive=$(pkg-config --variable=libdir hiredis)/libhiredis.a
  [ -f "$archive" ] || return 1
  "${CC:-cc}" -shared -o "$tmp/try.so" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    2>/dev/null
}

has() { command -v "$1" >/dev/null 2>&1; }

if [ -z "$only_source" ] && usable; then
  [ -z "$only_needs" ] || exit 0
  say "the system's hiredis $(pkg-config --modversion hiredis) will do"
  exit 0
fi
PKG_CONFIG_PATH=$prefix/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
if [ -z "$only_source" ] && usable; then
  [ -z "$only_needs" ] || exit 0
  say "hiredis $(pkg-config --modversion hiredis) is in place"
  exit 0
fi

kept=''
for file in "$prefix"/hiredis-*.tar.gz; do [ ! -f "$file" ] || kept=$file; done
if [ -n "$only_source" ] && [ -n "$kept" ]; then exit 0; fi
suite=''
case $ID in
  debian) suite=trixie components="main" ;;
  ubuntu) suite=noble components="main universe" ;;
esac

missing=''
generator='Unix Makefiles'
if [ -z "$only_source" ]; then
  for tool in pkg-config "$cmake" "${CC:-cc}"; do
    has "${tool%% *}" || missing="$missing ${tool%% *}"
  done
  # One of them is enough.
  if ! has make; then if has ninja; then generator=Ninja; else missing="$missing make"; fi; fi
fi
if [ -z "$kept" ] && [ -n "$suite" ]; then
  for tool in apt-get dpkg-source; do has $tool || missing="$missing $tool"; done
elif [ -z "$kept" ]; then
  missing="$missing recipe"
fi
if [ -n "$only_needs" ]; then
  echo "$missing"
  exit 0
fi
case $missing in
  '') ;;
  *' recipe') give_up "no recipe for this system (${ID:-unknown})" ;;
  *) give_up "missing:$missing" ;;
esac

# A message that names trixie on bookworm needs a reason.
say_why() {
  own=$(LC_ALL=C apt-cache policy libhiredis-dev 2>/dev/null | sed -n 's/^  Candidate: //p')
  case $own in [0-9]*) own="$own of" ;; *) own='that of' ;; esac
  say "hiredis must be $min or later (got $own $VERSION_CODENAME)"
}

fetch_source() {
  [ "$suite" = "$VERSION_CODENAME" ] || say_why
  name_suite deb-src "$suite" "$components"
  say "fetching the source package of $suite, for this build only: the system stays as it is"
  {
    private_apt update && (cd "$tmp/src" && private_apt source --only-source hiredis)
  } > "$tmp/log" 2>&1 ||
    give_up "its source package of $suite cannot be fetched (is there a network?)"
  unpacked=$(cd "$tmp/src" && ls -d hiredis-*/)
  mkdir -p "$prefix"
  tar -czf "$tmp/kept.tar.gz" -C "$tmp/src" "${unpacked%/}"
  mv "$tmp/kept.tar.gz" "$prefix/${unpacked%/}.tar.gz"
  [ -z "$only_source" ] || exit 0
  say "building the source package of $suite into $prefix"
}

mkdir -p "$tmp/src"
if [ -n "$kept" ]; then
  say "building $kept into $prefix"
  tar -xzf "$kept" -C "$tmp/src" || give_up "$kept cannot be read"
else
  fetch_source
fi
# hiredis 1.2 asks for a CMake that CMake 4 has forgotten.
{
  "$cmake" -S "$tmp"/src/hiredis-*/ -B "$tmp/build" -G "$generator" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
    -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DDISABLE_TESTS=ON -DCMAKE_C_FLAGS=-fvisibility=hidden \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib &&
    "$cmake" --build "$tmp/build" -j2 &&
    "$cmake" --install "$tmp/build"
} > "$tmp/log" 2>&1 || give_up "the build failed"
usable || give_up "what was built into $prefix cannot be linked into a shared library"
say "hiredis $(pkg-config --modversion hiredis) is in $prefix"
