// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the callers of one client get the lock in the order in which they came, and always have one
// place in the server's queue, or none is left there without a caller. Method: the waitlist alone,
// with made events. After each of them its model is checked.
#include "lock/waitlist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "base/limits.h"

namespace redlatch::lock {
namespace {

using Caller = Waitlist::Caller;
using Place = Waitlist::Place;
using State = Waitlist::State;
using Step = Waitlist::Step;
using Transition = Waitlist::Transition;

constexpr Nanos kLongestVacancy = 1'000 * kMs;

class WaitlistTest : public ::testing::Test {
 protected:
  Step checked(const Step &step) {
    EXPECT_STREQ(list_.check(), nullptr);
    return step;
  }
  Step open(Place &place) { return checked(list_.open(place)); }
  Step join(Caller &caller) { return checked(list_.join(caller)); }
  Step leave(Caller &caller) { return checked(list_.leave(caller)); }
  Step take() { return checked(list_.take()); }
  Step serve(const Place &place, Place *next) { return checked(list_.serve(place, next)); }
  Step hand_off() { return checked(list_.hand_off(now_)); }
  void close(const Place &place) {
    list_.close(place);
    EXPECT_STREQ(list_.check(), nullptr);
  }
  // `a`, `b` and `c` wait, and have `first`.
  void three_wait() {
    open(first_);
    for (Caller *caller : {&a_, &b_, &c_}) join(*caller);
  }

  Nanos now_ = 5'000 * kMs;
  Place first_, other_;
  Caller a_, b_, c_;
  Waitlist list_;
};

TEST_F(WaitlistTest, starts_without_callers_and_place) {
  EXPECT_STREQ(list_.check(), nullptr);
  EXPECT_EQ(list_.state(), State::kIdle);
  EXPECT_EQ(list_.front(), nullptr);
  EXPECT_EQ(list_.second(), nullptr);
  EXPECT_EQ(list_.place(), nullptr);
}

TEST_F(WaitlistTest, callers_share_one_place) {
  EXPECT_EQ(open(first_).transition, Transition::kNone);
  EXPECT_EQ(list_.state(), State::kVacant);
  EXPECT_EQ(join(a_).transition, Transition::kNone);
  EXPECT_EQ(join(b_).transition, Transition::kNone);
  EXPECT_EQ(list_.state(), State::kQueued);
  EXPECT_EQ(list_.place(), &first_);
  EXPECT_EQ(list_.front(), &a_);
  EXPECT_EQ(list_.second(), &b_);
}

TEST_F(WaitlistTest, second_place_is_a_defect) {
  three_wait();
  EXPECT_EQ(open(other_).transition, Transition::kDefect);
  EXPECT_EQ(open(first_).transition, Transition::kDefect);
  EXPECT_EQ(list_.place(), &first_);
}

TEST_F(WaitlistTest, caller_without_a_place_is_a_defect) {
  EXPECT_EQ(join(a_).transition, Transition::kDefect);
  EXPECT_FALSE(a_.is_listed());
  EXPECT_EQ(list_.state(), State::kIdle);
}

TEST_F(WaitlistTest, caller_that_waits_twice_is_a_defect) {
  three_wait();
  EXPECT_EQ(join(b_).transition, Transition::kDefect);
  EXPECT_EQ(take().caller, &a_);
  EXPECT_EQ(take().caller, &b_);
  EXPECT_EQ(take().caller, &c_);
}

// ---- callers that leave -------------------------------------------------------------------------

TEST_F(WaitlistTest, any_caller_may_leave) {
  three_wait();
  EXPECT_EQ(leave(b_).caller, &b_);
  EXPECT_FALSE(b_.is_listed());
  EXPECT_EQ(list_.second(), &c_);
  EXPECT_EQ(leave(a_).transition, Transition::kNone);
  EXPECT_EQ(list_.front(), &c_);
  EXPECT_EQ(list_.second(), nullptr);
  EXPECT_EQ(leave(c_).transition, Transition::kVacated) << "its place is of no use";
  EXPECT_EQ(list_.state(), State::kVacant);
  close(first_);
  EXPECT_EQ(list_.state(), State::kIdle);
}

TEST_F(WaitlistTest, last_caller_may_leave_and_join_again) {
  three_wait();
  leave(c_);
  join(c_);
  EXPECT_EQ(take().caller, &a_);
  EXPECT_EQ(take().caller, &b_);
  EXPECT_EQ(take().transition, Transition::kVacated);
}

TEST_F(WaitlistTest, leaving_twice_is_a_defect) {
  three_wait();
  leave(a_);
  EXPECT_EQ(leave(a_).transition, Transition::kDefect);
  EXPECT_EQ(list_.front(), &b_);
}

TEST_F(WaitlistTest, answering_no_caller_is_a_defect) {
  EXPECT_EQ(take().transition, Transition::kDefect);
  EXPECT_EQ(hand_off().transition, Transition::kDefect);
  open(first_);
  EXPECT_EQ(take().transition, Transition::kDefect);
  EXPECT_EQ(hand_off().transition, Transition::kDefect);
  EXPECT_EQ(serve(first_, nullptr).transition, Transition::kDefect);
  EXPECT_EQ(list_.state(), State::kVacant) << "a defect changes nothing";
}

// ---- a grant ------------------------------------------------------------------------------------

TEST_F(WaitlistTest, grant_uses_up_the_place) {
  three_wait();
  EXPECT_EQ(serve(first_, &other_).caller, &a_);
  EXPECT_EQ(list_.place(), &other_);
  EXPECT_EQ(list_.front(), &b_);
  EXPECT_EQ(serve(other_, &first_).caller, &b_);
  EXPECT_EQ(serve(first_, nullptr).caller, &c_);
  EXPECT_EQ(list_.state(), State::kIdle) << "nothing is left on the server";
}

TEST_F(WaitlistTest, grant_without_a_new_place_for_the_others_is_a_defect) {
  three_wait();
  EXPECT_EQ(serve(first_, nullptr).transition, Transition::kDefect);
  EXPECT_EQ(list_.front(), &a_);
  EXPECT_EQ(list_.place(), &first_);
}

TEST_F(WaitlistTest, grant_with_a_new_place_but_no_others_is_a_defect) {
  open(first_);
  join(a_);
  EXPECT_EQ(serve(first_, &other_).transition, Transition::kDefect);
  EXPECT_EQ(list_.place(), &first_);
}

TEST_F(WaitlistTest, grant_to_another_place_is_a_defect) {
  three_wait();
  EXPECT_EQ(serve(other_, &first_).transition, Transition::kDefect);
  EXPECT_EQ(list_.front(), &a_);
}

// ---- local hand-off -----------------------------------------------------------------------------

TEST_F(WaitlistTest, hand_off_keeps_the_place_for_others) {
  three_wait();
  const Step step = hand_off();
  EXPECT_EQ(step.caller, &a_);
  EXPECT_EQ(step.due, kNever);
  EXPECT_EQ(list_.place(), &first_);
  EXPECT_EQ(list_.front(), &b_);
}

TEST_F(WaitlistTest, hand_off_to_the_last_caller_keeps_a_vacant_place_briefly) {
  open(first_);
  join(a_);
  const Step step = hand_off();
  EXPECT_EQ(step.caller, &a_);
  EXPECT_GT(step.due, now_);
  EXPECT_LE(step.due, now_ + kLongestVacancy);
  EXPECT_EQ(list_.state(), State::kVacant);
  join(b_);
  EXPECT_EQ(list_.state(), State::kQueued) << "the next caller finds a place";
}

TEST_F(WaitlistTest, closing_another_place_changes_nothing) {
  three_wait();
  close(other_);
  EXPECT_EQ(list_.place(), &first_);
}

TEST_F(WaitlistTest, turns_of_other_libraries_limit_hand_offs) {
  EXPECT_EQ(Waitlist::handoff_limit(4, 0), 4) << "no turn";
  EXPECT_EQ(Waitlist::handoff_limit(4, -1), 4) << "only where others were seen: scripts count";
  EXPECT_EQ(Waitlist::handoff_limit(4, 3), 2) << "the grant by the server is one of three";
  EXPECT_EQ(Waitlist::handoff_limit(4, 1), 0) << "each grant goes by the server";
  EXPECT_EQ(Waitlist::handoff_limit(4, 100), 4);
  EXPECT_EQ(Waitlist::handoff_limit(1'000, 0), kMaxLocalHandoffs) << "each has a fence of its own";
  EXPECT_EQ(Waitlist::handoff_limit(0, 0), 0);
}

// ---- a walk -------------------------------------------------------------------------------------

// Random events beside a plain list. Each caller is answered once, in the order of arrival.
TEST_F(WaitlistTest, random_walks_agree_with_a_plain_list) {
  for (unsigned seed = 1; seed <= 50; seed++) {
    std::mt19937 random(seed);
    Waitlist list;
    std::vector<std::unique_ptr<Caller>> callers;
    std::vector<std::unique_ptr<Place>> places;
    std::deque<Caller *> waiting;
    const auto new_place = [&places] {
      places.push_back(std::make_unique<Place>());
      return places.back().get();
    };
    for (int i = 0; i < 300; i++) {
      const unsigned event = random() % 8;
      Step step;
      Caller *expected = waiting.empty() ? nullptr : waiting.front();
      if (event < 4) {
        if (list.place() == nullptr) list.open(*new_place());
        callers.push_back(std::make_unique<Caller>());
        step = list.join(*callers.back());
        waiting.push_back(callers.back().get());
        expected = nullptr;
      } else if (waiting.empty()) {
        if (list.place() != nullptr) list.close(*list.place());
      } else if (event == 4) {
        expected = waiting[random() % waiting.size()];
        step = list.leave(*expected);
      } else if (event == 5) {
        step = list.hand_off(now_);
      } else if (event == 6) {
        Place *used = list.place();
        step = list.serve(*used, waiting.size() > 1 ? new_place() : nullptr);
        EXPECT_NE(list.place(), used);
      } else {
        step = list.take();
      }
      waiting.erase(std::remove(waiting.begin(), waiting.end(), expected), waiting.end());
      ASSERT_NE(step.transition, Transition::kDefect) << "seed " << seed << ", event " << i;
      ASSERT_EQ(step.caller, expected) << "seed " << seed << ", event " << i;
      ASSERT_STREQ(list.check(), nullptr) << "seed " << seed << ", event " << i;
      ASSERT_EQ(list.front(), waiting.empty() ? nullptr : waiting.front());
      ASSERT_EQ(list.second(), waiting.size() < 2 ? nullptr : waiting[1]);
    }
  }
}

}  // namespace
}  // namespace redlatch::lock
