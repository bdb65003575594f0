// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: what may be left on the server is removed, once, and the caller of a release gets its
// result. Method: the cleanup machine alone, with made events. After each of them its model is
// checked.
#include "lock/cleanup.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlatch::lock {
namespace {

using Command = Cleanup::Command;
using Result = Cleanup::Result;
using State = Cleanup::State;
using Step = Cleanup::Step;

constexpr Nanos kTtl = 30'000 * kMs;
constexpr Nanos kRetry = 1'000 * kMs;

class CleanupTest : public ::testing::Test {
 protected:
  // A queued token, one that holds the lock, and one try that got no answer.
  static ServerFootprint queued() {
    ServerFootprint left;
    left.has_member = left.may_be_queued = true;
    left.ttl = kTtl;
    return left;
  }
  ServerFootprint held() const {
    ServerFootprint left;
    left.has_member = left.may_be_held = true;
    left.held_until = now_ + 20'000 * kMs;
    left.ttl = kTtl;
    return left;
  }
  ServerFootprint tried() const {
    ServerFootprint left;
    left.may_be_held = true;
    left.late_apply_until = now_ + kTtl;
    left.ttl = kTtl;
    return left;
  }

  // Does what the client does with a step: sends the command, if it can.
  Step take(const Step &step) {
    EXPECT_STREQ(cleanup_.check(), nullptr);
    if (step.command == Command::kNone || !can_send_) return step;
    EXPECT_TRUE(is_up_) << "a command without a connection";
    cleanup_.sent(step.command);
    sent_.push_back(step.command);
    EXPECT_STREQ(cleanup_.check(), nullptr);
    return step;
  }
  Step start(const ServerFootprint &left, Nanos not_before = 0) {
    return take(cleanup_.start(left, not_before, now_, is_up_));
  }
  Step answer(int64_t result) {
    const bool is_cancel = !sent_.empty() && sent_.back() == Command::kCancel;
    return take(is_cancel ? cleanup_.on_cancel_answer(result, now_, is_up_)
                          : cleanup_.on_release_answer(result, now_, is_up_));
  }
  Step due() { return take(cleanup_.on_due(now_, is_up_)); }
  void lose_answer(Nanos sent_at) {
    cleanup_.on_answer_lost(sent_at);
    EXPECT_STREQ(cleanup_.check(), nullptr);
  }
  State state() const { return cleanup_.state(); }

  using Commands = std::vector<Command>;

  Nanos now_ = 5'000 * kMs;
  bool is_up_ = true;
  bool can_send_ = true;  // there is memory for it
  Commands sent_;
  Cleanup cleanup_;
};

// ---- the plain ways ----------------------------------------------------------------------------

TEST_F(CleanupTest, release_is_sent_and_ends_with_its_answer) {
  const Step sent = start(held());
  EXPECT_EQ(sent.command, Command::kRelease);
  EXPECT_EQ(sent.due, now_ + kRetry);
  EXPECT_FALSE(sent.is_over);
  EXPECT_EQ(state(), State::kSent);
  const Step done = answer(1);
  EXPECT_EQ(done.result, Result::kReleased);
  EXPECT_TRUE(done.is_over);
  EXPECT_EQ(done.command, Command::kNone);
  EXPECT_EQ(state(), State::kOver);
  EXPECT_TRUE(cleanup_.was_answered());
}

TEST_F(CleanupTest, place_in_the_queue_is_cancelled) {
  start(queued());
  EXPECT_EQ(sent_, Commands{Command::kCancel});
  const Step done = answer(1);
  EXPECT_TRUE(done.is_over);
  EXPECT_EQ(sent_.size(), 1u) << "it did not hold the key";
}

TEST_F(CleanupTest, grant_that_came_before_the_cancel_is_released) {
  start(queued());
  const Step next = answer(2);
  EXPECT_EQ(next.command, Command::kRelease);
  EXPECT_FALSE(next.is_over);
  EXPECT_FALSE(cleanup_.was_answered());
  EXPECT_TRUE(answer(1).is_over);
  EXPECT_EQ(sent_, (Commands{Command::kCancel, Command::kRelease}));
}

TEST_F(CleanupTest, cancel_goes_before_the_release) {
  ServerFootprint left = held();
  left.may_be_queued = true;
  start(left);
  EXPECT_EQ(sent_, Commands{Command::kCancel});
  answer(0);
  EXPECT_EQ(sent_, (Commands{Command::kCancel, Command::kRelease}));
  EXPECT_TRUE(answer(1).is_over);
}

TEST_F(CleanupTest, acquisition_that_was_never_sent_needs_no_cleanup) {
  const Step done = start({});
  EXPECT_TRUE(done.is_over);
  EXPECT_EQ(done.result, Result::kReleased);
  EXPECT_TRUE(sent_.empty());
}

// ---- results of a release ----------------------------------------------------------------------

TEST_F(CleanupTest, release_reports_that_the_owner_still_holds_the_lock) {
  start(held());
  const Step done = answer(0);
  EXPECT_EQ(done.result, Result::kStillHeld);
  EXPECT_TRUE(done.is_over);
}

TEST_F(CleanupTest, release_of_a_lock_with_another_holder_is_a_loss) {
  start(held());
  const Step done = answer(-1);
  EXPECT_EQ(done.result, Result::kLost);
  EXPECT_TRUE(done.is_over);
}

TEST_F(CleanupTest, repeated_release_that_finds_no_lease_counts_as_released) {
  start(held());
  lose_answer(now_);
  due();
  const Step done = answer(-1);
  EXPECT_EQ(done.result, Result::kReleased);
  EXPECT_TRUE(done.is_over);
}

// It may have expired before that release arrived.
TEST_F(CleanupTest, release_sent_after_the_deadline_is_no_proof_of_a_release) {
  const ServerFootprint left = held();
  start(left);
  lose_answer(left.held_until);
  due();
  EXPECT_EQ(answer(-1).result, Result::kLost);
}

TEST_F(CleanupTest, lost_cancel_is_no_proof_of_a_release) {
  ServerFootprint left = held();
  left.may_be_queued = true;
  start(left);
  lose_answer(now_);
  due();
  answer(0);
  EXPECT_EQ(answer(-1).result, Result::kLost);
}

TEST_F(CleanupTest, provisional_lease_unknown_to_the_server_is_cancelled_too) {
  ServerFootprint left = held();
  left.is_provisional = true;
  start(left);
  const Step next = answer(-1);
  EXPECT_EQ(next.result, Result::kLost) << "the caller is answered at once";
  EXPECT_EQ(next.command, Command::kCancel);
  EXPECT_FALSE(next.is_over);
  const Step done = answer(1);
  EXPECT_TRUE(done.is_over);
  EXPECT_EQ(sent_, (Commands{Command::kRelease, Command::kCancel}));
}

TEST_F(CleanupTest, provisional_lease_that_the_cancel_finds_held_is_released_again) {
  ServerFootprint left = held();
  left.is_provisional = true;
  start(left);
  answer(-1);
  EXPECT_EQ(answer(2).command, Command::kRelease);
  EXPECT_TRUE(answer(1).is_over);
}

TEST_F(CleanupTest, provisional_lease_without_a_member_is_not_cancelled) {
  ServerFootprint left = held();
  left.is_provisional = true;
  left.has_member = false;
  start(left);
  const Step done = answer(-1);
  EXPECT_EQ(done.result, Result::kLost);
  EXPECT_TRUE(done.is_over);
}

// ---- repeats -----------------------------------------------------------------------------------

TEST_F(CleanupTest, cleanup_without_a_connection_waits_for_one) {
  is_up_ = false;
  const Step waits = start(held());
  EXPECT_EQ(waits.command, Command::kNone);
  EXPECT_EQ(waits.due, now_ + kRetry);
  EXPECT_EQ(state(), State::kDue);
  is_up_ = true;
  now_ += 10 * kMs;
  EXPECT_EQ(due().command, Command::kRelease);
}

TEST_F(CleanupTest, command_that_ran_out_of_memory_is_sent_again_when_due) {
  can_send_ = false;
  const Step failed = start(held());
  EXPECT_EQ(failed.command, Command::kRelease);
  EXPECT_EQ(state(), State::kDue);
  can_send_ = true;
  now_ = failed.due;
  EXPECT_EQ(due().command, Command::kRelease);
  EXPECT_EQ(state(), State::kSent);
}

TEST_F(CleanupTest, one_command_is_under_way_at_a_time) {
  start(held());
  now_ += kRetry;
  const Step waits = due();
  EXPECT_EQ(waits.command, Command::kNone);
  EXPECT_EQ(waits.due, now_ + kRetry);
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(CleanupTest, command_whose_answer_was_lost_is_sent_again) {
  start(held());
  lose_answer(now_);
  EXPECT_EQ(state(), State::kDue);
  EXPECT_EQ(due().command, Command::kRelease);
  EXPECT_TRUE(answer(1).is_over);
}

TEST_F(CleanupTest, refused_command_is_sent_again_when_due_and_not_before) {
  const Step sent = start(held());
  now_ += 50 * kMs;
  const Step refused = take(cleanup_.on_refused());
  EXPECT_EQ(refused.command, Command::kNone);
  EXPECT_EQ(refused.due, sent.due) << "a refusal does not put it off";
  EXPECT_EQ(refused.result, Result::kNone) << "the caller gets the server's words";
  now_ = sent.due;
  EXPECT_EQ(due().command, Command::kRelease);
}

TEST_F(CleanupTest, command_with_an_unknown_script_is_sent_again_at_once) {
  start(queued());
  const Step again = take(cleanup_.on_unknown_script(now_, is_up_));
  EXPECT_EQ(again.command, Command::kCancel);
  EXPECT_EQ(state(), State::kSent);
}

// ---- the end without an answer -----------------------------------------------------------------

TEST_F(CleanupTest, release_is_given_up_when_the_lease_has_expired_on_the_server) {
  const ServerFootprint left = held();
  is_up_ = false;
  start(left);
  now_ = left.held_until + kTtl - 1;
  EXPECT_FALSE(due().is_over);
  now_++;
  const Step done = due();
  EXPECT_TRUE(done.is_over);
  EXPECT_EQ(done.result, Result::kUnknown);
  EXPECT_FALSE(cleanup_.was_answered());
}

TEST_F(CleanupTest, cancel_is_given_up_one_ttl_after_the_start) {
  is_up_ = false;
  const Nanos began = now_;
  start(queued());
  now_ = began + kTtl - 1;
  EXPECT_FALSE(due().is_over);
  now_++;
  EXPECT_TRUE(due().is_over);
}

// ---- notice to the holder ----------------------------------------------------------------------

TEST_F(CleanupTest, lost_lock_is_released_when_the_holders_time_to_stop_has_passed) {
  const Nanos notice = now_ + 300 * kMs;
  const Step waits = start(held(), notice);
  EXPECT_EQ(waits.command, Command::kNone);
  EXPECT_EQ(waits.due, notice);
  EXPECT_EQ(state(), State::kNotice);
  now_ = notice - 1;
  EXPECT_EQ(due().command, Command::kNone) << "a new connection does not shorten it";
  now_ = notice;
  EXPECT_EQ(due().command, Command::kRelease);
}

TEST_F(CleanupTest, shutdown_releases_without_the_time_to_stop) {
  start(held(), now_ + 300 * kMs);
  EXPECT_EQ(take(cleanup_.retry_now(now_, is_up_)).command, Command::kRelease);
}

TEST_F(CleanupTest, shutdown_does_not_send_twice) {
  start(held());
  EXPECT_EQ(take(cleanup_.retry_now(now_, is_up_)).command, Command::kNone);
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(CleanupTest, pushed_grant_does_not_shorten_the_time_to_stop) {
  const Nanos notice = now_ + 300 * kMs;
  start(held(), notice);
  const Step waits = take(cleanup_.on_grant(now_, is_up_));
  EXPECT_EQ(waits.command, Command::kNone);
  EXPECT_EQ(waits.due, notice);
}

// ---- messages of a grant -----------------------------------------------------------------------

TEST_F(CleanupTest, pushed_grant_is_released_even_if_the_cancel_found_nothing) {
  start(queued());
  EXPECT_EQ(take(cleanup_.on_grant(now_, is_up_)).command, Command::kNone);
  EXPECT_EQ(answer(0).command, Command::kRelease);
  EXPECT_TRUE(answer(1).is_over);
}

TEST_F(CleanupTest, pushed_grant_after_the_release_changes_nothing) {
  start(held());
  take(cleanup_.on_grant(now_, is_up_));
  EXPECT_TRUE(answer(1).is_over);
  EXPECT_EQ(sent_.size(), 1u);
}

// ---- an ACQUIRE that may take effect late ------------------------------------------------------

TEST_F(CleanupTest, unanswered_try_is_released_until_it_can_no_longer_take_effect) {
  const ServerFootprint left = tried();
  start(left);
  EXPECT_EQ(sent_, Commands{Command::kRelease});
  const Step waits = answer(-1);
  EXPECT_FALSE(waits.is_over) << "it may still be under way";
  EXPECT_EQ(waits.result, Result::kLost);
  EXPECT_TRUE(cleanup_.was_answered()) << "a client need not wait for that to end";
  EXPECT_EQ(waits.due, now_ + kRetry);
  now_ = waits.due;
  EXPECT_EQ(due().command, Command::kRelease);
  answer(1);
  now_ = left.late_apply_until;
  EXPECT_TRUE(due().is_over);
}

TEST_F(CleanupTest, late_acquire_that_may_queue_is_cancelled_and_released_again) {
  ServerFootprint left = queued();
  left.late_apply_until = now_ + kTtl;
  start(left);
  const Step waits = answer(1);
  EXPECT_FALSE(waits.is_over);
  now_ = waits.due;
  due();
  answer(0);
  EXPECT_EQ(sent_, (Commands{Command::kCancel, Command::kCancel, Command::kRelease}));
}

TEST_F(CleanupTest, last_retry_is_when_the_late_acquire_can_no_longer_take_effect) {
  ServerFootprint left = held();
  left.late_apply_until = now_ + 300 * kMs;
  start(left);
  EXPECT_EQ(answer(1).due, left.late_apply_until) << "not a whole pause later";
}

TEST_F(CleanupTest, acquire_lost_during_the_cleanup_prolongs_the_cleanup) {
  start(queued());
  const Nanos until = now_ + 2 * kTtl;
  cleanup_.on_acquire_lost(until);
  lose_answer(now_);
  due();
  EXPECT_FALSE(answer(1).is_over);
  now_ = until - 1;
  EXPECT_FALSE(due().is_over);
}

TEST_F(CleanupTest, acquire_that_expires_earlier_does_not_shorten_the_cleanup) {
  ServerFootprint left = queued();
  left.late_apply_until = now_ + kTtl;
  start(left);
  cleanup_.on_acquire_lost(now_ + 1);
  EXPECT_FALSE(answer(1).is_over);
}

TEST_F(CleanupTest, cleanup_of_a_removed_lease_ends_when_no_late_acquire_is_possible) {
  ServerFootprint left;
  left.has_member = true;
  left.late_apply_until = now_ + 5'000 * kMs;
  left.held_until = now_ + 20'000 * kMs;
  left.ttl = kTtl;
  const Step waits = start(left);
  EXPECT_TRUE(sent_.empty()) << "the server has just said that there is nothing";
  EXPECT_FALSE(waits.is_over);
  now_ = left.late_apply_until;
  EXPECT_TRUE(due().is_over) << "not only when that lease would have expired";
}

// ---- a lease that was detached -----------------------------------------------------------------

class DetachedTest : public CleanupTest {
 protected:
  ServerFootprint detached() const {
    ServerFootprint left = held();
    left.may_be_queued = left.is_detached = true;
    left.late_apply_until = now_ + kTtl;
    return left;
  }
};

TEST_F(DetachedTest, detached_token_is_cancelled_but_not_released) {
  start(detached());
  EXPECT_EQ(sent_, Commands{Command::kCancel});
  EXPECT_TRUE(answer(2).is_over) << "another client holds with this token";
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(DetachedTest, pushed_grant_for_a_detached_token_changes_nothing) {
  const Step sent = start(detached());
  const Step same = take(cleanup_.on_grant(now_ + kMs, is_up_));
  EXPECT_EQ(same.command, Command::kNone);
  EXPECT_EQ(same.due, sent.due);
  EXPECT_TRUE(answer(0).is_over);
}

// ---- what must not happen ----------------------------------------------------------------------

TEST_F(CleanupTest, answer_to_a_command_that_was_not_sent_is_a_defect) {
  is_up_ = false;
  start(held());
  EXPECT_EQ(cleanup_.on_release_answer(1, now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(cleanup_.on_cancel_answer(1, now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(cleanup_.on_refused().result, Result::kDefect);
  EXPECT_EQ(cleanup_.on_unknown_script(now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(state(), State::kDue);
  EXPECT_FALSE(cleanup_.was_answered());
}

TEST_F(CleanupTest, answer_to_the_other_command_is_a_defect) {
  start(held());
  EXPECT_EQ(cleanup_.on_cancel_answer(1, now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(state(), State::kSent);
}

TEST_F(CleanupTest, events_before_the_start_and_a_second_start_are_defects) {
  EXPECT_EQ(cleanup_.on_due(now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(cleanup_.on_grant(now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(cleanup_.retry_now(now_, is_up_).result, Result::kDefect);
  start(held());
  EXPECT_EQ(cleanup_.start(held(), 0, now_, is_up_).result, Result::kDefect);
}

TEST_F(CleanupTest, events_after_the_end_are_defects) {
  start(held());
  answer(1);
  EXPECT_EQ(cleanup_.on_due(now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(cleanup_.on_grant(now_, is_up_).result, Result::kDefect);
  EXPECT_EQ(cleanup_.retry_now(now_, is_up_).result, Result::kDefect);
  cleanup_.on_answer_lost(now_);
  EXPECT_EQ(state(), State::kOver);
}

TEST_F(CleanupTest, check_names_the_violated_rule) {
  ServerFootprint left = held();
  left.has_member = false;
  left.may_be_queued = true;
  (void)cleanup_.start(left, 0, now_, is_up_);
  EXPECT_STREQ(cleanup_.check(), "only a member can be queued");
}

// ---- a slot of a cluster that is being moved ---------------------------------------------------

TEST_F(CleanupTest, postponed_command_is_sent_again_at_the_given_time) {
  for (const bool is_queued : {false, true}) {
    cleanup_ = Cleanup();
    sent_.clear();
    start(is_queued ? queued() : held());
    const Nanos retry_at = now_ + 20 * kMs;
    const Step postponed = take(cleanup_.on_postponed(retry_at));
    EXPECT_EQ(postponed.command, Command::kNone);
    EXPECT_EQ(postponed.result, Result::kNone) << "the caller of the release waits";
    EXPECT_EQ(postponed.due, retry_at);
    EXPECT_EQ(state(), State::kDue);
    EXPECT_FALSE(cleanup_.was_answered());
    now_ = retry_at;
    EXPECT_EQ(due().command, is_queued ? Command::kCancel : Command::kRelease);
    EXPECT_TRUE(answer(1).is_over);
    EXPECT_EQ(sent_.size(), 2u);
  }
}

TEST_F(CleanupTest, postponing_a_command_that_was_not_sent_is_a_defect) {
  is_up_ = false;
  EXPECT_EQ(cleanup_.on_postponed(now_).result, Result::kDefect);
  start(held());
  EXPECT_EQ(cleanup_.on_postponed(now_).result, Result::kDefect);
}

}  // namespace
}  // namespace redlatch::lock
