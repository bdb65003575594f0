// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: check() of each machine can fail, and names the sentence that does not hold. Method: one
// private field of a machine in a legal state is changed.
#include <gtest/gtest.h>

#include <string>

#include "lock/acquisition.h"
#include "lock/cleanup.h"
#include "lock/held_lease.h"
#include "lock/key_watch.h"
#include "lock/replication.h"
#include "lock/upgrade.h"
#include "lock/waitlist.h"
#include "private_field.h"

namespace redlatch {

REDLATCH_OPEN_FIELD(AcquisitionTicket, lock::Acquisition, ticket_);
REDLATCH_OPEN_FIELD(AcquisitionTtl, lock::Acquisition, ttl_);
REDLATCH_OPEN_FIELD(AcquisitionHint, lock::Acquisition, poll_hint_at_);
REDLATCH_OPEN_FIELD(AcquisitionTooShort, lock::Acquisition, too_short_count_);
REDLATCH_OPEN_FIELD(CleanupState, lock::Cleanup, state_);
REDLATCH_OPEN_FIELD(CleanupSent, lock::Cleanup, sent_);
REDLATCH_OPEN_FIELD(CleanupDue, lock::Cleanup, due_);
REDLATCH_OPEN_FIELD(CleanupReleaseLost, lock::Cleanup, was_release_lost_);
REDLATCH_OPEN_FIELD(HeldFence, lock::HeldLease, fence_);
REDLATCH_OPEN_FIELD(HeldDeadline, lock::HeldLease, deadline_);
REDLATCH_OPEN_FIELD(HeldEnd, lock::HeldLease, end_at_);
REDLATCH_OPEN_FIELD(HeldRenewal, lock::HeldLease, renewal_at_);
REDLATCH_OPEN_FIELD(HeldAttachCount, lock::HeldLease, attach_count_);
REDLATCH_OPEN_FIELD(UpgradeStage, lock::Upgrade, stage_);
REDLATCH_OPEN_FIELD(UpgradeRollback, lock::Upgrade, rollback_);
REDLATCH_OPEN_FIELD(UpgradeIsOneTry, lock::Upgrade, is_one_try_);
REDLATCH_OPEN_FIELD(UpgradeIsUnanswered, lock::Upgrade, is_unanswered_);
REDLATCH_OPEN_FIELD(UpgradeIsRollingBack, lock::Upgrade, is_rolling_back_);
REDLATCH_OPEN_FIELD(UpgradeDue, lock::Upgrade, due_);
REDLATCH_OPEN_FIELD(UpgradeHint, lock::Upgrade, poll_hint_at_);
REDLATCH_OPEN_FIELD(UpgradeTicket, lock::Upgrade, ticket_);
REDLATCH_OPEN_FIELD(UpgradeMember, lock::Upgrade, member_);
REDLATCH_OPEN_FIELD(WatchCount, lock::KeyWatch, count_);
REDLATCH_OPEN_FIELD(WatcherWaits, lock::KeyWatch::Watcher, waits_);
REDLATCH_OPEN_FIELD(WatcherPrevious, lock::KeyWatch::Watcher, previous_);
REDLATCH_OPEN_FIELD(WaitlistLast, lock::Waitlist, last_);
REDLATCH_OPEN_FIELD(WaitlistPlace, lock::Waitlist, place_);
REDLATCH_OPEN_FIELD(CallerIsListed, lock::Waitlist::Caller, is_listed_);
REDLATCH_OPEN_FIELD(CallerPrevious, lock::Waitlist::Caller, previous_);
REDLATCH_OPEN_FIELD(ReplicationIsWaiting, lock::Replication, is_waiting_);
REDLATCH_OPEN_FIELD(ReplicationReplicas, lock::Replication, replicas_);
REDLATCH_OPEN_FIELD(EntryState, lock::Replication::Entry, state_);
REDLATCH_OPEN_FIELD(EntryPrevious, lock::Replication::Entry, previous_);

}  // namespace redlatch

namespace redlatch::lock {
namespace {

constexpr Nanos kTtl = 30'000 * kMs;
constexpr Nanos kNow = 5'000 * kMs;

// Changes one field of `machine`, and back.
template <class Tag, class Object, class Machine>
void expect_broken(Object &object, auto value, const Machine &machine, const char *sentence) {
  ASSERT_STREQ(machine.check(), nullptr) << "legal before";
  const auto before = opened<Tag>(object);
  set<Tag>(object, value);
  EXPECT_STREQ(machine.check(), sentence);
  opened<Tag>(object) = before;
}

TEST(ModelTest, acquisition) {
  Acquisition one_try;
  one_try.open(false, 3'000, kTtl);
  expect_broken<AcquisitionTicket>(one_try, "17", one_try, "one try has no ticket");
  Acquisition asked;
  asked.open(true, 3'000, kTtl);
  expect_broken<AcquisitionTicket>(asked, "17", asked,
                                   "a ticket comes with the place in the queue");
  expect_broken<AcquisitionTooShort>(asked, 3, asked,
                                     "the second grant in a row that is too short ends the wait");
  asked.prepare({});
  asked.sent();
  expect_broken<AcquisitionTtl>(asked, 0, asked, "an ACQUIRE asks for a ttl");
  asked.on_answered();
  asked.served();
  expect_broken<AcquisitionTtl>(asked, 0, asked, "a grant has a ttl");
  expect_broken<AcquisitionHint>(asked, kNow, asked, "what is granted does not poll");
  (void)asked.give_up(false, kNow);
  expect_broken<AcquisitionHint>(asked, kNow, asked, "what is over does not poll");
}

TEST(ModelTest, cleanup) {
  Cleanup cleanup;
  expect_broken<CleanupSent>(cleanup, Cleanup::Command::kRelease, cleanup,
                             "nothing is sent before the start");
  expect_broken<CleanupDue>(cleanup, kNow, cleanup, "nothing is due before the start");
  expect_broken<CleanupState>(cleanup, Cleanup::State::kOver, cleanup, "an end without a reason");
  expect_broken<CleanupState>(cleanup, Cleanup::State::kDue, cleanup, "something is due");
  (void)cleanup.start({.may_be_held = true, .ttl = kTtl}, 0, kNow, true);
  expect_broken<CleanupDue>(cleanup, kNever, cleanup, "a command that is due has a time");
  expect_broken<CleanupReleaseLost>(cleanup, true, cleanup, "a RELEASE is lost behind its sending");
  cleanup.sent(Cleanup::Command::kRelease);
  expect_broken<CleanupDue>(cleanup, kNever, cleanup, "a command that was sent is repeated");
  expect_broken<CleanupSent>(cleanup, Cleanup::Command::kCancel, cleanup,
                             "what was sent is still due");
}

TEST(ModelTest, held_lease) {
  HeldLease held;
  expect_broken<HeldFence>(held, 1, held, "its terms come with the grant");
  expect_broken<HeldDeadline>(held, kNow, held, "there is no deadline before the grant");
  expect_broken<HeldRenewal>(held, kNow, held, "nothing is extended before the grant");
  std::string label;
  (void)held.start({.deadline = kNow + kTtl, .renewal_at = kNow + kTtl / 3}, {.ttl = kTtl}, label,
                   kNow, true);
  expect_broken<HeldDeadline>(held, 0, held, "a lease has a deadline");
  expect_broken<HeldRenewal>(held, kNever, held, "a renewal is due");
  expect_broken<HeldEnd>(held, kNow + kTtl, held, "no renewal beyond max_hold");
  expect_broken<HeldAttachCount>(held, -1, held, "hand-offs and attaches are counted");
  set<HeldRenewal>(held, kNever);
  set<HeldEnd>(held, kNow);
  EXPECT_STREQ(held.check(), "max_hold counts from the grant");
}

TEST(ModelTest, upgrade) {
  constexpr int kIdle = 0, kAsked = 2, kOver = 3;  // of stage_
  constexpr int kCancel = 1;                       // of rollback_
  Upgrade upgrade;
  expect_broken<UpgradeTicket>(upgrade, "17", upgrade,
                               "only an upgrade that was asked for has a ticket");
  expect_broken<UpgradeIsUnanswered>(
      upgrade, true, upgrade, "an answer is outstanding that nothing waits for or rolls back");
  expect_broken<UpgradeIsRollingBack>(upgrade, true, upgrade,
                                      "a rollback is outstanding that nothing needs");
  expect_broken<UpgradeDue>(upgrade, kNow, upgrade, "a timer without anything to do");
  expect_broken<UpgradeHint>(upgrade, kNow, upgrade, "a hint that no answer takes up");
  expect_broken<UpgradeRollback>(upgrade, kCancel, upgrade, "no member to cancel");
  set<UpgradeStage>(upgrade, kAsked);
  set<UpgradeTicket>(upgrade, "17");
  expect_broken<UpgradeIsOneTry>(upgrade, true, upgrade, "one try is never queued");
  set<UpgradeTicket>(upgrade, "");
  set<UpgradeMember>(upgrade, "member");
  expect_broken<UpgradeRollback>(upgrade, kCancel, upgrade, "what was asked for is not cancelled");
  set<UpgradeStage>(upgrade, kOver);
  expect_broken<UpgradeDue>(upgrade, kNow, upgrade, "a timer without anything to do");
  set<UpgradeStage>(upgrade, kIdle);
  EXPECT_STREQ(upgrade.check(), nullptr);
}

TEST(ModelTest, key_watch) {
  KeyWatch watch;
  expect_broken<WatchCount>(watch, 1, watch, "waiters are counted");
  KeyWatch::Watcher first(1);
  KeyWatch::Watcher second(2);
  watch.set_waiting(first, true);
  watch.set_waiting(second, true);
  expect_broken<WatchCount>(watch, 1, watch, "no waiter is listed twice");
  expect_broken<WatcherWaits>(first, false, watch, "only waiters are listed");
  expect_broken<WatcherPrevious>(first, nullptr, watch, "each waiter knows the one before it");
  first.set_id(0);
  EXPECT_STREQ(watch.check(), "a waiter has an id");
  first.set_id(1);
  first.set_rank(-2);
  EXPECT_STREQ(watch.check(), "a rank is a place in the queue, or not known");
}

TEST(ModelTest, waitlist) {
  Waitlist waitlist;
  Waitlist::Place place;
  Waitlist::Caller first;
  Waitlist::Caller second;
  Waitlist::Place *const none = nullptr;
  ASSERT_EQ(waitlist.open(place).transition, Waitlist::Transition::kNone);
  expect_broken<WaitlistLast>(waitlist, &first, waitlist, "a list has two ends or none");
  (void)waitlist.join(first);
  (void)waitlist.join(second);
  expect_broken<WaitlistPlace>(waitlist, none, waitlist,
                               "callers have a place in the server's queue");
  expect_broken<WaitlistLast>(waitlist, &first, waitlist, "the list ends with its last caller");
  expect_broken<CallerIsListed>(second, false, waitlist, "a caller in the list knows it");
  expect_broken<CallerPrevious>(second, nullptr, waitlist, "each caller knows the one before it");
}

TEST(ModelTest, replication) {
  constexpr int kDue = 1, kPutOff = 4;  // of state_
  Replication replication;
  Replication::Entry entry(2, 500 * kMs);
  replication.want(entry, kNever);
  expect_broken<EntryState>(entry, kPutOff, replication,
                            "what is due is in the list of what is due");
  expect_broken<EntryPrevious>(entry, &entry, replication,
                               "what is due is in the list of what is due");
  ASSERT_EQ(replication.start(), &entry);
  expect_broken<ReplicationIsWaiting>(replication, false, replication,
                                      "a batch is answered by its WAIT");
  expect_broken<ReplicationReplicas>(replication, 1, replication,
                                     "a batch wants one number of replicas");
  expect_broken<EntryState>(entry, kDue, replication, "what is batched is in the batch");
  replication.sent(entry, kTtl, kNow);
  replication.on_put_off(entry, kNow + kMs);
  expect_broken<EntryState>(entry, kDue, replication, "what is put off is in its list");
}

}  // namespace
}  // namespace redlatch::lock
