#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# check_build.sh PREFIX [PYTHON]: names all that a build lacks at once, on Debian as one line for
# apt. PREFIX is where tools/get_hiredis.sh puts hiredis, PYTHON the interpreter that a module is
# made for. What is there is tried out rather than looked up, so that it may be from anywhere.
set -u

prefix=${1:?usage: check_build.sh PREFIX [PYTHON]}
python=${2:-}
tools=$(cd "$(dirname "$0")" && pwd)
missing='' packages=''

# lacks WHAT PACKAGE..
lacks() {
  missing="$missing
  $1"
  shift
  for package in "$@"; do
    case " $packages " in *" $package "*) ;; *) packages="${packages:+$packages }$package" ;; esac
  done
}

has() { command -v "$1" >/dev/null 2>&1; }

# The first word is the compiler; options may follow.
c=${CC:-cc}
cxx=${CXX:-c++}
preprocesses() { echo "$2" | $1 ${CPPFLAGS:-} -E - >/dev/null 2>&1; }

has "${c%% *}" || lacks "a C compiler (${c%% *})" build-essential
if ! has "${cxx%% *}"; then
  lacks "a C++ compiler (${cxx%% *})" build-essential
elif ! preprocesses "$cxx -std=c++20 -x c++ ${CXXFLAGS:-}" '#include <bit>'; then
  lacks "C++20 in the compiler (${cxx%% *})" g++
fi
has make || has ninja || lacks "make or Ninja" make
has pkg-config || lacks "pkg-config" pkg-config

# Headers, where there is a compiler to look for them; a search path of CMake's is CMake's to use.
if [ -z "${CMAKE_PREFIX_PATH:-}${CMAKE_INCLUDE_PATH:-}" ]; then
  if [ -z "${CLI11_DIR:-}${CLI11_ROOT:-}" ]; then
    preprocesses "$cxx -x c++ ${CXXFLAGS:-}" '#include <CLI/CLI.hpp>' ||
      lacks "the headers of CLI11 2" libcli11-dev
  fi
fi
if [ -n "$python" ]; then
  include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [ -f "$include/Python.h" ] || lacks "Python.h of $python (in $include)" python3-dev
fi

# What get_hiredis.sh would need is of no use where it has nothing to do.
needed=$("$tools/get_hiredis.sh" --needs "$prefix")
for tool in $needed; do
  case $tool in
    dpkg-source) lacks "dpkg-source, for the source of hiredis" dpkg-dev ;;
    cmake) lacks "cmake, to build hiredis" cmake ;;
    make) lacks "make, to build hiredis" make ;;
    recipe) lacks "hiredis 1.0 or later, as a static archive (tools/get_hiredis.sh says more)" ;;
  esac
done

[ -n "$missing" ] || exit 0
{
  echo "redlatch cannot be built here yet. Missing:$missing"
  if [ -n "$packages" ] && has apt-get; then
    echo "One line for apt, as root:"
    echo "  apt-get install --no-install-recommends $packages"
  fi
} >&2
exit 1
