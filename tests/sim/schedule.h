// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Schedule: virtual time, and the events to come. Events of the same moment happen in the order in
// which they were added.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace redlatch::sim {

constexpr Nanos kSecond = 1000 * kMs;

class Schedule {
 public:
  using Action = std::function<void()>;

  Nanos now() const { return now_; }
  Nanos next_at() const { return events_.empty() ? kNever : events_.front().at; }

  void at(Nanos when, Action action) {
    events_.push_back(Event{std::max(when, now_), count_++, std::move(action)});
    std::push_heap(events_.begin(), events_.end(), is_later);
  }
  void in(Nanos delay, Action action) { at(now_ + delay, std::move(action)); }

  // Run the next event. There must be one.
  void run_next() {
    std::pop_heap(events_.begin(), events_.end(), is_later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.at;
    run_count_++;
    event.action();
  }
  // Drop all events, and set the time.
  void skip_to(Nanos when) {
    events_.clear();
    now_ = std::max(now_, when);
  }
  uint64_t event_count() const { return run_count_; }  // events that have run

 private:
  struct Event {
    Nanos at;
    uint64_t number;
    Action action;
  };
  static bool is_later(const Event &a, const Event &b) {
    return a.at != b.at ? a.at > b.at : a.number > b.number;
  }

  std::vector<Event> events_;
  Nanos now_ = 0;
  uint64_t count_ = 0;
  uint64_t run_count_ = 0;
};

// The clock of a machine, with its own start and rate. It may be stepped.
class Clock {
 public:
  Clock(Nanos start, int64_t rate_ppm) : start_(start), rate_ppm_(rate_ppm) {}

  Nanos read(Nanos now) const { return start_ + now + skew(now); }
  // The true time at which it reads `reading`, or a little more.
  Nanos when(Nanos reading) const {
    if (reading == kNever) return kNever;
    const Nanos passed = reading - start_;
    const int64_t whole = kMillion + rate_ppm_;
    Nanos guess = passed - passed / whole * rate_ppm_ - passed % whole * rate_ppm_ / whole;
    while (read(guess) < reading) guess += 1 + (reading - read(guess)) / 2;
    return guess;
  }
  void step(Nanos by) { start_ += by; }

 private:
  static constexpr int64_t kMillion = 1'000'000;

  Nanos skew(Nanos now) const {
    return now / kMillion * rate_ppm_ + now % kMillion * rate_ppm_ / kMillion;
  }

  Nanos start_;
  int64_t rate_ppm_;
};

}  // namespace redlatch::sim
