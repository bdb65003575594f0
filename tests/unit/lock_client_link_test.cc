// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: what becomes of everything when connections come and go. Method: a client with made
// replies and a fake clock.
#include "lock_client_world.h"

namespace redlatch {

using LinkTest = LockClientWorld;

TEST_F(LinkTest, idle_client_does_not_connect) {
  EXPECT_FALSE(client_->begin_connect(0, now_));
  EXPECT_EQ(client_->next_due(), kNever);
}

TEST_F(LinkTest, one_try_fails_after_one_connection_attempt) {
  const auto request = acquire(0);
  ASSERT_TRUE(client_->begin_connect(0, now_));
  client_->on_connect_failed(0, failure(Status::kUnavailable, "refused"), now_);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_EQ(request->message, "refused");
}

TEST_F(LinkTest, one_try_skips_the_pause_between_connection_attempts) {
  acquire();
  for (int i = 0; i < 8; i++) {
    advance(1'000 * kMs);
    client_->on_connect_failed(0, failure(Status::kUnavailable, "refused"), now_);
  }
  EXPECT_FALSE(client_->begin_connect(0, now_));
  acquire(0);
  EXPECT_TRUE(client_->begin_connect(0, now_));
}

TEST_F(LinkTest, waiter_outlasts_an_outage_shorter_than_its_wait) {
  const auto request = acquire(10'000);
  for (int i = 0; i < 5; i++) {
    ASSERT_TRUE(client_->begin_connect(0, now_)) << i;
    client_->on_connect_failed(0, failure(Status::kUnavailable, "refused"), now_);
    now_ = client_->next_due();
  }
  EXPECT_LT(now_, 3'000 * kMs);
  connect();
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(LinkTest, wait_that_ends_without_a_connection_fails_with_the_reason) {
  const auto request = acquire(500);
  ASSERT_TRUE(client_->begin_connect(0, now_));
  client_->on_connect_failed(0, failure(Status::kUnavailable, "refused"), now_);
  now_ += 501 * kMs;
  client_->on_timer(now_);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_EQ(request->message, "refused");
}

// The next connection may lead to another server: sentinels name it, or the endpoint of the URL has
// moved.
class MovingPrimaryTest : public LockClientWorld {
 protected:
  MovingPrimaryTest() { connect(); }
  // The server has become a replica, and is left.
  void refuse_as_replica() {
    reply(MadeReply::error("READONLY You can't write against a read only replica."));
    EXPECT_TRUE(is_dropped_) << "the next connection may lead to another server";
  }
};

TEST_F(MovingPrimaryTest, a_replica_that_refuses_an_acquire_is_disconnected) {
  const auto request = acquire(-1);
  refuse_as_replica();
  EXPECT_FALSE(request->is_finished());
  reconnect();
  EXPECT_EQ(next_script(), "acquire");
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(MovingPrimaryTest, a_release_that_a_replica_refuses_is_repeated) {
  const auto request = acquire(-1);
  reply_granted();
  const auto release_request = release(request->lease);
  EXPECT_EQ(next_script(), "release");
  refuse_as_replica();
  EXPECT_FALSE(release_request->is_finished()) << "the new primary can still be asked";
  reconnect();
  EXPECT_EQ(next_script(), "release");
  reply_count("release", 1);
  EXPECT_EQ(release_request->status.load(), Status::kOk);
}

TEST_F(MovingPrimaryTest, a_release_refused_by_a_replica_has_released_nothing) {
  const auto request = acquire(-1);
  reply_granted();
  const auto release_request = release(request->lease);
  refuse_as_replica();
  reconnect();
  reply_count("release", -1);
  EXPECT_EQ(release_request->status.load(), Status::kLost) << "no earlier copy can have released";
}

TEST_F(MovingPrimaryTest, a_release_after_a_command_refused_by_a_replica_has_released_nothing) {
  const auto request = acquire(-1);
  reply_granted();
  advance(11'000 * kMs);
  const auto release_request = release(request->lease);
  refuse_as_replica();  // to the renewal
  reconnect();
  ASSERT_EQ(next_script(), "release");
  reply_count("release", -1);
  EXPECT_EQ(release_request->status.load(), Status::kLost);
}

TEST_F(MovingPrimaryTest, a_renewal_that_a_replica_refuses_is_sent_to_the_primary) {
  const auto request = acquire(-1);
  reply_granted();
  advance(11'000 * kMs);
  ASSERT_EQ(next_script(), "extend");
  refuse_as_replica();
  reconnect();
  EXPECT_EQ(next_script(), "extend");
}

// A grant to a waiter takes its place out of the queue. Both may be lost in a failover.
class LostGrantTest : public LockClientWorld {
 protected:
  LostGrantTest() {
    settings_.sentinel.addresses = {{"s1", "26379"}};
    settings_.sentinel.primary_name = "main";
    client_ = make_client();
    connect();
  }
  void wait_for_grant() {
    request_ = acquire(-1);
    const std::string token = argument(0);
    reply_queued();
    push_grant(token);
    ASSERT_EQ(request_->status.load(), Status::kOk);
    advance(1'500 * kMs);
    reply_count("extend", 1);
  }
  RequestPtr request_;
};

TEST_F(LostGrantTest, a_lost_lease_cancels_its_place_at_the_new_primary) {
  wait_for_grant();
  reconnect();
  reply_count("extend", 0);
  EXPECT_EQ(state(request_->lease), Lease::kLost);
  EXPECT_EQ(next_script(), "cancel") << "the new primary would grant the lock to no caller";
  reply_count("cancel", 1);
  EXPECT_EQ(next_script(), "");
}

TEST_F(LostGrantTest, an_unanswered_release_cancels_the_place_at_the_new_primary) {
  wait_for_grant();
  const auto release_request = release(request_->lease);
  ASSERT_EQ(next_script(), "release");
  reconnect();
  reply_count("cancel", 1);
  reply_count("release", -1);
  EXPECT_EQ(release_request->status.load(), Status::kOk) << "an earlier copy may have released";
}

TEST_F(LostGrantTest, a_release_after_a_failover_cancels_the_place_first) {
  wait_for_grant();
  reconnect();
  reply_count("extend", 1);
  const auto release_request = release(request_->lease);
  reply_count("cancel", 2);
  reply_count("release", 1);
  EXPECT_EQ(release_request->status.load(), Status::kOk);
}

TEST_F(MovingPrimaryTest, a_lost_lease_cancels_its_place_after_a_replica_refused) {
  const auto request = acquire(-1);
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);
  advance(1'500 * kMs);
  refuse_as_replica();
  reconnect();
  reply_count("extend", 0);
  EXPECT_EQ(state(request->lease), Lease::kLost);
  EXPECT_EQ(next_script(), "cancel");
}

TEST_F(MovingPrimaryTest, the_pauses_grow_while_connections_lead_to_a_replica) {
  const auto request = acquire(-1);
  Nanos pause = 0;
  for (int i = 0; i < 10; i++) {
    refuse_as_replica();
    disconnect();
    for (pause = 0; !client_->begin_connect(0, now_); pause += kMs) {
      ASSERT_LT(pause, 1'000 * kMs);
      now_ += kMs;
    }
    client_->on_connected(0, {}, now_);
    ASSERT_EQ(next_script(), "acquire");
  }
  EXPECT_GE(pause, 250 * kMs) << "a replica is not asked as fast as it refuses";
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(LinkTest, an_attempt_without_memory_ends_one_try_and_no_wait) {
  const auto patient = acquire(-1, {}, "other");
  const auto request = acquire(0);
  ASSERT_TRUE(client_->begin_connect(0, now_));
  client_->on_connect_failed(0, {Status::kNoMemory, {}}, now_);
  EXPECT_EQ(request->status.load(), Status::kNoMemory);
  now_ = client_->next_due();
  connect();
  reply_granted();
  EXPECT_EQ(patient->status.load(), Status::kOk);
}

TEST_F(LinkTest, wrong_password_fails_all_waiters_at_once) {
  const auto patient = acquire(-1);
  ASSERT_TRUE(client_->begin_connect(0, now_));
  client_->on_connect_failed(0, failure(Status::kDenied, "WRONGPASS"), now_);
  EXPECT_EQ(patient->status.load(), Status::kDenied);
}

TEST_F(LinkTest, missing_answer_drops_the_connection) {
  connect();
  acquire();
  advance(1'999 * kMs);
  EXPECT_FALSE(is_dropped_);
  now_ += kMs;
  client_->on_timer(now_);
  EXPECT_TRUE(is_dropped_);
}

TEST_F(LinkTest, unexpected_reply_drops_the_connection) {
  connect();
  client_->on_reply(0, MadeReply::integer(1).get(), now_);
  EXPECT_TRUE(is_dropped_);
}

TEST_F(LinkTest, acquire_with_a_lost_reply_is_repeated_with_the_same_member) {
  connect();
  const auto request = acquire();
  const std::string token = argument(0);
  const std::string member = argument(2);
  reconnect();
  EXPECT_EQ(argument(0), token);
  EXPECT_EQ(argument(2), member);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(LinkTest, held_lease_is_verified_on_a_new_connection) {
  connect();
  const auto lease = held();
  disconnect();
  EXPECT_EQ(state(lease), Lease::kHeld);
  connect();
  reply_count("extend", 0);
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(LinkTest, lease_expires_while_the_server_is_unreachable) {
  connect();
  const auto lease = held(with_lease(1'000 * kMs));
  disconnect();
  now_ += 989 * kMs;
  client_->on_timer(now_);
  EXPECT_EQ(lease->state.load(), Lease::kLost);
  EXPECT_NE(lease->reason.find("connection"), std::string::npos) << lease->reason;
}

TEST_F(LinkTest, queued_waiters_poll_in_order_on_a_new_connection) {
  connect();
  for (int i = 0; i < 5; i++) {
    acquire(-1, {}, "lock" + std::to_string(i));
    reply_queued();
  }
  reconnect();
  ASSERT_EQ(sent_.size(), 5u);
  for (size_t i = 0; i < 5; i++) EXPECT_EQ(sent_[i][3], "lock" + std::to_string(i));
}

TEST_F(LinkTest, force_release_is_never_sent_twice) {
  connect();
  auto request = std::make_shared<Request>(Request::What::ask<operate::Force>());
  request->name = "lock";
  client_->start(request, now_);
  EXPECT_EQ(next_script(), "force_release");
  disconnect();
  EXPECT_EQ(request->status.load(), Status::kOutcomeUnknown);
  connect();
  EXPECT_EQ(next_script(), "");
}

TEST_F(LinkTest, inspect_is_sent_again_after_a_lost_reply) {
  connect();
  auto request = std::make_shared<Request>(Request::What::ask<operate::Inspect>());
  request->name = "lock";
  client_->start(request, now_);
  reconnect();
  EXPECT_EQ(next_script(), "inspect");
}

TEST_F(LinkTest, clock_samples_do_not_outlive_their_connection) {
  connect();
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  reconnect();
  sent_.clear();  // the poll is on its way
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kPending) << "the stamp may be of another clock";
}

TEST_F(LinkTest, member_of_a_waiter_that_polls_says_so_from_the_first_acquire) {
  acquire();  // before anything is known of the server
  ServerFacts facts;
  facts.is_push_trusted = false;
  connect(facts);
  ASSERT_EQ(next_script(), "acquire");
  const std::string member = argument(2);
  EXPECT_EQ(member.substr(32, 6), "x+3000");
  reconnect();
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_EQ(argument(2), member) << "the place is found by the whole member";
  reply_queued();
  advance(300 * kMs);
  EXPECT_EQ(next_script(), "acquire") << "it may have the lock without a message";
}

TEST_F(LinkTest, queued_waiter_keeps_its_member_when_it_has_to_poll) {
  connect();
  acquire();
  ASSERT_EQ(next_script(), "acquire");
  const std::string member = argument(2);
  EXPECT_EQ(member.substr(32, 6), "x03000");
  disconnect();
  ServerFacts facts;
  facts.is_push_trusted = false;
  connect(facts);
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_EQ(argument(2), member);
}

// ---- another connection has the channel --------------------------------------------------------

class TakenChannelTest : public LinkTest {
 protected:
  static ServerFacts taken() {
    ServerFacts facts;
    facts.is_push_trusted = false;
    facts.why_not_trusted = "two receivers";
    facts.is_channel_taken = true;
    return facts;
  }
};

TEST_F(TakenChannelTest, a_taken_channel_is_replaced_and_the_waiter_keeps_its_ticket) {
  connect();
  acquire();
  ASSERT_EQ(next_script(), "acquire");
  const std::string token = argument(0);
  reply_queued();
  const std::string channel = client_->channel(0);
  disconnect();
  connect(taken());
  EXPECT_TRUE(is_dropped_) << "it would poll for as long as this connection lives";
  EXPECT_TRUE(sent_.empty());
  reconnect();
  EXPECT_FALSE(is_dropped_);
  EXPECT_NE(client_->channel(0), channel);
  ASSERT_EQ(next_script(), "acquire text");
  EXPECT_TRUE(client_->channel(0).ends_with(argument(0).substr(0, protocol::kCidSize)));
  EXPECT_NE(argument(0), token);
  EXPECT_NE(argument(3), "") << "the ticket";
  EXPECT_FALSE(protocol::polls(argument(2)));
  ASSERT_EQ(sent_.size(), 2U) << "behind it the rest of the old token is removed";
  sent_.pop_front();
  EXPECT_TRUE(next_script().starts_with("cancel")) << next_script();
}

TEST_F(TakenChannelTest, waiters_poll_if_a_few_channels_in_a_row_are_taken) {
  acquire();
  int dropped_count = 0;
  for (connect(taken()); is_dropped_; connect(taken())) {
    ASSERT_LT(++dropped_count, 10);
    disconnect();
  }
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_TRUE(protocol::polls(argument(2)));
  for (int i = 0; i < 3; i++) {
    disconnect();
    connect(taken());
    EXPECT_FALSE(is_dropped_) << "that is known now";
  }
}

TEST_F(LinkTest, leases_are_lost_when_the_client_is_destroyed) {
  connect();
  const auto lease = held();
  client_.reset();
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(LinkTest, release_over_breaking_connections_ends_with_an_unknown_outcome) {
  connect();
  const auto lease = held(with_lease(1'000 * kMs));
  const auto request = release(lease);
  for (int i = 0; i < 8; i++) {
    disconnect();
    now_ += 500 * kMs;
    connect();
  }
  EXPECT_EQ(next_script(), "");
  EXPECT_EQ(request->status.load(), Status::kOutcomeUnknown);
  EXPECT_TRUE(client_->is_idle());
}

}  // namespace redlatch
