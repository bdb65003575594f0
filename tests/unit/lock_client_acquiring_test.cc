// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: from the call to the grant. Method: a client with made replies and a fake clock.
#include "lock_client_world.h"

namespace redlatch {

class AcquiringTest : public LockClientWorld {
 protected:
  AcquiringTest() { connect(); }
};

TEST_F(AcquiringTest, grant_without_validity_is_requested_once_more_then_released) {
  const auto request = acquire(-1, with_lease(100 * kMs));
  now_ += 99 * kMs;
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kPending);
  now_ += 99 * kMs;
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kInvalid);
  EXPECT_NE(request->message.find("ttl must be well above"), std::string::npos) << request->message;
  EXPECT_EQ(next_script(), "release");
}

TEST_F(AcquiringTest, a_try_on_a_key_with_data_names_the_type_and_leaves_nothing) {
  const auto request = acquire(0);
  reply_queued(-1, 0, "", "list");
  EXPECT_EQ(request->status.load(), Status::kWrongType);
  EXPECT_EQ(request->message, "the key of lock 'lock' must be a string or a hash (got list)");
  EXPECT_EQ(next_script(), "");
  EXPECT_EQ(1U, client_->drained_count());
}

TEST_F(AcquiringTest, a_key_that_becomes_data_fails_all_callers_that_share_a_place) {
  const auto first = acquire(-1);
  const auto second = acquire(-1);
  reply_queued(5'000);
  ASSERT_EQ(first->status.load(), Status::kPending);
  advance(5'002 * kMs);
  ASSERT_EQ(next_script(), "acquire");
  reply_queued(-1, 0, "", "ReJSON-RL");
  for (const auto &request : {first, second}) {
    EXPECT_EQ(request->status.load(), Status::kWrongType);
    EXPECT_NE(request->message.find("ReJSON-RL"), std::string::npos) << request->message;
  }
  EXPECT_EQ(next_script(), "cancel");  // which notifies the next waiter
}

TEST_F(AcquiringTest, member_and_ticket_stay_the_same_in_every_poll) {
  acquire(60'000, [] {
    lock::AcquireOptions options;
    options.max_local_handoffs = 0;
    return options;
  }());
  const std::string token = argument(0);
  const std::string member = argument(2);
  EXPECT_EQ(member, token + "x03000" + "0000000060000");
  EXPECT_EQ(argument(3), "");
  reply_queued(5'000);
  advance(5'002 * kMs);
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_EQ(argument(0), token);
  EXPECT_EQ(argument(2), member);
  EXPECT_EQ(argument(3), "1700000000000001");
}

TEST_F(AcquiringTest, lease_is_lost_if_its_token_gets_a_second_grant) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued(1'000);
  advance(1'002 * kMs);
  push_grant(token);
  ASSERT_EQ(request->status.load(), Status::kOk);
  reply_granted("1700000000000999");
  EXPECT_EQ(state(request->lease), Lease::kLost);
  advance(302 * kMs);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(AcquiringTest, lost_lease_cancels_a_place_that_a_crossing_poll_opened) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued(1'000);
  advance(1'002 * kMs);
  push_grant(token);
  reply_queued();
  advance(1'000 * kMs);
  reply_count("extend", 0);
  EXPECT_EQ(state(request->lease), Lease::kLost);
  reply_count("cancel", 1);
  EXPECT_EQ(next_script(), "");
}

TEST_F(AcquiringTest, pushed_grant_is_valid_for_its_provisional_ttl_less_drift) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  now_ += 100 * kMs;
  push_grant(token, 40 * kMs);
  ASSERT_EQ(request->status.load(), Status::kOk);
  // 1 ms for the rounding of the stamp that the offset comes from, and its age.
  const Nanos latest = now_ - 40 * kMs + 3'000 * kMs - 32 * kMs;
  EXPECT_LE(request->lease->deadline.load(), latest);
  EXPECT_GE(request->lease->deadline.load(), latest - 3 * kMs);
  EXPECT_EQ(next_script(), "") << "confirmed only by a third of the claim";
  advance(1'000 * kMs);
  EXPECT_EQ(next_script(), "extend");
}

TEST_F(AcquiringTest, pushed_grant_with_an_impossible_fence_is_only_a_hint) {
  // Below the clock at the grant, or more than an hour ahead of it.
  for (const char *fence :
       {"0000000000000001", "1699999999999999", "1700003700000000", "9007199254740991"}) {
    const auto request = acquire(-1, {}, fence);
    const std::string token = argument(0);
    reply_queued();
    push_grant(token, 0, 3000, "12345678", protocol::Mode::kWrite, fence);
    EXPECT_EQ(request->status.load(), Status::kPending) << fence;
    ASSERT_EQ(next_script(), "acquire") << fence;
    reply_granted();
    EXPECT_EQ(request->lease->fence.load(), 1'700'000'000'000'000);
  }
}

TEST_F(AcquiringTest, pushed_grant_whose_fence_does_not_rise_is_only_a_hint) {
  const auto request = acquire(-1, with_lease(20'000 * kMs));
  const std::string token = argument(0);
  reply_queued();
  push_grant(token, 0, 3000, "12345678", protocol::Mode::kWrite, "1700000001100000");
  ASSERT_EQ(request->status.load(), Status::kOk);
  const auto next = acquire();
  const std::string second = argument(0);
  reply_queued();
  push_grant(second, 0, 3000, "12345678", protocol::Mode::kWrite, "1700000001100000");
  EXPECT_EQ(next->status.load(), Status::kPending);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(AcquiringTest, acquire_is_repeated_at_once_while_dead_waiters_remain) {
  const auto request = acquire();
  reply_queued(-2, 700, "", "none", 1);
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_EQ(argument(3), "1700000000000001");
  reply_queued(-2, 444, "", "none", 1);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
  const auto attempt = acquire(0, {}, "other");
  reply_queued(-2, -1, "", "none", 1);
  EXPECT_EQ(attempt->status.load(), Status::kPending);
  reply_granted();
  EXPECT_EQ(attempt->status.load(), Status::kOk);
}

// As the primary after a failover does, which has an older queue.
TEST_F(AcquiringTest, pushed_grant_to_an_ended_place_is_released) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);
  ASSERT_EQ(request->status.load(), Status::kOk);
  const auto released = release(request->lease);
  reply_count("release", 1);
  ASSERT_EQ(released->status.load(), Status::kOk);
  push_grant(token);
  ASSERT_EQ(next_script(), "release text");
  EXPECT_EQ(argument(0), token);
  reply_count("release text", 1);
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(AcquiringTest, malformed_and_unknown_pushes_change_nothing) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  for (const char *message :
       {"", "g", "n", "nzzzzzzzzzz00001", "g0000000001", "x", "n00000000010000"}) {
    client_->on_push(0, message, now_);
  }
  push_grant(std::string(22, 'a') + "00000000ff");
  EXPECT_EQ(request->status.load(), Status::kPending);
  EXPECT_EQ(next_script(), "");
}

TEST_F(AcquiringTest, notified_head_polls_when_the_provisional_ttl_has_passed) {
  acquire();
  const std::string token = argument(0);
  reply_queued(14'000, 1);
  client_->on_push(0, "n" + token.substr(22) + "03000", now_);
  advance(2'990 * kMs);
  EXPECT_EQ(next_script(), "");
  advance(20 * kMs);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(AcquiringTest, pushed_grant_after_a_cancel_is_released) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  EXPECT_EQ(client_->cancel(*request, now_), Status::kCancelled);
  EXPECT_EQ(client_->cancel(*request, now_), Status::kCancelled);
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kCancelled);
  reply_count("cancel", 2);
  reply_count("release", 1);
}

TEST_F(AcquiringTest, wait_that_ends_without_an_answer_has_an_unknown_outcome) {
  const auto request = acquire(1'000);
  advance(1'001 * kMs);
  EXPECT_EQ(request->status.load(), Status::kOutcomeUnknown);
}

TEST_F(AcquiringTest, callers_of_one_client_share_one_place) {
  const auto first = acquire();
  const auto second = acquire();
  const auto third = acquire();
  EXPECT_EQ(sent_.size(), 1u);
  reply_granted();
  EXPECT_EQ(first->status.load(), Status::kOk);
  ASSERT_EQ(sent_.size(), 1u) << "the next one stands in the server's queue";
  reply_queued();
  EXPECT_EQ(release(first->lease)->status.load(), Status::kOk);
  EXPECT_EQ(second->status.load(), Status::kOk);
  EXPECT_EQ(third->status.load(), Status::kPending);
  EXPECT_EQ(next_script(), "") << "passed on without a command";
  EXPECT_EQ(second->lease->fence, first->lease->fence + 1);
  EXPECT_EQ(second->lease->token, first->lease->token);
}

TEST_F(AcquiringTest, vacant_place_is_cancelled_before_the_lock_is_released) {
  const auto first = acquire();
  const auto second = acquire();
  reply_granted();
  reply_queued();
  release(first->lease);
  ASSERT_EQ(second->status.load(), Status::kOk);
  EXPECT_EQ(next_script(), "") << "the place stays for the next caller";
  release(second->lease);
  EXPECT_EQ(next_script(), "cancel");
  reply_count("cancel", 1);
  reply_count("release", 1);
  EXPECT_EQ(1U, client_->drained_count());
}

TEST_F(AcquiringTest, vacant_place_is_cancelled_soon) {
  const auto first = acquire();
  const auto second = acquire();
  reply_granted();
  reply_queued();
  release(first->lease);
  ASSERT_EQ(second->status.load(), Status::kOk);
  advance(250 * kMs);
  EXPECT_EQ(next_script(), "cancel");
  reply_count("cancel", 1);
  const auto third = acquire();
  EXPECT_EQ(next_script(), "acquire") << "a new place";
}

TEST_F(AcquiringTest, acquire_with_an_unknown_script_is_sent_as_text) {
  const auto request = acquire();
  reply(MadeReply::error("NOSCRIPT No matching script."));
  EXPECT_EQ(next_script(), "acquire text");
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(AcquiringTest, cancelled_acquire_with_an_unknown_script_is_not_sent_again) {
  const auto request = acquire();
  client_->cancel(*request, now_);
  reply(MadeReply::error("NOSCRIPT No matching script."));
  reply_count("cancel", 0);
  EXPECT_EQ(next_script(), "") << "an acquire behind its cancel would hold the lock for nobody";
}

TEST_F(AcquiringTest, denied_acquire_fails_at_once_and_a_temporary_error_is_retried) {
  const auto denied = acquire(-1, {}, "one");
  reply(MadeReply::error("NOPERM this user has no permissions"));
  EXPECT_EQ(denied->status.load(), Status::kDenied);

  const auto patient = acquire(1'000, {}, "two");
  reply(MadeReply::error("OOM command not allowed"));
  EXPECT_EQ(patient->status.load(), Status::kPending);
  advance(600 * kMs);
  ASSERT_EQ(next_script(), "acquire");
  reply(MadeReply::error("OOM command not allowed"));
  now_ += 1'000 * kMs;
  client_->on_timer(now_);
  EXPECT_EQ(patient->status.load(), Status::kServer);
  EXPECT_NE(patient->message.find("OOM"), std::string::npos) << patient->message;
}

TEST_F(AcquiringTest, malformed_answer_is_never_a_grant) {
  for (int i = 0; i < 4; i++) {
    const auto request = acquire(-1, {}, "lock" + std::to_string(i));
    if (i == 0) reply(MadeReply::integer(1));
    if (i == 1) reply(MadeReply::list(MadeReply::integer(1)));
    if (i == 2) reply(MadeReply::text("OK"));
    if (i == 3) {
      reply(
          MadeReply::list(MadeReply::integer(1), MadeReply::text("fence"), MadeReply::integer(5)));
    }
    EXPECT_EQ(request->status.load(), Status::kServer) << i;
  }
}

// Callers who come and go faster than the server answers cost little: what was cancelled before its
// turn is never asked for.
TEST_F(AcquiringTest, acquires_above_the_limit_in_flight_wait_for_answers) {
  std::vector<RequestPtr> requests;
  const auto count = static_cast<int>(kMaxInFlight) + 3;
  for (int i = 0; i < count; i++) requests.push_back(acquire(-1, {}, "n" + std::to_string(i)));
  EXPECT_EQ(sent_.size(), kMaxInFlight);
  client_->cancel(*requests[kMaxInFlight], now_);
  EXPECT_EQ(sent_.size(), kMaxInFlight) << "there was nothing to take back";
  reply_granted();
  ASSERT_EQ(sent_.size(), kMaxInFlight);
  EXPECT_EQ(sent_.back().at(3), "n" + std::to_string(kMaxInFlight + 1)) << "first come";
  reply_granted();
  EXPECT_EQ(sent_.back().at(3), "n" + std::to_string(kMaxInFlight + 2));
  while (!sent_.empty()) reply_granted();
  for (const auto &request : requests) EXPECT_TRUE(request->is_finished());
}

TEST_F(AcquiringTest, acquires_above_the_limit_are_sent_after_a_reconnect) {
  std::vector<RequestPtr> requests;
  for (size_t i = 0; i < kMaxInFlight + 1; i++) {
    requests.push_back(acquire(-1, {}, "n" + std::to_string(i)));
  }
  disconnect();
  client_->on_connected(0, {}, now_);
  for (size_t i = 0; i < requests.size(); i++) reply_granted();
  EXPECT_TRUE(requests.back()->is_finished());
}

}  // namespace redlatch
