// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a token is asked for until it is granted or given up, a grant is believed for no longer
// than it is certain, and what may be left on the server is known. Method: the machine of an
// acquisition alone, with made events. After each of them its model is checked.
#include "lock/acquisition.h"

#include <gtest/gtest.h>

#include <string>

#include "timing/lease_clock.h"

namespace redlatch::lock {
namespace {

using Command = Acquisition::Command;
using Front = Acquisition::Front;
using Message = Acquisition::Message;
using State = Acquisition::State;
using Step = Acquisition::Step;
using Transition = Acquisition::Transition;

constexpr Nanos kTtl = 30'000 * kMs;
constexpr Nanos kProvisional = 3'000 * kMs;
constexpr int64_t kFence = 1'700'000'000'000'000;
constexpr int64_t kServerMs = 1'700'000'000'000;
constexpr char kDigest[] = "12345678";

class AcquisitionTest : public ::testing::Test {
 protected:
  AcquisitionTest() { asked_.open(true, kProvisional / kMs, kTtl); }

  Step checked(const Step &step) {
    EXPECT_STREQ(asked_.check(), nullptr);
    return step;
  }
  // Does what the client does with a grant.
  Step take(const Step &step) {
    EXPECT_STREQ(asked_.check(), nullptr);
    if (step.transition == Transition::kGranted) asked_.served();
    return checked(step);
  }
  void ask() {
    EXPECT_TRUE(asked_.may_ask(true));
    asked_.prepare(front_);
    asked_.sent();
    sent_at_ = now_;
    EXPECT_STREQ(asked_.check(), nullptr);
  }
  Step grant() {
    asked_.on_answered();
    return take(asked_.on_granted({sent_at_, asked_.ttl(), kFence, kServerMs}, front_, now_));
  }
  Step queue(Nanos delay = 15'000 * kMs, bool has_more = false) {
    asked_.on_answered();
    EXPECT_EQ(checked(asked_.on_queued("ticket", kDigest)).transition, Transition::kNone);
    return checked(asked_.wait(delay, has_more, front_, now_));
  }
  Message message() const {
    return {.key_digest = kDigest,
            .provisional_ms = kProvisional / kMs,
            .granted_at = now_ - 5 * kMs,
            .fence = kFence,
            .server_ms = kServerMs,
            .is_plausible = true,
            .is_counted = true};
  }
  Step tell(const Message &message) { return take(asked_.on_message(message, front_, now_)); }
  void expect_asked_again(const Step &step) {
    EXPECT_EQ(step.transition, Transition::kNone);
    EXPECT_EQ(step.command, Command::kAcquire) << "the answer decides";
    EXPECT_EQ(asked_.state(), State::kQueued);
  }

  Nanos now_ = 5'000 * kMs;
  Nanos sent_at_ = 0;
  Front front_{true, false, kTtl};
  Acquisition asked_;
};

// One try: busy instead of queued.
class OneTryTest : public AcquisitionTest {
 protected:
  OneTryTest() { asked_.open(false, kProvisional / kMs, kTtl); }
};

// ---- grants by reply ---------------------------------------------------------------------------

TEST_F(AcquisitionTest, validity_counts_from_sending_the_acquire) {
  ask();
  now_ += 40 * kMs;
  const Step step = grant();
  EXPECT_EQ(step.transition, Transition::kGranted);
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(sent_at_, kTtl));
  EXPECT_EQ(step.grant.renewal_at, sent_at_ + kTtl / 3);
  EXPECT_EQ(step.grant.fence, kFence);
  EXPECT_EQ(step.grant.since_ms, kServerMs);
  EXPECT_FALSE(step.grant.is_provisional);
  EXPECT_EQ(asked_.state(), State::kGranted);
}

TEST_F(AcquisitionTest, acquire_is_sent_with_the_ttl_of_the_first_caller) {
  front_.ttl = 10'000 * kMs;
  ask();
  EXPECT_EQ(asked_.ttl(), 10'000 * kMs);
  front_.is_there = false;
  asked_.on_answered();
  asked_.prepare(front_);
  EXPECT_EQ(asked_.ttl(), 10'000 * kMs) << "without a caller as before";
}

TEST_F(AcquisitionTest, caller_with_a_longer_ttl_than_the_request_extends_at_once) {
  front_.ttl = 5'000 * kMs;
  ask();
  front_.ttl = kTtl;  // the first caller has left
  const Step step = grant();
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(sent_at_, 5'000 * kMs));
  EXPECT_TRUE(step.grant.is_provisional);
  EXPECT_EQ(step.grant.renewal_at, now_);
}

TEST_F(AcquisitionTest, caller_with_a_shorter_ttl_than_the_request_gets_its_own_ttl) {
  ask();
  front_.ttl = 5'000 * kMs;
  const Step step = grant();
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(sent_at_, 5'000 * kMs));
  EXPECT_FALSE(step.grant.is_provisional);
}

TEST_F(AcquisitionTest, grant_without_validity_is_requested_once_more) {
  ask();
  now_ = timing::deadline_of(sent_at_, kTtl);
  const Step again = grant();
  EXPECT_EQ(again.transition, Transition::kNone);
  EXPECT_EQ(again.command, Command::kAcquire);
  ask();
  now_ = timing::deadline_of(sent_at_, kTtl);
  EXPECT_EQ(grant().transition, Transition::kTooShort);
}

TEST_F(AcquisitionTest, late_grants_count_only_if_consecutive) {
  ask();
  now_ += kTtl;
  grant();
  ask();
  queue();
  ask();
  now_ += kTtl;
  EXPECT_EQ(grant().command, Command::kAcquire);
}

TEST_F(AcquisitionTest, grant_that_could_not_be_served_is_granted_again) {
  ask();
  asked_.on_answered();
  const auto answer = Acquisition::Answer{sent_at_, kTtl, kFence, kServerMs};
  EXPECT_EQ(checked(asked_.on_granted(answer, front_, now_)).transition, Transition::kGranted);
  EXPECT_EQ(asked_.state(), State::kAsking) << "no memory for the next place";
  ask();
  EXPECT_EQ(grant().transition, Transition::kGranted);
}

TEST_F(AcquisitionTest, grant_without_a_caller_is_unwanted) {
  ask();
  front_.is_there = false;
  EXPECT_EQ(grant().transition, Transition::kUnwanted);
  EXPECT_EQ(asked_.state(), State::kAsking);
}

// ---- waiting -----------------------------------------------------------------------------------

TEST_F(AcquisitionTest, queued_acquisition_polls_after_the_given_delay) {
  ask();
  const Step step = queue(700 * kMs);
  EXPECT_EQ(step.command, Command::kNone);
  EXPECT_EQ(step.due, now_ + 700 * kMs);
  EXPECT_EQ(asked_.state(), State::kQueued);
  EXPECT_EQ(asked_.ticket(), "ticket");
  EXPECT_EQ(asked_.key_digest(), kDigest);
}

TEST_F(AcquisitionTest, one_acquire_is_under_way_at_a_time) {
  EXPECT_FALSE(asked_.may_ask(false));
  ask();
  EXPECT_FALSE(asked_.may_ask(true));
  queue();
  EXPECT_TRUE(asked_.may_ask(true));
}

TEST_F(AcquisitionTest, hint_before_the_answer_brings_the_next_poll_forward) {
  ask();
  EXPECT_TRUE(asked_.keep_hint(now_ + 80 * kMs));
  EXPECT_TRUE(asked_.keep_hint(now_ + 50 * kMs));
  EXPECT_TRUE(asked_.keep_hint(now_ + 90 * kMs));
  EXPECT_EQ(queue().due, now_ + 50 * kMs) << "the earliest counts";
  ask();
  EXPECT_EQ(queue().due, now_ + 15'000 * kMs) << "once";
}

TEST_F(AcquisitionTest, hint_with_no_acquire_under_way_is_not_kept) {
  ask();
  queue();
  EXPECT_FALSE(asked_.keep_hint(now_ + 50 * kMs));
}

TEST_F(AcquisitionTest, acquire_that_dropped_many_dead_waiters_is_repeated_at_once) {
  ask();
  EXPECT_EQ(queue(15'000 * kMs, true).command, Command::kAcquire);
}

TEST_F(AcquisitionTest, place_without_a_caller_is_due_at_once_and_sends_no_acquire) {
  ask();
  front_.is_there = false;
  const Step step = queue(15'000 * kMs, true);
  EXPECT_EQ(step.command, Command::kNone);
  EXPECT_EQ(step.due, now_);
}

TEST_F(AcquisitionTest, temporary_refusal_is_retried_with_growing_pauses) {
  Nanos pause = 0;
  for (int i = 0; i < 5; i++) {
    ask();
    asked_.on_answered();
    const Step step = checked(asked_.on_postponed(now_, 0));
    EXPECT_GT(step.due - now_, pause);
    pause = step.due - now_;
    now_ = step.due;
  }
  EXPECT_LE(pause, 500 * kMs);
}

TEST_F(AcquisitionTest, acquire_that_ran_out_of_memory_is_retried_soon) {
  asked_.prepare(front_);
  const Step step = checked(asked_.not_sent(now_));
  EXPECT_EQ(step.transition, Transition::kNone);
  EXPECT_EQ(step.due, now_ + 20 * kMs);
}

TEST_F(OneTryTest, out_of_memory_fails_the_try) {
  asked_.prepare(front_);
  EXPECT_EQ(checked(asked_.not_sent(now_)).transition, Transition::kFailed);
}

TEST_F(OneTryTest, is_never_queued) {
  ask();
  asked_.on_answered();
  EXPECT_EQ(asked_.on_queued("ticket", kDigest).transition, Transition::kDefect);
}

// ---- grants by message -------------------------------------------------------------------------

class MessageTest : public AcquisitionTest {
 protected:
  MessageTest() {
    ask();
    queue();
  }
};

TEST_F(MessageTest, pushed_grant_is_a_provisional_lease_from_the_time_of_the_grant) {
  const Step step = tell(message());
  EXPECT_EQ(step.transition, Transition::kGranted);
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(now_ - 5 * kMs, kProvisional));
  EXPECT_EQ(step.grant.renewal_at, now_ - 5 * kMs + kProvisional / 3);
  EXPECT_TRUE(step.grant.is_provisional);
  EXPECT_EQ(step.grant.fence, kFence);
}

TEST_F(MessageTest, pushed_grant_is_not_valid_longer_than_the_waiter_requested) {
  Message forged = message();
  forged.provisional_ms = 3'600'000;
  EXPECT_EQ(tell(forged).grant.deadline, timing::deadline_of(now_ - 5 * kMs, kProvisional));
}

TEST_F(MessageTest, pushed_grant_is_not_valid_longer_than_the_callers_ttl) {
  front_.ttl = 1'000 * kMs;
  const Step step = tell(message());
  EXPECT_EQ(step.grant.deadline, now_ + 1'000 * kMs);
  EXPECT_EQ(step.grant.renewal_at, now_ - 5 * kMs + front_.ttl / 3) << "not when the lease is over";
}

TEST_F(MessageTest, late_pushed_grant_is_renewed_while_it_is_valid) {
  Message late = message();
  late.granted_at = now_ - kProvisional * 4 / 5;
  const Step step = tell(late);
  EXPECT_EQ(step.transition, Transition::kGranted);
  EXPECT_GT(step.grant.deadline, now_);
  EXPECT_EQ(step.grant.renewal_at, now_);
}

TEST_F(MessageTest, late_pushed_grant_is_confirmed_first) {
  Message late = message();
  late.granted_at = now_ - kProvisional + timing::drift_of(kProvisional);
  expect_asked_again(tell(late));
  late.granted_at = *late.granted_at + 1;
  EXPECT_EQ(tell(late).transition, Transition::kGranted);
}

TEST_F(MessageTest, pushed_grant_without_the_servers_clock_is_confirmed_first) {
  Message undated = message();
  undated.granted_at.reset();
  expect_asked_again(tell(undated));
}

TEST_F(MessageTest, pushed_grant_of_another_key_or_fence_is_confirmed_first) {
  Message forged = message();
  forged.key_digest = "87654321";
  expect_asked_again(tell(forged));
  forged = message();
  forged.is_plausible = false;
  expect_asked_again(tell(forged));
}

TEST_F(MessageTest, pushed_grant_whose_receiver_was_not_counted_is_confirmed_first) {
  Message uncounted = message();
  uncounted.is_counted = false;
  expect_asked_again(tell(uncounted));
}

TEST_F(MessageTest, pushed_grant_is_confirmed_first_if_the_caller_requires_it) {
  front_.is_confirmed = true;
  expect_asked_again(tell(message()));
}

TEST_F(MessageTest, pushed_grant_without_a_caller_is_unwanted) {
  front_.is_there = false;
  EXPECT_EQ(tell(message()).transition, Transition::kUnwanted);
}

TEST_F(AcquisitionTest, pushed_grant_before_the_answer_is_decided_by_the_next_acquire) {
  ask();
  const Step step = tell(message());
  EXPECT_EQ(step.command, Command::kAcquire);
  EXPECT_FALSE(asked_.may_ask(true));
  EXPECT_EQ(queue().due, now_) << "as soon as the answer is there";
}

// ---- what is left on the server ----------------------------------------------------------------

TEST_F(AcquisitionTest, acquire_that_was_never_sent_leaves_nothing) {
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_FALSE(left.may_be_queued);
  EXPECT_FALSE(left.may_be_held);
  EXPECT_TRUE(left.has_member);
  EXPECT_EQ(asked_.state(), State::kOver);
}

TEST_F(AcquisitionTest, waiter_may_be_queued) {
  ask();
  queue();
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_TRUE(left.may_be_queued);
  EXPECT_FALSE(left.may_be_held) << "CANCEL says whether it is";
  EXPECT_EQ(left.ttl, kTtl);
}

TEST_F(AcquisitionTest, acquire_under_way_may_be_queued) {
  ask();
  EXPECT_TRUE(asked_.is_outcome_unknown());
  EXPECT_TRUE(asked_.give_up(false, now_).may_be_queued);
}

TEST_F(AcquisitionTest, acquire_whose_answer_was_lost_may_take_effect_late) {
  ask();
  EXPECT_EQ(checked(asked_.on_answer_lost(now_ + kTtl)).transition, Transition::kNone);
  EXPECT_TRUE(asked_.may_ask(true)) << "the same token again";
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_TRUE(left.may_be_queued);
  EXPECT_EQ(left.late_apply_until, now_ + kTtl);
}

TEST_F(AcquisitionTest, latest_lost_answer_decides_how_long_an_acquire_may_take_effect) {
  asked_.on_answer_lost(now_ + 2 * kTtl);
  asked_.on_answer_lost(now_ + kTtl);
  EXPECT_EQ(asked_.late_apply_until(), now_ + 2 * kTtl);
}

TEST_F(OneTryTest, lost_answer_fails_the_try_and_leaves_a_release) {
  ask();
  EXPECT_EQ(checked(asked_.on_answer_lost(now_ + kTtl)).transition, Transition::kFailed);
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_FALSE(left.has_member);
  EXPECT_FALSE(left.may_be_queued);
  EXPECT_TRUE(left.may_be_held);
}

TEST_F(OneTryTest, answered_try_leaves_nothing) {
  ask();
  asked_.on_answered();
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_FALSE(left.may_be_held);
}

TEST_F(AcquisitionTest, holder_is_not_queued) {
  ask();
  grant();
  EXPECT_FALSE(asked_.give_up(false, now_).may_be_queued);
}

TEST_F(AcquisitionTest, holder_with_another_command_under_way_may_be_queued) {
  ask();
  grant();
  EXPECT_TRUE(asked_.give_up(true, now_).may_be_queued);
}

TEST_F(MessageTest, poll_that_crossed_the_pushed_grant_may_have_queued_the_token_again) {
  ask();
  tell(message());
  asked_.on_answered();
  asked_.on_requeued();
  EXPECT_STREQ(asked_.check(), nullptr);
  EXPECT_TRUE(asked_.may_be_queued());
  EXPECT_TRUE(asked_.give_up(false, now_).may_be_queued);
}

TEST_F(OneTryTest, granted_try_cannot_be_queued_again) {
  ask();
  grant();
  asked_.on_requeued();
  EXPECT_FALSE(asked_.may_be_queued());
}

TEST_F(OneTryTest, attached_lease_leaves_no_acquire) {
  asked_.served();
  EXPECT_EQ(asked_.state(), State::kGranted);
  EXPECT_FALSE(asked_.give_up(false, now_).may_be_held);
}

// ---- what must not happen ----------------------------------------------------------------------

TEST_F(AcquisitionTest, second_grant_is_a_defect) {
  ask();
  grant();
  const auto answer = Acquisition::Answer{sent_at_, kTtl, kFence, kServerMs};
  EXPECT_EQ(take(asked_.on_granted(answer, front_, now_)).transition, Transition::kDefect);
  EXPECT_EQ(tell(message()).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, answer_before_on_answered_is_a_defect) {
  ask();
  EXPECT_EQ(asked_.on_granted({sent_at_, kTtl, kFence, kServerMs}, front_, now_).transition,
            Transition::kDefect);
  EXPECT_EQ(asked_.on_queued("ticket", kDigest).transition, Transition::kDefect);
  EXPECT_EQ(asked_.on_postponed(now_, 0).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, answer_before_its_request_is_a_defect) {
  ask();
  sent_at_ = now_ + 1;
  EXPECT_EQ(grant().transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, waiting_without_a_place_is_a_defect) {
  EXPECT_EQ(asked_.wait(0, false, front_, now_).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, events_after_the_end_are_defects) {
  ask();
  queue();
  (void)asked_.give_up(false, now_);
  EXPECT_EQ(asked_.on_queued("ticket", kDigest).transition, Transition::kDefect);
  EXPECT_EQ(tell(message()).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, check_names_the_violated_rule) {
  asked_.on_requeued();
  EXPECT_STREQ(asked_.check(), "it is queued again only behind a grant");
}

// ---- another token, at another node of a cluster -----------------------------------------------

TEST_F(AcquisitionTest, a_new_token_keeps_the_ticket_and_leaves_the_old_place_to_be_cancelled) {
  ask();
  queue();
  const ServerFootprint left = asked_.replace_token(now_);
  EXPECT_STREQ(asked_.check(), nullptr);
  EXPECT_TRUE(left.has_member);
  EXPECT_TRUE(left.may_be_queued);
  EXPECT_FALSE(left.may_be_held) << "the answer to CANCEL says so";
  EXPECT_EQ(left.ttl, kTtl);
  EXPECT_EQ(asked_.ticket(), "ticket");
  EXPECT_EQ(asked_.state(), State::kQueued);
  EXPECT_TRUE(asked_.may_ask(true));
}

TEST_F(AcquisitionTest, replacing_a_token_that_was_never_sent_leaves_nothing) {
  const ServerFootprint left = asked_.replace_token(now_);
  EXPECT_FALSE(left.may_be_queued || left.may_be_held);
  EXPECT_EQ(left.late_apply_until, 0);
}

TEST_F(AcquisitionTest, a_late_acquire_belongs_to_the_old_token) {
  ask();
  const Nanos until = now_ + kTtl;
  asked_.on_answer_lost(until);
  const ServerFootprint left = asked_.replace_token(now_);
  EXPECT_TRUE(left.may_be_queued);
  EXPECT_EQ(left.late_apply_until, until);
  EXPECT_FALSE(asked_.is_outcome_unknown()) << "the new token was never sent";
  ask();
  EXPECT_EQ(grant().transition, Transition::kGranted);
}

}  // namespace
}  // namespace redlatch::lock
