// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: timers come in order, whatever was armed, moved and disarmed. Method: random operations
// against a plain list.
#include "lock/timer_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/random.h"
#include "failing_memory.h"

namespace redlatch::lock {

TEST(TimerQueueTest, random_operations_agree_with_a_plain_list) {
  Entropy entropy(42);
  std::vector<std::unique_ptr<Timed>> timed;
  for (int i = 0; i < 200; i++) timed.push_back(std::make_unique<Timed>(Timed::Kind::kRecord));
  TimerQueue queue;
  for (size_t i = 0; i < timed.size(); i++) queue.admit();
  for (int step = 0; step < 50'000; step++) {
    Timed &one = *timed[entropy.next() % timed.size()];
    if (entropy.next() % 3 == 0) {
      queue.remove(one);
    } else {
      queue.set(one, static_cast<Nanos>(entropy.next() % 1'000));
    }
    Nanos first = kNever;
    for (const auto &t : timed) first = std::min(first, t->due);
    ASSERT_EQ(queue.next_due(), first) << "step " << step;
    if (!queue.empty()) {
      ASSERT_EQ(queue.top().due, first);
    }
  }
}

TEST(TimerQueueTest, setting_never_disarms_a_timer) {
  Timed timed(Timed::Kind::kRecord);
  TimerQueue queue;
  queue.admit();
  queue.set(timed, 5);
  queue.set(timed, kNever);
  EXPECT_TRUE(queue.empty());
}

TEST(TimerQueueTest, arming_an_admitted_timer_allocates_nothing) {
  std::vector<std::unique_ptr<Timed>> timed;
  for (int i = 0; i < 1'000; i++) timed.push_back(std::make_unique<Timed>(Timed::Kind::kRecord));
  TimerQueue queue;
  queue.admit();
  queue.admit(0);
  queue.admit(timed.size() - 1);
  bool has_failed = false;
  allocation_countdown = 1;
  try {
    for (const auto &one : timed) queue.set(*one, 5);
  } catch (const std::bad_alloc &) {
    has_failed = true;
  }
  allocation_countdown = 0;
  EXPECT_FALSE(has_failed);
}

}  // namespace redlatch::lock
