// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: from the grant to the end. Method: a client with made replies and a fake clock.
#include "lock_client_world.h"

namespace redlatch {

class HoldingTest : public LockClientWorld {
 protected:
  HoldingTest() { connect(); }
};

TEST_F(HoldingTest, refused_renewal_is_a_loss) {
  const auto lease = held();
  advance(10'000 * kMs);
  reply_count("extend", 0);
  EXPECT_EQ(state(lease), Lease::kLost);
  EXPECT_EQ(ended_count_, 1);
  EXPECT_EQ(next_script(), "") << "it is not ours: nothing to release";
  const auto request = release(lease);
  EXPECT_EQ(request->status.load(), Status::kLost);
}

TEST_F(HoldingTest, renewal_with_a_temporary_error_is_retried_until_the_deadline) {
  const auto lease = held(with_lease(3'000 * kMs));
  int tries = 0;
  while (state(lease) == Lease::kHeld && tries < 100) {
    advance(50 * kMs);
    if (next_script() != "extend") continue;
    reply(MadeReply::error("LOADING Redis is loading the dataset in memory"));
    tries++;
  }
  EXPECT_GE(tries, 3);
  EXPECT_EQ(state(lease), Lease::kLost);
  EXPECT_NE(lease->reason.find("LOADING"), std::string::npos) << lease->reason;
  advance(50 * kMs);
  EXPECT_EQ(next_script(), "release") << "it may still be ours on the server";
}

TEST_F(HoldingTest, lost_lock_is_released_when_the_holders_time_to_stop_has_passed) {
  lock::AcquireOptions options = with_lease(1'000 * kMs);
  options.is_renewed = false;
  const auto lease = held(options);
  advance(988 * kMs);
  ASSERT_EQ(state(lease), Lease::kLost);
  EXPECT_EQ(next_script(), "");
  disconnect();
  now_ += 11 * kMs;
  connect();
  EXPECT_EQ(next_script(), "");
  advance(kMs);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(HoldingTest, expired_lease_is_lost_even_before_the_timer_ran) {
  const auto lease = held(with_lease(100 * kMs));
  now_ += 98 * kMs;
  EXPECT_EQ(state(lease), Lease::kLost);
  const auto request = release(lease);
  EXPECT_EQ(request->status.load(), Status::kLost);
}

TEST_F(HoldingTest, abandoned_lease_is_released_in_the_background) {
  const auto lease = held();
  client_->release_async(*lease, now_);
  reply_count("release", 1);
  EXPECT_EQ(1U, client_->drained_count());
}

TEST_F(HoldingTest, grant_to_another_caller_of_this_client_reveals_a_loss) {
  lock::AcquireOptions strict;
  strict.max_local_handoffs = 0;
  const auto first = acquire(-1, strict);
  reply_granted();
  const auto second = acquire(-1, strict);
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);  // somebody forced it from the first
  EXPECT_EQ(second->status.load(), Status::kOk);
  EXPECT_EQ(first->lease->state.load(), Lease::kLost);
  EXPECT_EQ(release(first->lease)->status.load(), Status::kLost);
  EXPECT_EQ(second->lease->state_at(now_), Lease::kHeld);
}

TEST_F(HoldingTest, description_that_is_refused_is_not_sent_again) {
  lock::AcquireOptions labelled;
  labelled.label = "first";
  const auto lease = held(labelled);
  ASSERT_EQ(next_script(), "extend");
  ASSERT_EQ(argument(4), "label");
  reply(MadeReply::error("WRONGTYPE Operation against a key holding the wrong kind of value"));
  advance(10'000 * kMs);
  ASSERT_EQ(next_script(), "extend");
  EXPECT_EQ(sent_.front().at(2), "1") << "K alone";
  reply_count("extend", 1);
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(HoldingTest, shutdown_releases_everything_and_refuses_new_requests) {
  const auto lease = held();
  const auto waiting = acquire(-1, {}, "other");
  reply_queued();
  client_->shut_down(now_);
  EXPECT_EQ(waiting->status.load(), Status::kClosed);
  EXPECT_EQ(state(lease), Lease::kReleased);
  EXPECT_EQ(0U, client_->drained_count());
  reply_count("cancel", 1);
  reply_count("release", 1);
  EXPECT_EQ(1U, client_->drained_count());
  EXPECT_EQ(acquire()->status.load(), Status::kClosed);
  EXPECT_EQ(release(lease)->status.load(), Status::kClosed);
}

TEST_F(HoldingTest, queue_that_a_release_did_not_finish_serving_is_served) {
  const auto lease = held();
  release(lease);
  reply_count("release", 1, 1);
  EXPECT_EQ(next_script(), "serve_queue text");
  reply_count("serve_queue text", 0, 1);
  EXPECT_EQ(next_script(), "serve_queue text");
  reply_count("serve_queue text", 1, 0);
  EXPECT_EQ(next_script(), "");
}

TEST_F(HoldingTest, leases_acquired_together_are_renewed_in_few_batches) {
  std::vector<std::shared_ptr<Lease>> leases;
  for (int i = 0; i < 1'000; i++) {
    const auto request = acquire(-1, {}, "lock" + std::to_string(i));
    reply_granted();
    leases.push_back(request->lease);
  }
  int batches = 0;
  const Nanos until = now_ + 10'000 * kMs;
  size_t renewed = 0;
  while (now_ < until) {
    advance(std::min(client_->next_due() - now_, until - now_));
    client_->on_timer(now_);
    if (sent_.empty()) continue;
    batches++;
    renewed += sent_.size();
    while (!sent_.empty()) reply_count("extend", 1);
  }
  EXPECT_EQ(renewed, 1'000u);
  EXPECT_LE(batches, 40);
}

// Its timer is set to the end of the lease, which is when it would have been renewed.
TEST_F(HoldingTest, renewal_under_way_is_not_sent_twice) {
  acquire(-1, with_lease(1'500 * kMs), "other");
  reply_granted();
  auto options = with_lease(30'000 * kMs);
  options.label = "extended at once";
  const auto request = acquire(-1, options);
  const std::string token = argument(0);
  reply_queued();
  push_grant(token, 2'000 * kMs);
  ASSERT_EQ(request->status.load(), Status::kOk);
  ASSERT_EQ(next_script(), "extend");
  for (const Nanos end = now_ + 900 * kMs; now_ < end; now_ += 10 * kMs) client_->on_timer(now_);
  EXPECT_EQ(sent_.size(), 2u) << "one extension of each";
}

}  // namespace redlatch
