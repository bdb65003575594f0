// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Results: finishes requests, and reports defects of this library.
#pragma once

#include <string_view>

#include "base/status.h"
#include "lock/request.h"
#include "lock/service.h"
#include "lock/timer_queue.h"

namespace redlatch::lock {

class Results {
 public:
  // Both outlive it.
  Results(TimerQueue &timers, Output &output) : timers_(timers), output_(output) {}

  // Sets the result, which copies `message`, stops the timer and notifies the output, unless it is
  // a part of another request. Once for each.
  void finish(Request &request, Status status, std::string_view message = {}) noexcept {
    timers_.remove(request);
    timers_.dismiss();
    request.complete(status, message);
    if (!request.is_part) output_.finished(request);
  }

  void queued(Request &request) noexcept {
    if (request.several.is_part) output_.queued(request);
  }

  // `machine` got an event that its state does not allow: a defect of this library, and the program
  // continues. The caller finishes its requests with the text returned, a constant.
  std::string_view report_defect(Machine machine) noexcept {
    output_.defect_found(words::defect(machine));
    return words::loss(LossReason::kDefect);
  }

 private:
  TimerQueue &timers_;
  Output &output_;
};

}  // namespace redlatch::lock
