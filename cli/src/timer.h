// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A timer that makes Signals::wait() return. Its clock continues while the machine is suspended, as
// leases do, so that a lease that expired meanwhile is noticed first.
#pragma once

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>

#include "exit_code.h"
#include "signals.h"

namespace redlatch::cli {

class Timer {
 public:
  Timer() {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = Signals::wake_signal();
    if (timer_create(CLOCK_BOOTTIME, &event, &id_) != 0) {
      throw Failure{kExitSoftware, "cannot make a timer"};
    }
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { timer_delete(id_); }

  // Once, after `delay_ms`; replaces an earlier setting.
  void arm(std::int64_t delay_ms) {
    // Zero would disarm it.
    const std::int64_t ms = std::max<std::int64_t>(delay_ms, 1);
    itimerspec when{};
    when.it_value.tv_sec = ms / 1000;
    when.it_value.tv_nsec = ms % 1000 * 1'000'000;
    timer_settime(id_, 0, &when, nullptr);
  }

 private:
  timer_t id_{};
};

}  // namespace redlatch::cli
