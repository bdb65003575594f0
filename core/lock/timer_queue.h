// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// TimerQueue: which timer is due next. An intrusive binary heap: arming, moving and disarming a
// timer costs O(log n) and allocates nothing; the heap grows before. So ten thousand leases need
// one timer of the operating system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace redlatch::lock {

// An object with at most one timer. Its owner disarms it before it is destroyed.
struct Timed {
  enum class Kind : uint8_t { kRequest, kRecord };

  explicit Timed(Kind what) : kind(what) {}

  const Kind kind;
  Nanos due = kNever;
  size_t position = SIZE_MAX;
};

class TimerQueue {
 public:
  bool empty() const { return heap_.empty(); }
  Timed &top() const { return *heap_.front(); }
  Nanos next_due() const { return heap_.empty() ? kNever : heap_.front()->due; }

  // Everything that may be armed is admitted first: arming then cannot fail for want of memory.
  void admit(size_t count = 1) {
    if (admitted_ + count > heap_.capacity()) heap_.reserve(2 * admitted_ + count + 7);
    admitted_ += count;
  }
  void dismiss() { admitted_--; }

  // Arm, move, or with kNever disarm.
  void set(Timed &timed, Nanos due) {
    if (due == kNever) return remove(timed);
    timed.due = due;
    if (timed.position == SIZE_MAX) {
      heap_.push_back(&timed);
      timed.position = heap_.size() - 1;
    }
    sift_up(timed.position);
    sift_down(timed.position);
  }

  void remove(Timed &timed) {
    if (timed.position == SIZE_MAX) return;
    const size_t hole = timed.position;
    timed.position = SIZE_MAX;
    timed.due = kNever;
    Timed *last = heap_.back();
    heap_.pop_back();
    if (last == &timed) return;
    place(hole, last);
    sift_up(hole);
    sift_down(last->position);
  }

 private:
  void place(size_t position, Timed *timed) {
    heap_[position] = timed;
    timed->position = position;
  }
  void exchange(size_t a, size_t b) {
    std::swap(heap_[a], heap_[b]);
    heap_[a]->position = a;
    heap_[b]->position = b;
  }
  void sift_up(size_t i) {
    for (; i > 0 && heap_[i]->due < heap_[(i - 1) / 2]->due; i = (i - 1) / 2) {
      exchange(i, (i - 1) / 2);
    }
  }
  void sift_down(size_t i) {
    for (;;) {
      size_t first = i;
      for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); child++) {
        if (heap_[child]->due < heap_[first]->due) first = child;
      }
      if (first == i) return;
      exchange(i, first);
      i = first;
    }
  }

  std::vector<Timed *> heap_;
  size_t admitted_ = 0;
};

}  // namespace redlatch::lock
