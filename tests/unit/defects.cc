// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: without asserts, as in a release, an event that a machine refuses ends in RL_E_INTERNAL or
// a lost lease, and a line in the log; nothing stays behind, neither here nor on the server.
// Method: core/lock compiled with NDEBUG, and a machine that the test brings into another state
// than LockClient believes.
#include "lock_client_world.h"
#include "private_field.h"

namespace redlatch {

using CheckedHeld = Checked<lock::HeldLease>;
using CheckedUpgrade = Checked<lock::Upgrade>;
REDLATCH_OPEN_FIELD(HeldMachine, CheckedHeld, machine_);
REDLATCH_OPEN_FIELD(HeldState, lock::HeldLease, state_);
REDLATCH_OPEN_FIELD(UpgradeMachine, CheckedUpgrade, machine_);
REDLATCH_OPEN_FIELD(UpgradeStage, lock::Upgrade, stage_);

namespace {

using lock::Acquisition;
using lock::Cleanup;
using lock::HeldLease;
using lock::LossReason;
using lock::TokenRecord;
using lock::Upgrade;
using lock::Waitlist;

class DefectTest : public LockClientWorld {
 protected:
  DefectTest() { connect(); }

  void defect_found(std::string_view text) noexcept override { defects_.emplace_back(text); }

  static TokenRecord &record_of(const RequestPtr &request) {
    if (request->record != nullptr) return *request->record;
    return *static_cast<TokenRecord *>(request->lock->waitlist->place());
  }
  void expect_reported(std::string_view machine) {
    ASSERT_EQ(defects_.size(), 1u);
    EXPECT_NE(defects_.front().find(machine), std::string::npos) << defects_.front();
  }
  // The server has released the lock, and the client has nothing left of it.
  void expect_released() {
    reply_count("release", 1);
    expect_nothing_left();
  }
  void expect_nothing_left() {
    EXPECT_TRUE(sent_.empty()) << next_script();
    EXPECT_TRUE(client_->is_idle());
    EXPECT_EQ(1U, client_->drained_count());
  }

  std::vector<std::string> defects_;
};

TEST_F(DefectTest, caller_that_cannot_join_leaves_no_place_behind) {
  Waitlist other;
  Waitlist::Place place;
  auto request = std::make_shared<Request>(Request::Op::kAcquire);
  request->name = "lock";
  request->wait_ms = -1;
  request->lease = std::make_shared<Lease>();
  ASSERT_EQ(other.open(place).transition, Waitlist::Transition::kNone);
  ASSERT_EQ(other.join(*request).transition, Waitlist::Transition::kNone);
  client_->start(request, now_);
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_reported("waitlist");
  expect_nothing_left();
}

TEST_F(DefectTest, caller_that_cannot_join_does_not_disturb_the_others) {
  const auto first = acquire();
  Waitlist other;
  Waitlist::Place place;
  auto second = std::make_shared<Request>(Request::Op::kAcquire);
  second->name = "lock";
  second->wait_ms = -1;
  second->lease = std::make_shared<Lease>();
  ASSERT_EQ(other.open(place).transition, Waitlist::Transition::kNone);
  ASSERT_EQ(other.join(*second).transition, Waitlist::Transition::kNone);
  client_->start(second, now_);
  EXPECT_EQ(second->status.load(), Status::kInternal);
  reply_granted();
  EXPECT_EQ(first->status.load(), Status::kOk);
  release(first->lease);
  expect_released();
}

TEST_F(DefectTest, grant_in_the_wrong_state_is_released) {
  const auto request = acquire();
  record_of(request).acquisition.give(&Acquisition::served);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_reported("acquisition");
  expect_released();
}

TEST_F(DefectTest, grant_by_message_in_the_wrong_state_is_released) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  record_of(request).acquisition.give(&Acquisition::served);
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_reported("acquisition");
  expect_released();
}

TEST_F(DefectTest, one_try_in_the_wrong_state_is_released) {
  const auto request = acquire(0);
  record_of(request).acquisition.give(&Acquisition::served);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_released();
}

TEST_F(DefectTest, cleanup_continues_after_an_unexpected_answer) {
  const auto lease = held();
  const auto request = release(lease);
  request->record->cleanup().give(&Cleanup::on_refused);
  reply_count("release", 1);
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_reported("cleanup");
  EXPECT_FALSE(client_->is_idle());
  advance(1'000 * kMs);
  expect_released();
}

TEST_F(DefectTest, cleanup_that_has_already_ended_is_forgotten) {
  const auto lease = held();
  const auto request = release(lease);
  (void)request->record->cleanup().give(&Cleanup::on_release_answer, 1, now_, true);
  reply_count("release", 1);
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_reported("cleanup");
  expect_nothing_left();
}

TEST_F(DefectTest, lease_in_the_wrong_state_is_lost_and_released) {
  const auto lease = held();
  advance(10'001 * kMs);
  ASSERT_EQ(next_script(), "extend");
  set<HeldState>(opened<HeldMachine>(lease->record->held()), HeldLease::State::kIdle);
  reply_count("extend", 1);
  EXPECT_EQ(state(lease), Lease::kLost);
  EXPECT_EQ(lease->loss, LossReason::kDefect);
  expect_reported("held lease");
  advance(1'000 * kMs);  // after the notice
  expect_released();
}

TEST_F(DefectTest, upgrade_in_the_wrong_state_leaves_the_reader) {
  constexpr int kOver = 3;
  lock::AcquireOptions options;
  options.mode = protocol::Mode::kRead;
  const auto lease = held(options);
  lease->record->upgrade = std::make_unique<CheckedUpgrade>();
  set<UpgradeStage>(opened<UpgradeMachine>(*lease->record->upgrade), kOver);
  const auto request = upgrade(lease);
  EXPECT_EQ(request->status.load(), Status::kInternal);
  expect_reported("upgrade");
  EXPECT_EQ(state(lease), Lease::kHeld);
  const auto again = upgrade(lease);
  reply_granted("1700000000000099");
  EXPECT_EQ(again->status.load(), Status::kOk) << again->message;
}

}  // namespace
}  // namespace redlatch
