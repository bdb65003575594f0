// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// REDLATCH_RUNS: each `run` tells its command of itself and of the runs that it runs under.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace redlatch::cli {

// A lock that a run holds.
struct HeldLock {
  std::string name;
  std::int64_t fence;
};

// The value for the command of a run that holds `locks`.
std::string runs_with(const std::vector<HeldLock>& locks, std::string_view holder);

// "NAME=FENCE" of each, separated by spaces, with unusual bytes as %XX.
std::string fence_entries(const std::vector<HeldLock>& locks);

// True if a surrounding run has a lock `name`.
bool is_run_around(std::string_view name);
// .. and has it as `holder`, with a fence that shows it to be the lock that is held under `fence`.
// A run of a quorum may have no fence; then its holder has to do. `holder`: "" if not known.
bool is_run_around(std::string_view name, std::int64_t fence, std::string_view holder);

}  // namespace redlatch::cli
