// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Part: what the parts of a client have in common (docs/design/0023-parts-of-a-lock-client.md).
#pragma once

#include "base/random.h"
#include "base/settings.h"
#include "lock/locks.h"
#include "lock/redirects.h"
#include "lock/results.h"
#include "lock/service.h"
#include "lock/timer_queue.h"

namespace redlatch::lock {

class Part {
 public:
  // All outlive it.
  Part(const Settings &settings, Output &output, Entropy &entropy, TimerQueue &timers,
       Results &results, Redirects &redirects, Locks &locks)
      : settings_(settings),
        output_(output),
        entropy_(entropy),
        timers_(timers),
        results_(results),
        redirects_(redirects),
        locks_(locks) {}

 protected:
  const Settings &settings_;
  Output &output_;
  Entropy &entropy_;
  TimerQueue &timers_;
  Results &results_;
  Redirects &redirects_;
  Locks &locks_;
};

}  // namespace redlatch::lock
