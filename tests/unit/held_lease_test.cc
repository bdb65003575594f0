// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lease is believed for as long as the server has confirmed it and no longer, and renewed
// in time. Method: the machine of a held lease alone, with made events. After each of them its
// model is checked.
#include "lock/held_lease.h"

#include <gtest/gtest.h>

#include <string>

#include "timing/lease_clock.h"

namespace redlatch::lock {
namespace {

using Command = HeldLease::Command;
using State = HeldLease::State;
using Step = HeldLease::Step;
using Transition = HeldLease::Transition;

constexpr Nanos kTtl = 30'000 * kMs;
constexpr int64_t kFence = 1'700'000'000'000'000;
constexpr int64_t kSinceMs = 1'700'000'000'000;

class HeldLeaseTest : public ::testing::Test {
 protected:
  // What a reply to an ACQUIRE sent now brings, and what a message brings.
  Grant by_reply(Nanos ttl = kTtl) const {
    return {.deadline = timing::deadline_of(now_, ttl),
            .renewal_at = timing::renewal_of(now_, ttl),
            .fence = kFence,
            .since_ms = kSinceMs};
  }
  Grant by_message() const {
    return {.deadline = now_ + 2'968 * kMs,
            .renewal_at = now_ + 1'000 * kMs,
            .fence = kFence,
            .since_ms = kSinceMs,
            .is_provisional = true};
  }

  // Does what the client does with a step: sends the extension, if it can.
  Step take(const Step &step) {
    EXPECT_STREQ(held_.check(), nullptr);
    if (step.command == Command::kNone) return step;
    if (can_send_) {
      held_.sent(step.is_description);
      sent_at_ = now_;
      last_ = step;
      sent_count_++;
    } else {
      held_.not_sent(now_);
    }
    EXPECT_STREQ(held_.check(), nullptr);
    return step;
  }
  Step start(const Grant &grant, const LeaseTerms &terms = {.ttl = kTtl}, std::string label = {}) {
    return take(held_.start(grant, terms, label, now_, is_up_));
  }
  Step hand_off(const LeaseTerms &terms = {.ttl = kTtl}, std::string label = {}) {
    return take(held_.hand_off(terms, label, now_, is_up_));
  }
  Step due() { return take(held_.on_due(now_, is_up_)); }
  // The server confirms the last extension. `random` 0: the next renewal is not earlier than due.
  Step confirm(int64_t server_ms = kSinceMs, uint64_t random = 0) {
    held_.on_answered();
    return take(held_.on_confirmed({sent_at_, last_.ttl, server_ms, last_.is_description}, now_,
                                   is_up_, random));
  }
  void refuse() {
    held_.on_answered();
    held_.on_refused(last_.is_description, now_);
    EXPECT_STREQ(held_.check(), nullptr);
  }
  void lose_answer() {
    held_.on_answer_lost(last_.is_description);
    EXPECT_STREQ(held_.check(), nullptr);
  }

  Nanos now_ = 5'000 * kMs;
  bool is_up_ = true;
  bool can_send_ = true;  // there is memory for it
  Nanos sent_at_ = 0;
  Step last_;
  int sent_count_ = 0;
  HeldLease held_;
};

// ---- renewal -----------------------------------------------------------------------------------

TEST_F(HeldLeaseTest, grant_sets_deadline_and_renewal_without_sending) {
  const Step quiet = start(by_reply());
  EXPECT_EQ(quiet.command, Command::kNone);
  EXPECT_EQ(held_.state(), State::kHeld);
  EXPECT_EQ(held_.deadline(), now_ + kTtl - 302 * kMs);
  EXPECT_EQ(held_.due(true), now_ + kTtl / 3);
  EXPECT_EQ(held_.fence(), kFence);
  EXPECT_FALSE(held_.is_provisional());
}

TEST_F(HeldLeaseTest, validity_counts_from_sending_the_renewal) {
  start(by_reply());
  now_ += kTtl / 3;
  EXPECT_EQ(due().command, Command::kExtend);
  EXPECT_EQ(last_.ttl, kTtl);
  now_ += 700 * kMs;
  confirm();
  EXPECT_EQ(held_.deadline(), sent_at_ + kTtl - 302 * kMs);
  EXPECT_EQ(held_.due(true), sent_at_ + kTtl / 3);
}

TEST_F(HeldLeaseTest, renewals_are_spread_at_random_over_a_twelfth_of_the_ttl) {
  start(by_reply());
  now_ += kTtl / 3;
  due();
  confirm(kSinceMs, 2'000 * kMs);
  EXPECT_EQ(held_.due(true), sent_at_ + kTtl / 3 - 2'000 * kMs);
  now_ = held_.due(true);
  due();
  confirm(kSinceMs, UINT64_MAX);
  EXPECT_GE(held_.due(true), sent_at_ + kTtl / 3 - kTtl / 12);
  EXPECT_LE(held_.due(true), sent_at_ + kTtl / 3);
}

TEST_F(HeldLeaseTest, one_extension_is_under_way_at_a_time) {
  start(by_reply());
  now_ += kTtl / 3;
  due();
  EXPECT_EQ(held_.due(true), kNever) << "only the deadline is due";
  EXPECT_EQ(due().command, Command::kNone);
  EXPECT_EQ(sent_count_, 1);
}

TEST_F(HeldLeaseTest, lease_without_a_connection_is_not_renewed) {
  start(by_reply());
  is_up_ = false;
  EXPECT_EQ(held_.due(false), kNever);
  now_ += kTtl / 3;
  EXPECT_EQ(due().command, Command::kNone);
}

TEST_F(HeldLeaseTest, new_connection_renews_at_once) {
  start(by_reply());
  now_ += kTtl / 3;
  due();
  lose_answer();
  EXPECT_EQ(take(held_.on_connected(now_)).command, Command::kExtend)
      << "the server may have lost its data";
}

TEST_F(HeldLeaseTest, extension_that_ran_out_of_memory_is_retried_within_a_second) {
  start(by_reply());
  now_ += kTtl / 3;
  can_send_ = false;
  due();
  EXPECT_GT(held_.due(true), now_);
  EXPECT_LE(held_.due(true), now_ + 1'000 * kMs);
}

TEST_F(HeldLeaseTest, refused_extension_is_retried_with_shrinking_pauses) {
  start(by_reply(3'000 * kMs), {.ttl = 3'000 * kMs});
  const Nanos deadline = held_.deadline();
  now_ = held_.due(true);
  Nanos pause = kNever;
  for (int i = 0; i < 5; i++) {
    ASSERT_EQ(due().command, Command::kExtend);
    refuse();
    EXPECT_LT(held_.due(true) - now_, pause);
    pause = held_.due(true) - now_;
    now_ = held_.due(true);
  }
  EXPECT_EQ(held_.deadline(), deadline) << "a refusal does not prolong it";
}

TEST_F(HeldLeaseTest, extension_with_an_unknown_script_is_sent_again_at_once) {
  start(by_reply());
  now_ += kTtl / 3;
  due();
  held_.on_answered();
  const Step again = take(held_.on_unknown_script(last_.is_description, now_, is_up_));
  EXPECT_EQ(again.command, Command::kExtend);
}

// ---- the end -----------------------------------------------------------------------------------

TEST_F(HeldLeaseTest, lease_expires_exactly_at_its_deadline) {
  start(by_reply());
  now_ = held_.deadline() - 1;
  EXPECT_FALSE(held_.is_over(now_));
  EXPECT_EQ(due().transition, Transition::kNone);
  now_++;
  EXPECT_TRUE(held_.is_over(now_));
  EXPECT_EQ(due().transition, Transition::kExpired);
}

TEST_F(HeldLeaseTest, lease_without_renewal_sends_nothing) {
  start(by_reply(), {.ttl = kTtl, .is_renewed = false});
  EXPECT_EQ(held_.due(true), kNever);
  EXPECT_EQ(take(held_.on_connected(now_)).command, Command::kNone);
}

TEST_F(HeldLeaseTest, max_hold_limits_the_lease) {
  start(by_reply(), {.ttl = kTtl, .end_at = now_ + 40'000 * kMs});
  now_ = held_.due(true);
  due();
  EXPECT_EQ(last_.ttl, kTtl);
  confirm();
  now_ = held_.due(true);
  due();
  EXPECT_LT(last_.ttl, kTtl) << "no longer than max_hold needs";
  confirm();
  EXPECT_EQ(held_.deadline(), held_.end_at());
  EXPECT_EQ(held_.due(true), kNever) << "nothing is left to renew";
  now_ = held_.end_at();
  EXPECT_EQ(due().transition, Transition::kExpired);
}

TEST_F(HeldLeaseTest, ended_lease_leaves_the_footprint_for_its_cleanup) {
  start(by_message());
  lock::ServerFootprint left;
  left.may_be_queued = true;
  held_.leave(left);
  EXPECT_TRUE(left.is_provisional);
  EXPECT_EQ(left.held_until, held_.held_until());
  EXPECT_EQ(left.ttl, kTtl);
  EXPECT_EQ(left.handoff_count, 0);
  EXPECT_TRUE(left.may_be_queued) << "the rest is not its business";
  held_ = HeldLease();
  start(by_reply());
  hand_off();
  hand_off();
  held_.leave(left);
  EXPECT_EQ(left.handoff_count, 2);
}

// ---- extensions by callers and other answers ---------------------------------------------------

TEST_F(HeldLeaseTest, answers_to_other_requests_never_shorten_the_lease) {
  start(by_reply());
  const Nanos deadline = held_.deadline();
  take(held_.prolong(now_ - 5'000 * kMs, kTtl, now_, 0));
  EXPECT_EQ(held_.deadline(), deadline);
  now_ += 5'000 * kMs;
  take(held_.prolong(now_, kTtl, now_, 0));
  EXPECT_EQ(held_.deadline(), deadline + 5'000 * kMs);
}

TEST_F(HeldLeaseTest, caller_changes_the_ttl_of_all_later_renewals) {
  start(by_reply());
  take(held_.change_ttl(now_, 60'000 * kMs, now_, 0));
  EXPECT_EQ(held_.deadline(), now_ + 60'000 * kMs - 602 * kMs);
  now_ = held_.due(true);
  due();
  EXPECT_EQ(last_.ttl, 60'000 * kMs);
}

TEST_F(HeldLeaseTest, shorter_ttl_shortens_the_deadline) {
  start(by_reply());
  take(held_.change_ttl(now_, 1'000 * kMs, now_, 0));
  EXPECT_EQ(held_.deadline(), now_ + 1'000 * kMs - 12 * kMs);
}

TEST_F(HeldLeaseTest, extension_by_the_caller_confirms_a_provisional_lease) {
  start(by_message());
  take(held_.change_ttl(now_, kTtl, now_, 0));
  EXPECT_FALSE(held_.is_provisional());
}

TEST_F(HeldLeaseTest, upgraded_reader_has_a_new_fence) {
  start(by_reply(), {.ttl = kTtl, .is_described = false});
  held_.on_upgraded(kFence + 64, kSinceMs + 5);
  EXPECT_EQ(held_.fence(), kFence + 64);
  EXPECT_EQ(held_.since_ms(), kSinceMs + 5);
  EXPECT_STREQ(held_.check(), nullptr);
}

// ---- provisional leases ------------------------------------------------------------------------

TEST_F(HeldLeaseTest, provisional_lease_is_confirmed_by_an_extension) {
  start(by_message());
  EXPECT_TRUE(held_.is_provisional());
  now_ = held_.due(true);
  EXPECT_EQ(due().command, Command::kExtend);
  EXPECT_TRUE(held_.is_provisional());
  confirm();
  EXPECT_FALSE(held_.is_provisional());
  EXPECT_EQ(held_.deadline(), sent_at_ + kTtl - 302 * kMs);
}

TEST_F(HeldLeaseTest, provisional_lease_without_renewal_is_extended_once) {
  start(by_message(), {.ttl = kTtl, .is_renewed = false});
  EXPECT_NE(held_.due(true), kNever);
  now_ = held_.due(true);
  due();
  confirm();
  EXPECT_EQ(held_.due(true), kNever);
}

// ---- local hand-off ----------------------------------------------------------------------------

TEST_F(HeldLeaseTest, each_hand_off_has_a_fence_of_its_own) {
  start(by_reply());
  hand_off();
  EXPECT_EQ(held_.fence(), kFence + 1);
  EXPECT_EQ(held_.granted_fence(), kFence);
  hand_off();
  EXPECT_EQ(held_.fence(), kFence + 2);
  EXPECT_EQ(held_.handoff_count(), 2);
}

TEST_F(HeldLeaseTest, hand_offs_end_at_their_limit) {
  start(by_reply());
  EXPECT_FALSE(held_.may_hand_off(kTtl, false, 0, now_));
  EXPECT_TRUE(held_.may_hand_off(kTtl, false, 2, now_));
  hand_off();
  EXPECT_TRUE(held_.may_hand_off(kTtl, false, 2, now_));
  hand_off();
  EXPECT_FALSE(held_.may_hand_off(kTtl, false, 2, now_));
}

TEST_F(HeldLeaseTest, hand_offs_end_one_ttl_after_the_grant) {
  start(by_reply());
  now_ += kTtl / 3;
  due();
  confirm();
  now_ += kTtl / 3;
  due();
  confirm();
  now_ += kTtl / 3 - 1;
  EXPECT_TRUE(held_.may_hand_off(kTtl, false, 31, now_));
  now_++;
  EXPECT_FALSE(held_.may_hand_off(kTtl, false, 31, now_)) << "others wait at the server";
}

TEST_F(HeldLeaseTest, lease_with_too_little_validity_is_not_handed_off) {
  start(by_reply());
  now_ = held_.deadline() - 1'500 * kMs;
  EXPECT_TRUE(held_.may_hand_off(kTtl, false, 31, now_));
  now_++;
  EXPECT_FALSE(held_.may_hand_off(kTtl, false, 31, now_));
}

TEST_F(HeldLeaseTest, caller_that_wants_confirmation_gets_no_provisional_lease) {
  start(by_message());
  EXPECT_FALSE(held_.may_hand_off(kTtl, true, 31, now_));
  EXPECT_TRUE(held_.may_hand_off(kTtl, false, 31, now_));
}

TEST_F(HeldLeaseTest, hand_off_with_little_validity_is_extended_in_the_background) {
  start(by_message());
  hand_off();
  EXPECT_TRUE(held_.is_provisional());
  EXPECT_EQ(held_.due(true), now_) << "by the timer: the caller does not wait for it";
  EXPECT_EQ(sent_count_, 0);
}

TEST_F(HeldLeaseTest, hand_off_uses_the_ttl_of_the_next_caller) {
  start(by_reply());
  hand_off({.ttl = 6'000 * kMs});
  EXPECT_EQ(held_.deadline(), now_ + 6'000 * kMs) << "no longer than the caller asked for";
  EXPECT_EQ(held_.due(true), now_ + 2'000 * kMs);
  EXPECT_FALSE(held_.is_provisional());
  EXPECT_EQ(held_.ttl(), 6'000 * kMs);
}

TEST_F(HeldLeaseTest, max_hold_of_one_caller_does_not_limit_the_next) {
  start(by_reply(), {.ttl = kTtl, .end_at = now_ + 5'000 * kMs});
  EXPECT_EQ(held_.deadline(), now_ + 5'000 * kMs);
  hand_off();
  EXPECT_EQ(held_.deadline(), now_ + kTtl - 302 * kMs);
}

// ---- the description ---------------------------------------------------------------------------

TEST_F(HeldLeaseTest, description_is_written_with_the_first_renewal) {
  start(by_reply());
  EXPECT_EQ(sent_count_, 0);
  now_ = held_.due(true);
  due();
  EXPECT_TRUE(last_.is_description);
  confirm();
  EXPECT_TRUE(held_.is_described());
  now_ = held_.due(true);
  due();
  EXPECT_FALSE(last_.is_description) << "once";
}

TEST_F(HeldLeaseTest, lease_with_a_label_writes_it_at_once) {
  const Step step = start(by_reply(), {.ttl = kTtl}, "nightly");
  EXPECT_EQ(step.command, Command::kExtend);
  EXPECT_TRUE(step.is_description);
  EXPECT_EQ(held_.label(), "nightly");
}

TEST_F(HeldLeaseTest, shared_lease_has_no_description) {
  start(by_reply(), {.ttl = kTtl, .is_described = false}, "nightly");
  EXPECT_EQ(sent_count_, 0);
  now_ = held_.due(true);
  due();
  EXPECT_FALSE(last_.is_description);
}

TEST_F(HeldLeaseTest, failed_description_is_repeated_with_the_next_extension) {
  start(by_reply(), {.ttl = kTtl}, "nightly");
  refuse();
  now_ = held_.due(true);
  due();
  EXPECT_TRUE(last_.is_description);
  lose_answer();
  take(held_.on_connected(now_));
  EXPECT_TRUE(last_.is_description);
}

TEST_F(HeldLeaseTest, label_of_the_previous_caller_is_overwritten) {
  start(by_reply(), {.ttl = kTtl}, "first");
  confirm();
  const Step step = hand_off();
  EXPECT_EQ(step.command, Command::kExtend);
  EXPECT_TRUE(step.is_description);
  EXPECT_EQ(held_.label(), "");
}

TEST_F(HeldLeaseTest, unchanged_label_is_not_written_again) {
  start(by_reply(), {.ttl = kTtl}, "nightly");
  confirm();
  EXPECT_EQ(hand_off({.ttl = kTtl}, "nightly").command, Command::kNone);
}

TEST_F(HeldLeaseTest, label_under_way_during_a_hand_off_is_overwritten_after_its_answer) {
  start(by_reply(), {.ttl = kTtl}, "first");
  EXPECT_EQ(hand_off().command, Command::kNone) << "one extension at a time";
  const Step step = confirm();
  EXPECT_EQ(step.command, Command::kExtend);
  EXPECT_TRUE(step.is_description);
}

TEST_F(HeldLeaseTest, attached_lease_is_described_once_its_grant_time_is_known) {
  Grant attached = by_reply();
  attached.since_ms = 0;
  attached.attach_count = 2;
  start(attached, {.ttl = kTtl}, "nightly");
  EXPECT_FALSE(last_.is_description) << "its date is not known";
  EXPECT_EQ(held_.attach_count(), 2);
  now_ += 40 * kMs;
  const Step step = confirm(kSinceMs + 40);
  EXPECT_EQ(held_.since_ms(), kSinceMs);
  EXPECT_TRUE(step.is_description);
}

TEST_F(HeldLeaseTest, description_of_a_writer_is_not_repeated_after_a_downgrade) {
  start(by_reply(), {.ttl = kTtl}, "nightly");
  held_.on_downgrade();
  refuse();
  now_ = held_.due(true);
  due();
  EXPECT_FALSE(last_.is_description);
}

// ---- what must not happen ----------------------------------------------------------------------

TEST_F(HeldLeaseTest, events_before_the_grant_are_defects) {
  std::string label;
  EXPECT_EQ(held_.hand_off({.ttl = kTtl}, label, now_, true).transition, Transition::kDefect);
  EXPECT_EQ(held_.on_due(now_, true).transition, Transition::kDefect);
  EXPECT_EQ(held_.on_connected(now_).transition, Transition::kDefect);
  EXPECT_EQ(held_.prolong(now_, kTtl, now_, 0).transition, Transition::kDefect);
  EXPECT_EQ(held_.change_ttl(now_, kTtl, now_, 0).transition, Transition::kDefect);
  EXPECT_STREQ(held_.check(), nullptr) << "a defect changes nothing";
}

TEST_F(HeldLeaseTest, confirmation_before_on_answered_is_a_defect) {
  start(by_reply());
  now_ += kTtl / 3;
  due();
  EXPECT_EQ(held_.on_confirmed({sent_at_, kTtl, 0, false}, now_, true, 0).transition,
            Transition::kDefect);
}

TEST_F(HeldLeaseTest, answer_before_its_request_is_a_defect) {
  start(by_reply());
  const Nanos deadline = held_.deadline();
  EXPECT_EQ(held_.prolong(now_ + 1, kTtl, now_, 0).transition, Transition::kDefect);
  EXPECT_EQ(held_.deadline(), deadline);
}

TEST_F(HeldLeaseTest, second_grant_is_a_defect) {
  start(by_reply());
  std::string label;
  EXPECT_EQ(held_.start(by_reply(), {.ttl = kTtl}, label, now_, true).transition,
            Transition::kDefect);
}

TEST_F(HeldLeaseTest, check_names_the_violated_rule) {
  std::string label;
  (void)held_.start(by_reply(), {.ttl = 0}, label, now_, true);
  EXPECT_STREQ(held_.check(), "a lease has a ttl");
}

TEST_F(HeldLeaseTest, hand_off_without_a_fence_violates_the_model) {
  start(by_reply());
  for (int i = 0; i < 31; i++) hand_off();
  std::string label;
  (void)held_.hand_off({.ttl = kTtl}, label, now_, true);
  EXPECT_STREQ(held_.check(), "each hand-off has a fence");
}

// ---- another node of a cluster -----------------------------------------------------------------

TEST_F(HeldLeaseTest, a_clock_that_is_ahead_shortens_the_lease) {
  start(by_reply());
  const Nanos deadline = held_.deadline();
  held_.on_moved(0);
  EXPECT_TRUE(held_.awaits_clock());
  held_.on_clock(0, now_);
  EXPECT_FALSE(held_.awaits_clock());
  EXPECT_EQ(held_.deadline(), deadline);
  held_.on_clock(5'000 * kMs, now_);
  EXPECT_STREQ(held_.check(), nullptr);
  EXPECT_EQ(held_.deadline(), deadline - 5'000 * kMs);
  now_ = held_.deadline();
  EXPECT_TRUE(held_.is_over(now_));
}

// As in a loop of redirects. Found by the simulation of clusters.
TEST_F(HeldLeaseTest, a_lease_that_moves_back_and_forth_is_shortened_once) {
  start(by_reply());
  const Nanos deadline = held_.deadline();
  const Nanos ahead = 1'000 * kMs;
  for (int i = 0; i < 5; i++) {
    held_.on_moved(0);
    held_.on_clock(ahead, now_);
    held_.on_moved(ahead);
    held_.on_clock(0, now_);
  }
  EXPECT_EQ(held_.deadline(), deadline - ahead);
  held_.on_moved(0);
  held_.on_clock(2 * ahead, now_);
  EXPECT_EQ(held_.deadline(), deadline - 2 * ahead) << "by the one that is ahead most";
  take(held_.on_connected(now_));
  confirm();
  held_.on_moved(2 * ahead);
  held_.on_clock(3 * ahead, now_);
  EXPECT_EQ(held_.deadline(), timing::deadline_of(sent_at_, kTtl) - ahead) << "anew";
}

// Found by the simulation of clusters.
TEST_F(HeldLeaseTest, a_lease_shortened_to_less_than_max_hold_is_renewed) {
  start(by_reply(), {.ttl = kTtl, .end_at = now_ + kTtl - 1'000 * kMs});
  EXPECT_EQ(held_.renewal_at(), kNever) << "the lease lasts until max_hold";
  held_.on_moved(0);
  held_.on_clock(0, now_);
  EXPECT_EQ(held_.renewal_at(), kNever);
  held_.on_clock(5'000 * kMs, now_);
  EXPECT_STREQ(held_.check(), nullptr);
  EXPECT_EQ(held_.renewal_at(), now_);
}

TEST_F(HeldLeaseTest, an_extension_at_the_new_node_lasts_for_its_whole_ttl) {
  start(by_reply());
  held_.on_moved(0);
  held_.on_clock(5'000 * kMs, now_);
  take(held_.on_connected(now_));
  EXPECT_EQ(sent_count_, 1);
  confirm();
  EXPECT_EQ(held_.deadline(), timing::deadline_of(sent_at_, kTtl));
}

}  // namespace
}  // namespace redlatch::lock
