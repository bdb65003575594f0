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

TEST_F(AcquisitionTest, grant_counts_from_its_request) {
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

TEST_F(AcquisitionTest, ttl_is_that_of_the_caller_which_is_first_when_it_is_sent) {
  front_.ttl = 10'000 * kMs;
  ask();
  EXPECT_EQ(asked_.ttl(), 10'000 * kMs);
  front_.is_there = false;
  asked_.on_answered();
  asked_.prepare(front_);
  EXPECT_EQ(asked_.ttl(), 10'000 * kMs) << "without a caller as before";
}

TEST_F(AcquisitionTest, caller_that_wants_more_than_was_asked_for_extends_at_once) {
  front_.ttl = 5'000 * kMs;
  ask();
  front_.ttl = kTtl;  // the first caller has left
  const Step step = grant();
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(sent_at_, 5'000 * kMs));
  EXPECT_TRUE(step.grant.is_provisional);
  EXPECT_EQ(step.grant.renewal_at, now_);
}

TEST_F(AcquisitionTest, caller_that_wants_less_gets_less) {
  ask();
  front_.ttl = 5'000 * kMs;
  const Step step = grant();
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(sent_at_, 5'000 * kMs));
  EXPECT_FALSE(step.grant.is_provisional);
}

TEST_F(AcquisitionTest, grant_that_comes_too_late_is_asked_for_once_more) {
  ask();
  now_ = timing::deadline_of(sent_at_, kTtl);
  const Step again = grant();
  EXPECT_EQ(again.transition, Transition::kNone);
  EXPECT_EQ(again.command, Command::kAcquire);
  ask();
  now_ = timing::deadline_of(sent_at_, kTtl);
  EXPECT_EQ(grant().transition, Transition::kTooShort);
}

TEST_F(AcquisitionTest, late_grants_count_in_a_row_only) {
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

TEST_F(AcquisitionTest, queued_it_polls_after_the_delay) {
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

TEST_F(AcquisitionTest, hint_that_overtakes_the_answer_is_kept) {
  ask();
  EXPECT_TRUE(asked_.keep_hint(now_ + 80 * kMs));
  EXPECT_TRUE(asked_.keep_hint(now_ + 50 * kMs));
  EXPECT_TRUE(asked_.keep_hint(now_ + 90 * kMs));
  EXPECT_EQ(queue().due, now_ + 50 * kMs) << "the earliest counts";
  ask();
  EXPECT_EQ(queue().due, now_ + 15'000 * kMs) << "once";
}

TEST_F(AcquisitionTest, hint_while_nothing_is_under_way_is_for_the_timer) {
  ask();
  queue();
  EXPECT_FALSE(asked_.keep_hint(now_ + 50 * kMs));
}

TEST_F(AcquisitionTest, call_that_dropped_many_dead_waiters_is_continued_at_once) {
  ask();
  EXPECT_EQ(queue(15'000 * kMs, true).command, Command::kAcquire);
}

TEST_F(AcquisitionTest, place_without_a_caller_is_due_at_once_and_asks_no_more) {
  ask();
  front_.is_there = false;
  const Step step = queue(15'000 * kMs, true);
  EXPECT_EQ(step.command, Command::kNone);
  EXPECT_EQ(step.due, now_);
}

TEST_F(AcquisitionTest, refusal_that_may_pass_is_tried_again_ever_later) {
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

TEST_F(AcquisitionTest, acquire_without_memory_is_tried_again_soon) {
  asked_.prepare(front_);
  const Step step = checked(asked_.not_sent(now_));
  EXPECT_EQ(step.transition, Transition::kNone);
  EXPECT_EQ(step.due, now_ + 20 * kMs);
}

TEST_F(OneTryTest, without_memory_it_fails) {
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

TEST_F(MessageTest, it_is_believed_from_the_time_of_the_grant_and_provisional) {
  const Step step = tell(message());
  EXPECT_EQ(step.transition, Transition::kGranted);
  EXPECT_EQ(step.grant.deadline, timing::deadline_of(now_ - 5 * kMs, kProvisional));
  EXPECT_EQ(step.grant.renewal_at, now_ + kProvisional / 3);
  EXPECT_TRUE(step.grant.is_provisional);
  EXPECT_EQ(step.grant.fence, kFence);
}

TEST_F(MessageTest, it_is_believed_no_longer_than_this_waiter_asked_for) {
  Message forged = message();
  forged.provisional_ms = 3'600'000;
  EXPECT_EQ(tell(forged).grant.deadline, timing::deadline_of(now_ - 5 * kMs, kProvisional));
}

TEST_F(MessageTest, it_is_believed_no_longer_than_the_caller_wants) {
  front_.ttl = 1'000 * kMs;
  const Step step = tell(message());
  EXPECT_EQ(step.grant.deadline, now_ + 1'000 * kMs);
  EXPECT_EQ(step.grant.renewal_at, now_ + front_.ttl / 3) << "not when the lease is over";
}

TEST_F(MessageTest, late_one_is_not_believed) {
  Message late = message();
  late.granted_at = now_ - kProvisional + timing::drift_of(kProvisional);
  expect_asked_again(tell(late));
  late.granted_at = *late.granted_at + 1;
  EXPECT_EQ(tell(late).transition, Transition::kGranted);
}

TEST_F(MessageTest, without_the_clock_of_the_server_it_is_not_believed) {
  Message undated = message();
  undated.granted_at.reset();
  expect_asked_again(tell(undated));
}

TEST_F(MessageTest, of_another_key_or_fence_it_is_not_believed) {
  Message forged = message();
  forged.key_digest = "87654321";
  expect_asked_again(tell(forged));
  forged = message();
  forged.is_plausible = false;
  expect_asked_again(tell(forged));
}

TEST_F(MessageTest, that_was_not_counted_is_not_believed) {
  Message uncounted = message();
  uncounted.is_counted = false;
  expect_asked_again(tell(uncounted));
}

TEST_F(MessageTest, caller_that_wants_confirmation_gets_it_from_an_answer) {
  front_.is_confirmed = true;
  expect_asked_again(tell(message()));
}

TEST_F(MessageTest, without_a_caller_it_is_unwanted) {
  front_.is_there = false;
  EXPECT_EQ(tell(message()).transition, Transition::kUnwanted);
}

TEST_F(AcquisitionTest, message_that_overtakes_the_answer_is_decided_by_the_next) {
  ask();
  const Step step = tell(message());
  EXPECT_EQ(step.command, Command::kAcquire);
  EXPECT_FALSE(asked_.may_ask(true));
  EXPECT_EQ(queue().due, now_) << "as soon as the answer is there";
}

// ---- what is left on the server ----------------------------------------------------------------

TEST_F(AcquisitionTest, what_was_never_sent_leaves_nothing) {
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

TEST_F(AcquisitionTest, lost_answer_may_take_effect_late) {
  ask();
  EXPECT_EQ(checked(asked_.on_answer_lost(now_ + kTtl)).transition, Transition::kNone);
  EXPECT_TRUE(asked_.may_ask(true)) << "the same token again";
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_TRUE(left.may_be_queued);
  EXPECT_EQ(left.late_apply_until, now_ + kTtl);
}

TEST_F(AcquisitionTest, latest_of_lost_answers_counts) {
  asked_.on_answer_lost(now_ + 2 * kTtl);
  asked_.on_answer_lost(now_ + kTtl);
  EXPECT_EQ(asked_.late_apply_until(), now_ + 2 * kTtl);
}

TEST_F(OneTryTest, lost_answer_fails_it_and_leaves_a_release) {
  ask();
  EXPECT_EQ(checked(asked_.on_answer_lost(now_ + kTtl)).transition, Transition::kFailed);
  const ServerFootprint left = asked_.give_up(false, now_);
  EXPECT_FALSE(left.has_member);
  EXPECT_FALSE(left.may_be_queued);
  EXPECT_TRUE(left.may_be_held);
}

TEST_F(OneTryTest, answered_it_leaves_nothing) {
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

TEST_F(MessageTest, poll_that_crossed_the_grant_may_have_queued_it_again) {
  ask();
  tell(message());
  asked_.on_answered();
  asked_.on_requeued();
  EXPECT_STREQ(asked_.check(), nullptr);
  EXPECT_TRUE(asked_.may_be_queued());
  EXPECT_TRUE(asked_.give_up(false, now_).may_be_queued);
}

TEST_F(OneTryTest, cannot_be_queued_again) {
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

TEST_F(AcquisitionTest, answer_that_was_not_noted_is_a_defect) {
  ask();
  EXPECT_EQ(asked_.on_granted({sent_at_, kTtl, kFence, kServerMs}, front_, now_).transition,
            Transition::kDefect);
  EXPECT_EQ(asked_.on_queued("ticket", kDigest).transition, Transition::kDefect);
  EXPECT_EQ(asked_.on_postponed(now_, 0).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, answer_to_what_is_sent_later_is_a_defect) {
  ask();
  sent_at_ = now_ + 1;
  EXPECT_EQ(grant().transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, waiting_without_a_place_is_a_defect) {
  EXPECT_EQ(asked_.wait(0, false, front_, now_).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, events_behind_the_end_are_defects) {
  ask();
  queue();
  (void)asked_.give_up(false, now_);
  EXPECT_EQ(asked_.on_queued("ticket", kDigest).transition, Transition::kDefect);
  EXPECT_EQ(tell(message()).transition, Transition::kDefect);
}

TEST_F(AcquisitionTest, model_names_what_does_not_hold) {
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

TEST_F(AcquisitionTest, a_token_that_no_server_has_leaves_nothing) {
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
