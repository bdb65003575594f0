// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: readers, upgrades and the way back, owners. Method: a client with made replies and a fake
// clock.
#include "lock_client_world.h"

namespace redlatch {

namespace {

lock::AcquireOptions reading(std::string owner = {}) {
  lock::AcquireOptions options;
  options.mode = protocol::Mode::kRead;
  options.owner = std::move(owner);
  return options;
}

lock::AcquireOptions writing(std::string owner) {
  lock::AcquireOptions options;
  options.owner = std::move(owner);
  return options;
}

lock::AcquireOptions reentrant(std::string owner) {
  lock::AcquireOptions options;
  options.format = protocol::Format::kHash;
  options.owner = std::move(owner);
  return options;
}

constexpr char kUpgradeFence[] = "1700000000000096";

}  // namespace

class UpgradingTest : public LockClientWorld {
 protected:
  UpgradingTest() { connect(); }

  // A reader that waits to write, behind another one.
  RequestPtr waiting_upgrade(const std::shared_ptr<Lease> &lease, int64_t wait_ms = -1) {
    const auto request = upgrade(lease, wait_ms);
    EXPECT_EQ(next_script(), "upgrade");
    reply_queued(20'000, 0, "rl:shared");
    EXPECT_EQ(request->status.load(), Status::kPending);
    return request;
  }
  protocol::Mode mode(const std::shared_ptr<Lease> &lease) const { return lease->mode.load(); }
};

TEST_F(UpgradingTest, pushed_grant_to_a_reader_is_provisional_and_then_extended) {
  const auto request = acquire(-1, reading());
  reply_queued();
  // The token is that of the first request of this client.
  acquire(0, reading(), "other");
  const std::string other = argument(0);
  reply_queued();
  std::string mine = other;
  mine.back() = '1';
  push_grant(mine, 0, 3000, "12345678", protocol::Mode::kWrite);
  EXPECT_EQ(request->status.load(), Status::kPending) << "it does not wait to write";
  push_grant(mine, 0, 3000, "12345678", protocol::Mode::kRead, "1700000000000064");
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->lease->fence, 1700000000000064);
  advance(1'000 * kMs);
  EXPECT_EQ(next_script(), "extend_shared");
}

TEST_F(UpgradingTest, upgrade_polls_if_messages_do_not_arrive) {
  disconnect();
  ServerFacts facts;
  facts.is_push_trusted = false;
  client_->on_connected(0, facts, now_);
  const auto lease = held(reading());
  const auto request = waiting_upgrade(lease, 5'000);
  advance(300 * kMs);
  ASSERT_EQ(next_script(), "upgrade") << "the other reader may have released";
  EXPECT_EQ(argument(2).substr(32, 2), "u+") << "its entry says that it polls";
  reply_granted(kUpgradeFence);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(UpgradingTest, notified_upgrade_polls_at_the_given_time) {
  const auto lease = held(reading());
  const auto request = waiting_upgrade(lease);
  client_->on_push(0, "n" + lease->token.substr(22) + "00250", now_);
  advance(249 * kMs);
  EXPECT_EQ(next_script(), "");
  advance(2 * kMs);
  EXPECT_EQ(next_script(), "upgrade");
}

TEST_F(UpgradingTest, second_upgrade_is_a_deadlock_and_keeps_the_reader) {
  const auto lease = held(reading());
  const auto request = upgrade(lease);
  reply_count("upgrade", -2);
  EXPECT_EQ(request->status.load(), Status::kServer) << "three numbers are no answer of UPGRADE";
  const auto again = upgrade(lease);
  while (next_script() == "cancel") reply_count("cancel", 0);
  ASSERT_EQ(next_script(), "upgrade");
  reply(MadeReply::list(MadeReply::integer(-2), MadeReply::integer(server_ms())));
  EXPECT_EQ(again->status.load(), Status::kDeadlock);
  EXPECT_EQ(state(lease), Lease::kHeld);
  EXPECT_EQ(mode(lease), protocol::Mode::kRead);
  EXPECT_EQ(next_script(), "") << "nothing was queued";
}

TEST_F(UpgradingTest, timed_out_upgrade_is_cancelled_and_keeps_the_reader) {
  const auto lease = held(reading());
  const auto request = waiting_upgrade(lease, 1'000);
  advance(1'000 * kMs);
  EXPECT_EQ(request->status.load(), Status::kTimeout);
  EXPECT_EQ(state(lease), Lease::kHeld);
  ASSERT_EQ(next_script(), "cancel");
  EXPECT_EQ(argument(0)[32], 'u');
  reply_count("cancel", 1);
  EXPECT_EQ(next_script(), "");
  EXPECT_EQ(mode(lease), protocol::Mode::kRead);
}

TEST_F(UpgradingTest, upgrade_by_a_late_duplicate_is_downgraded) {
  const auto lease = held(reading());
  push_grant(lease->token, 0, 3000, "12345678", protocol::Mode::kUpgrade);
  ASSERT_EQ(next_script(), "downgrade") << "nobody asked for it";
  reply_count("downgrade", 1);
  advance(10'000 * kMs);
  reply_count("extend_shared", 1);
  ASSERT_EQ(next_script(), "downgrade") << "nor for this, which no message told";
  reply_count("downgrade", 1);
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(UpgradingTest, unanswered_try_to_upgrade_is_unknown_and_downgraded) {
  const auto lease = held(reading());
  const auto request = upgrade(lease, 0);
  disconnect();
  EXPECT_EQ(request->status.load(), Status::kOutcomeUnknown);
  connect();
  reply_count("extend_shared", 1);
  ASSERT_EQ(next_script(), "downgrade");
  reply_count("downgrade", 1);
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(UpgradingTest, upgrade_after_an_unanswered_downgrade_is_sent) {
  const auto lease = held();
  const auto request = downgrade(lease);
  client_->cancel(*request, now_);
  EXPECT_EQ(upgrade(lease)->status.load(), Status::kPending) << "others may read by now";
}

TEST_F(UpgradingTest, release_ends_a_waiting_upgrade) {
  const auto lease = held(reading());
  const auto request = waiting_upgrade(lease);
  const auto released = release(lease);
  EXPECT_EQ(request->status.load(), Status::kNotHeld);
  ASSERT_EQ(next_script(), "release") << "which drops the entry as well";
  reply_count("release", 1);
  EXPECT_EQ(released->status.load(), Status::kOk);
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(UpgradingTest, lost_reader_ends_its_upgrade) {
  const auto lease = held(reading());
  const auto request = waiting_upgrade(lease);
  advance(10'000 * kMs);
  reply_count("extend_shared", 0);
  EXPECT_EQ(request->status.load(), Status::kLost);
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(UpgradingTest, shut_down_ends_a_waiting_upgrade) {
  const auto lease = held(reading());
  const auto request = waiting_upgrade(lease);
  client_->shut_down(now_);
  EXPECT_EQ(request->status.load(), Status::kClosed);
  EXPECT_EQ(state(lease), Lease::kReleased);
}

TEST_F(UpgradingTest, reader_granted_before_the_answer_to_a_downgrade_causes_no_loss) {
  const auto lease = held();
  const auto reader = acquire(-1, reading());
  const std::string token = argument(0);
  reply_queued();
  const auto request = downgrade(lease);
  push_grant(token, 0, 3000, "12345678", protocol::Mode::kRead);
  EXPECT_EQ(reader->status.load(), Status::kOk);
  EXPECT_EQ(state(lease), Lease::kHeld);
  reply_count("downgrade", 1);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(UpgradingTest, unanswered_downgrade_is_settled_by_the_next_renewal) {
  const auto lease = held();
  const auto request = downgrade(lease);
  disconnect();
  advance(3'000 * kMs);  // until it connects,
  advance(3'000 * kMs);  // which takes long
  EXPECT_EQ(request->status.load(), Status::kOutcomeUnknown);
  connect();
  EXPECT_EQ(mode(lease), protocol::Mode::kRead) << "that much is certain";
  ASSERT_EQ(next_script(), "extend_shared") << "which works for both";
  reply_count("extend_shared", 1);
  ASSERT_EQ(next_script(), "downgrade") << "it goes on by itself";
  reply_count("downgrade", 1);
  EXPECT_EQ(next_script(), "");
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(UpgradingTest, upgrade_of_an_owner_that_reads_twice_is_a_deadlock) {
  const auto first = held(reading("me"));
  const auto second = held(reading("me"));
  EXPECT_EQ(upgrade(first)->status.load(), Status::kDeadlock);
  release(second);
  reply_count("release", 1);
  upgrade(first);
  EXPECT_EQ(next_script(), "upgrade");
}

TEST_F(UpgradingTest, owner_that_would_wait_for_itself_gets_already_held_with_advice) {
  const auto read = held(reading("me"));
  const auto write = acquire(-1, writing("me"));
  EXPECT_EQ(write->status.load(), Status::kAlreadyHeld);
  EXPECT_NE(write->message.find("upgrade"), std::string::npos) << write->message;
  release(read);
  reply_count("release", 1);
  held(writing("me"));
  const auto reader = acquire(-1, reading("me"));
  EXPECT_EQ(reader->status.load(), Status::kAlreadyHeld);
  EXPECT_NE(reader->message.find("downgrade"), std::string::npos) << reader->message;
}

TEST_F(UpgradingTest, owner_whose_lease_ended_may_acquire_again) {
  auto options = writing("me");
  options.ttl = 1'000 * kMs;
  options.is_renewed = false;
  held(options);
  advance(1'000 * kMs);
  EXPECT_EQ(acquire(-1, writing("me"))->status.load(), Status::kPending);
}

TEST_F(UpgradingTest, two_formats_of_one_name_share_no_place) {
  acquire(-1);
  acquire(-1, reentrant("me"));
  EXPECT_EQ(sent_.size(), 2u) << "they share no place";
}

}  // namespace redlatch
