// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lock that is retained after its release is granted here without a call, and given back at
// once when another client asks for it, or when it is not certain any more.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lock_client_world.h"

namespace redlatch {
namespace {

class RetainingTest : public LockClientWorld {
 protected:
  static lock::AcquireOptions retaining(Nanos retain = 5'000 * kMs, Nanos ttl = 30'000 * kMs) {
    lock::AcquireOptions options;
    options.ttl = ttl;
    options.retain = retain;
    return options;
  }
  // The lock was free, without waiters.
  void reply_granted_alone(int64_t fences = 1024, std::string_view fence = kFence) {
    ASSERT_EQ(next_script(), "acquire");
    reply(MadeReply::list(MadeReply::integer(1), MadeReply::text(std::string(fence)),
                          MadeReply::integer(server_ms()), MadeReply::integer(fences)));
  }
  std::shared_ptr<Lease> held_alone(lock::AcquireOptions options, int64_t fences = 1024) {
    const auto request = acquire(-1, std::move(options));
    reply_granted_alone(fences);
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  void retained(lock::AcquireOptions options = retaining()) {
    const auto lease = held_alone(std::move(options));
    token_ = lease->token;
    ASSERT_EQ(release(lease)->status.load(), Status::kOk);
    ASSERT_TRUE(sent_.empty());
  }
  void recall(const std::string &rest = "") {
    client_->on_push(0, "r" + token_.substr(protocol::kCidSize) + rest, now_);
  }
  // A release was sent, and is answered.
  void given_back(int64_t result = 1) {
    reply_count("release", result);
    EXPECT_TRUE(sent_.empty());
  }

  std::string token_;
};

TEST_F(RetainingTest, next_acquire_needs_no_call_and_has_the_next_fence) {
  connect();
  retained();
  for (int64_t i = 1; i <= 3; i++) {
    const auto next = acquire(i == 2 ? 0 : -1, retaining());
    ASSERT_EQ(next->status.load(), Status::kOk);
    EXPECT_EQ(next->lease->fence.load(), std::stoll(std::string(kFence)) + i);
    EXPECT_EQ(state(next->lease), Lease::kHeld);
    EXPECT_EQ(release(next->lease)->status.load(), Status::kOk);
    EXPECT_EQ(state(next->lease), Lease::kReleased);
  }
  EXPECT_TRUE(sent_.empty());
}

TEST_F(RetainingTest, token_says_that_it_can_be_recalled) {
  connect();
  const auto plain = acquire(-1, {}, "plain");
  EXPECT_FALSE(protocol::is_recallable(argument(0)));
  reply_granted();
  const auto lease = held_alone(retaining());
  EXPECT_TRUE(protocol::is_recallable(lease->token));
  EXPECT_TRUE(protocol::is_token(lease->token));
}

TEST_F(RetainingTest, recall_of_an_idle_lock_releases_it_at_once) {
  connect();
  retained();
  recall();
  given_back();
  (void)acquire(-1, retaining());
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(RetainingTest, recall_by_a_user_releases_it_as_well) {
  connect();
  retained();
  recall(":deploy");
  given_back();
}

TEST_F(RetainingTest, recall_of_a_lock_in_use_makes_the_next_release_a_real_one) {
  connect();
  const auto lease = held_alone(retaining());
  token_ = lease->token;
  recall();
  EXPECT_EQ(state(lease), Lease::kHeld);
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(lease->recall_count, 0) << "a waiter is no user";
  const auto released = release(lease);
  EXPECT_FALSE(released->is_finished());
  given_back();
  EXPECT_EQ(released->status.load(), Status::kOk);
}

TEST_F(RetainingTest, recall_may_overtake_the_grant) {
  connect();
  const auto request = acquire(-1, retaining());
  token_ = argument(0);
  recall();
  reply_granted_alone();
  (void)release(request->lease);
  given_back();
}

TEST_F(RetainingTest, only_a_grant_without_waiters_is_retained) {
  connect();
  const auto request = acquire(-1, retaining());
  reply_granted();
  (void)release(request->lease);
  given_back();
}

TEST_F(RetainingTest, grant_by_message_is_not_retained) {
  connect();
  const auto request = acquire(-1, retaining());
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);
  ASSERT_EQ(request->status.load(), Status::kOk);
  (void)release(request->lease);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(RetainingTest, it_is_given_back_when_its_time_is_over_counted_from_the_grant) {
  connect();
  const auto lease = held_alone(retaining());
  advance(4'000 * kMs);
  ASSERT_EQ(release(lease)->status.load(), Status::kOk);
  advance(999 * kMs);
  EXPECT_TRUE(sent_.empty());
  advance(kMs);
  given_back();
}

TEST_F(RetainingTest, loop_gives_it_back_as_well) {
  connect();
  retained(retaining(1'000 * kMs));
  for (int i = 0; i < 9; i++) {
    advance(100 * kMs);
    const auto next = acquire(-1, retaining(1'000 * kMs));
    ASSERT_EQ(next->status.load(), Status::kOk);
    ASSERT_EQ(release(next->lease)->status.load(), Status::kOk);
  }
  EXPECT_TRUE(sent_.empty());
  const auto last = acquire(-1, retaining(1'000 * kMs));
  ASSERT_EQ(last->status.load(), Status::kOk);
  advance(100 * kMs);
  (void)release(last->lease);
  given_back();
}

TEST_F(RetainingTest, caller_that_does_not_retain_gives_it_back) {
  connect();
  retained();
  const auto next = acquire(-1, {});
  ASSERT_EQ(next->status.load(), Status::kOk);
  (void)release(next->lease);
  given_back();
}

TEST_F(RetainingTest, caller_waits_here_it_is_handed_off_as_ever) {
  connect();
  const auto lease = held_alone(retaining());
  const auto next = acquire(-1, retaining());
  EXPECT_EQ(next_script(), "acquire");
  reply_queued();
  ASSERT_EQ(release(lease)->status.load(), Status::kOk);
  ASSERT_EQ(next->status.load(), Status::kOk);
  // A place is in the queue: others behind it would not be heard.
  (void)release(next->lease);
  reply_count("cancel", 1);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(RetainingTest, without_fences_the_server_is_asked) {
  connect();
  const auto lease = held_alone(retaining(), 3);
  (void)release(lease);
  for (int i = 1; i < 32; i++) {
    const auto next = acquire(-1, retaining());
    ASSERT_EQ(next->status.load(), Status::kOk) << i;
    (void)release(next->lease);
  }
  const auto next = acquire(-1, retaining());
  EXPECT_FALSE(next->is_finished());
  reply_count("release", 1);
  reply_granted_alone(1024, "1700000000001024");
  EXPECT_EQ(next->lease->fence.load(), 1'700'000'000'001'024);
}

TEST_F(RetainingTest, short_rest_of_the_lease_is_not_enough) {
  connect();
  retained(retaining(8'000 * kMs, 10'000 * kMs));
  advance(6'000 * kMs);
  const auto next = acquire(-1, retaining());
  EXPECT_FALSE(next->is_finished());
  EXPECT_EQ(next_script(), "release");
}

TEST_F(RetainingTest, idle_lock_is_not_renewed) {
  connect();
  retained(retaining(30'000 * kMs, 10'000 * kMs));
  advance(9'000 * kMs);
  EXPECT_TRUE(sent_.empty());
  advance(2'000 * kMs);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(RetainingTest, reader_waits_behind_its_release) {
  connect();
  retained();
  lock::AcquireOptions reads;
  reads.mode = protocol::Mode::kRead;
  (void)acquire(-1, reads);
  reply_count("release", 1);
  EXPECT_EQ(next_script(), "acquire_read");
}

TEST_F(RetainingTest, nothing_is_granted_from_a_lost_connection) {
  connect();
  retained();
  disconnect();
  const auto next = acquire(-1, retaining());
  EXPECT_FALSE(next->is_finished());
  client_->on_connected(0, {}, now_);
  // In the order of their records.
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(RetainingTest, it_is_released_when_connected_again) {
  connect();
  retained();
  disconnect();
  client_->on_connected(0, {}, now_);
  given_back(-1);
}

TEST_F(RetainingTest, release_is_due_for_as_long_as_the_server_keeps_it) {
  connect();
  retained();
  const auto brief = acquire(-1, retaining(5'000 * kMs, 20 * kMs));
  ASSERT_EQ(brief->status.load(), Status::kOk);
  (void)release(brief->lease);
  disconnect();
  advance(10'000 * kMs);
  client_->on_connected(0, {}, now_);
  given_back();
}

TEST_F(RetainingTest, lock_in_use_counts_as_recalled_after_a_lost_connection) {
  connect();
  const auto lease = held_alone(retaining());
  disconnect();
  client_->on_connected(0, {}, now_);
  reply_count("extend", 1);
  (void)release(lease);
  given_back();
}

TEST_F(RetainingTest, renewal_that_finds_it_gone_forgets_it) {
  connect();
  const auto lease = held_alone(retaining(30'000 * kMs));
  advance(11'000 * kMs);
  ASSERT_EQ(next_script(), "extend");
  ASSERT_EQ(release(lease)->status.load(), Status::kOk);
  reply_count("extend", -1);
  EXPECT_TRUE(sent_.empty());
  (void)acquire(-1, retaining());
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(RetainingTest, another_grant_of_the_lock_forgets_it) {
  connect();
  retained();
  lock::AcquireOptions reads;
  reads.mode = protocol::Mode::kRead;
  const auto reader = acquire(-1, reads);
  reply_count("release", -1);
  reply_granted();
  EXPECT_EQ(reader->status.load(), Status::kOk);
}

TEST_F(RetainingTest, late_grant_by_message_changes_nothing_and_a_later_one_gives_it_back) {
  connect();
  retained();
  push_grant(token_, 0, 3000, "12345678", protocol::Mode::kWrite, "1700000000000000");
  EXPECT_TRUE(sent_.empty());
  push_grant(token_);
  given_back();
}

TEST_F(RetainingTest, shutdown_releases_all_in_one_batch) {
  connect();
  for (const char *name : {"a", "b", "c"}) {
    const auto request = acquire(-1, retaining(), name);
    reply_granted_alone();
    (void)release(request->lease);
  }
  EXPECT_TRUE(sent_.empty());
  client_->shut_down(now_);
  EXPECT_EQ(sent_.size(), 3U);
  EXPECT_EQ(client_->drained_count(), 0U);
  while (!sent_.empty()) reply_count("release", 1);
  EXPECT_EQ(client_->drained_count(), 1U);
}

TEST_F(RetainingTest, client_listens_while_it_retains) {
  connect();
  EXPECT_FALSE(client_->expects_push());
  retained();
  EXPECT_TRUE(client_->expects_push());
  EXPECT_TRUE(client_->is_outstanding());
  recall();
  given_back();
  EXPECT_FALSE(client_->expects_push());
}

TEST_F(RetainingTest, lock_that_was_recalled_idle_is_not_retained_for_a_while) {
  connect();
  retained();
  recall();
  given_back();
  const auto lease = held_alone(retaining());
  (void)release(lease);
  given_back();
  advance(20 * kMs);
  retained();
}

TEST_F(RetainingTest, downgrade_names_the_fence_that_the_server_has) {
  connect();
  const auto lease = held_alone(retaining());
  (void)downgrade(lease);
  ASSERT_EQ(next_script(), "downgrade");
  EXPECT_EQ(argument(3), std::to_string(std::stoll(std::string(kFence)) + 1024 - 32));
  reply_count("downgrade", 1);
  (void)release(lease);
  given_back();
}

// ---- readers -----------------------------------------------------------------------------------

class RetainingReadersTest : public RetainingTest {
 protected:
  static lock::AcquireOptions reading(Nanos retain = 5'000 * kMs) {
    lock::AcquireOptions options = retaining(retain);
    options.mode = protocol::Mode::kRead;
    return options;
  }
  void reply_reads_alone() {
    ASSERT_EQ(next_script(), "acquire_read");
    reply(MadeReply::list(MadeReply::integer(1), MadeReply::text(std::string(kFence)),
                          MadeReply::integer(server_ms()), MadeReply::integer(1)));
  }
  std::shared_ptr<Lease> reads_alone() {
    const auto request = acquire(-1, reading());
    reply_reads_alone();
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  void recall_of(const std::string &token) {
    client_->on_push(0, "r" + token.substr(protocol::kCidSize), now_);
  }
};

TEST_F(RetainingReadersTest, next_reader_needs_no_call_and_has_the_same_fence) {
  connect();
  const auto first = reads_alone();
  ASSERT_EQ(release(first)->status.load(), Status::kOk);
  for (int i = 0; i < 2'000; i++) {
    const auto next = acquire(i % 2 == 0 ? 0 : -1, reading());
    ASSERT_EQ(next->status.load(), Status::kOk);
    ASSERT_EQ(next->lease->fence.load(), std::stoll(std::string(kFence)));
    ASSERT_EQ(next->lease->mode, protocol::Mode::kRead);
    ASSERT_EQ(release(next->lease)->status.load(), Status::kOk);
  }
  EXPECT_TRUE(sent_.empty());
}

TEST_F(RetainingReadersTest, each_of_several_is_retained_and_taken) {
  connect();
  const auto one = reads_alone(), two = reads_alone(), three = reads_alone();
  for (const auto &lease : {one, two, three}) {
    ASSERT_EQ(release(lease)->status.load(), Status::kOk);
  }
  std::set<std::string> tokens;
  for (int i = 0; i < 3; i++) tokens.insert(acquire(-1, reading())->lease->token);
  EXPECT_EQ(tokens, (std::set<std::string>{one->token, two->token, three->token}));
  EXPECT_TRUE(sent_.empty());
  (void)acquire(-1, reading());
  EXPECT_EQ(next_script(), "acquire_read");
}

TEST_F(RetainingReadersTest, recall_ends_the_one_that_it_names) {
  connect();
  const auto idle = reads_alone(), in_use = reads_alone();
  (void)release(idle);
  recall_of(idle->token);
  EXPECT_EQ(argument(0), idle->token);
  given_back();
  recall_of(in_use->token);
  EXPECT_EQ(state(in_use), Lease::kHeld);
  (void)release(in_use);
  given_back();
}

TEST_F(RetainingReadersTest, writer_here_comes_behind_the_release_of_all) {
  connect();
  const auto one = reads_alone(), two = reads_alone();
  (void)release(one);
  (void)release(two);
  (void)acquire(0, retaining());
  reply_count("release", 1);
  reply_count("release", 1);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(RetainingReadersTest, upgrade_comes_behind_the_release_of_the_others) {
  connect();
  const auto idle = reads_alone(), upgrading = reads_alone();
  (void)release(idle);
  const auto request = upgrade(upgrading, 0);
  reply_count("release", 1);
  ASSERT_EQ(next_script(), "upgrade");
  reply(MadeReply::list(MadeReply::integer(1), MadeReply::text(std::string(kFence)),
                        MadeReply::integer(server_ms())));
  ASSERT_EQ(request->status.load(), Status::kOk);
  (void)release(upgrading);
  given_back();
}

TEST_F(RetainingReadersTest, reader_does_not_take_what_a_writer_has_left) {
  connect();
  retained();
  (void)acquire(-1, reading());
  reply_count("release", 1);
  reply_reads_alone();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(RetainingReadersTest, lost_connection_ends_all) {
  connect();
  const auto one = reads_alone(), two = reads_alone();
  (void)release(one);
  disconnect();
  const auto next = acquire(-1, reading());
  EXPECT_FALSE(next->is_finished());
  (void)two;
}

TEST_F(RetainingReadersTest, upgrade_after_many_acquisitions_counts_fences_anew) {
  connect();
  auto lease = held_alone(retaining());
  for (int i = 0; i < 100; i++) {
    (void)release(lease);
    lease = acquire(-1, retaining())->lease;
  }
  (void)downgrade(lease);
  reply_count("downgrade", 1);
  const auto request = upgrade(lease);
  ASSERT_EQ(next_script(), "upgrade");
  const std::string fence = std::to_string(std::stoll(std::string(kFence)) + 5'000);
  reply(MadeReply::list(MadeReply::integer(1), MadeReply::text(fence),
                        MadeReply::integer(server_ms())));
  ASSERT_EQ(request->status.load(), Status::kOk) << request->message;
  EXPECT_EQ(lease->fence.load(), std::stoll(fence)) << "the next holder must have a higher one";
}

// ---- a try that meets a lock which another client retains ---------------------------------------

constexpr int64_t kHeard = 8;

TEST_F(RetainingTest, try_waits_for_a_holder_that_was_recalled) {
  connect();
  const auto request = acquire(0, {});
  reply_queued(30'000, -1, "aaaaaaaaaaaaaaaaaaaaaA8123456789", "string", kHeard);
  EXPECT_FALSE(request->is_finished());
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_FALSE(argument(2).empty()) << "it has a place in the queue";
  const std::string token = argument(0);
  reply_queued(30'000, 0, "aaaaaaaaaaaaaaaaaaaaaA8123456789", "string", kHeard);
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(RetainingTest, try_is_busy_after_its_bound) {
  connect();
  const auto request = acquire(0, {});
  reply_queued(30'000, -1, "aaaaaaaaaaaaaaaaaaaaaA8123456789", "string", kHeard);
  reply_queued(30'000, 0, "aaaaaaaaaaaaaaaaaaaaaA8123456789", "string", kHeard);
  advance(5 * kMs);
  EXPECT_EQ(request->status.load(), Status::kBusy);
  EXPECT_NE(request->message.find("lock"), std::string::npos) << request->message;
  reply_count("cancel", 1);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(RetainingTest, try_does_not_wait_if_nobody_heard_it) {
  connect();
  const auto request = acquire(0, {});
  reply_queued(30'000, -1, "aaaaaaaaaaaaaaaaaaaaaA8123456789", "string", 0);
  EXPECT_EQ(request->status.load(), Status::kBusy);
}

TEST_F(RetainingTest, bound_of_a_try_has_two_round_trips_and_ends_at_20_ms) {
  connect();
  const auto request = acquire(0, {});
  advance(100 * kMs);
  reply_queued(30'000, -1, "aaaaaaaaaaaaaaaaaaaaaA8123456789", "string", kHeard);
  advance(19 * kMs);
  EXPECT_FALSE(request->is_finished());
  advance(kMs);
  EXPECT_EQ(request->status.load(), Status::kBusy);
}

}  // namespace
}  // namespace redlatch
