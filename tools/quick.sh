#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
#
# What `scripts/test quick` runs, for the time between two edits: unit tests, 200 seeds of the
# simulator, and the conformance cases in C, side by side, on the build of the preset dev.
# A new checkout is set up first. Exit code 0: all passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

if [ ! -f build/dev/build.ninja ] || [ ! -x .venv/bin/pytest ]; then
  for step in unit sim conformance; do needs+=(--for "$step"); done
  scripts/setup "${needs[@]}" && cmake --preset dev >/dev/null || exit 1
fi
cmake --build --preset dev --target unit_tests simulate redlatch redlatch_embedded || exit 1

logs=build/log
mkdir -p $logs
export REDLATCH_BUILD_DIR=$PWD/build/dev
names=(unit sim conformance)
commands=(
  "build/dev/tests/unit/unit_tests --gtest_brief=1"
  "build/dev/tests/sim/simulate --seeds 200 --simulated 2 --jobs 2"
  ".venv/bin/pytest -q -n 3 -p no:cacheprovider tests/conformance/test_conformance.py -k redis-c]"
)
jobs_here=()
trap 'trap "" INT TERM; kill "${jobs_here[@]}" 2>/dev/null; wait; exit 130' INT TERM
for i in "${!names[@]}"; do
  ${commands[i]} >"$logs/quick-${names[i]}.log" 2>&1 </dev/null &
  jobs_here+=($!)
done
failed=0
for i in "${!names[@]}"; do
  if wait "${jobs_here[i]}"; then
    echo "${names[i]}: ok"
  else
    failed=1
    tail -n 40 "$logs/quick-${names[i]}.log"
    echo "${names[i]}: FAILED; ${commands[i]}"
  fi
done
echo "$SECONDS s"
exit $failed
