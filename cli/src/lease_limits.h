// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// When a lease that is not being renewed asks for action. With renewal at a third of the lease, two
// thirds are always left while all is well:
//
//   lease  2/3 (renewed)    warn        stop                        kill   end
//     |------|---------------|-----------|--------- kill_after -------|------|
#pragma once

#include <algorithm>
#include <cstdint>

#include "run_options.h"

namespace redlatch::cli {

struct LeaseLimits {
  std::int64_t warn_below_ms;  // Not above stop_below_ms: no warning.
  std::int64_t stop_below_ms;
  std::int64_t margin_ms;  // From SIGKILL to the end of the lease: processes take time to die.
  std::int64_t kill_after_ms;

  // In a shorter time no reader could react.
  static constexpr std::int64_t kLeaseWorthAWarningMs = 1000;

  explicit LeaseLimits(const RunOptions& options)
      : warn_below_ms(options.ttl_ms >= kLeaseWorthAWarningMs ? options.ttl_ms / 2 : 0),
        stop_below_ms(0),
        margin_ms(std::min<std::int64_t>(500, options.longest_ttl_ms() / 20)),
        kill_after_ms(options.kill_after_ms),
        max_hold_ms_(options.max_hold_ms),
        is_renewed_(options.is_renewed) {
    // A child that may continue without the lock is not stopped early.
    if (options.on.lost_signal != 0) stop_below_ms = kill_after_ms + margin_ms;
  }

  // How long a child that gets SIGTERM now has until SIGKILL, so that it is gone before the lease.
  [[nodiscard]] std::int64_t grace_ms(std::int64_t remaining_ms) const {
    return std::clamp<std::int64_t>(remaining_ms - margin_ms, 0, kill_after_ms);
  }

  // True if a lease that has been held for `held_ms` ends at the time that the options set.
  [[nodiscard]] bool ends_by_plan(std::int64_t remaining_ms, std::int64_t held_ms) const {
    if (!is_renewed_) return true;
    if (max_hold_ms_ == 0) return false;
    constexpr std::int64_t kRoundingMs = 2;  // Both times are rounded to ms.
    // Before that time each renewal extends the lease further.
    return held_ms + remaining_ms + kRoundingMs >= max_hold_ms_ - margin_ms;
  }

 private:
  std::int64_t max_hold_ms_;
  bool is_renewed_;
};

}  // namespace redlatch::cli
