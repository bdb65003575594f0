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

TEST_F(AcquiringTest, validity_counts_from_sending) {
  const auto request = acquire();
  const Nanos sent_at = now_;
  now_ += 500 * kMs;
  reply_granted();
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->lease->deadline.load(), sent_at + 30'000 * kMs - 302 * kMs);
  EXPECT_EQ(request->lease->fence, 1'700'000'000'000'000);
}

TEST_F(AcquiringTest, grant_without_validity_is_refreshed_once_then_given_back) {
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

TEST_F(AcquiringTest, one_try_that_is_refused_is_busy_and_leaves_nothing) {
  const auto request = acquire(0);
  EXPECT_EQ(argument(2), "") << "one try must not enqueue";
  reply_queued();
  EXPECT_EQ(request->status.load(), Status::kBusy);
  EXPECT_EQ(next_script(), "");
  EXPECT_TRUE(client_->is_drained());
}

TEST_F(AcquiringTest, a_key_of_another_format_is_busy) {
  const auto request = acquire(0);
  reply_queued(-1, 0, "", "hash");
  EXPECT_EQ(request->status.load(), Status::kBusy);
  EXPECT_NE(request->message.find("hash"), std::string::npos) << request->message;
}

TEST_F(AcquiringTest, a_try_at_data_names_its_type_and_leaves_nothing) {
  const auto request = acquire(0);
  reply_queued(-1, 0, "", "list");
  EXPECT_EQ(request->status.load(), Status::kWrongType);
  EXPECT_EQ(request->message, "the key of lock 'lock' must be a string or a hash (got list)");
  EXPECT_EQ(next_script(), "");
  EXPECT_TRUE(client_->is_drained());
}

TEST_F(AcquiringTest, all_callers_that_share_a_place_learn_at_once_that_the_key_became_data) {
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

TEST_F(AcquiringTest, lock_that_was_taken_by_force_and_granted_again_is_not_the_same_one) {
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

TEST_F(AcquiringTest, token_that_a_crossing_poll_queued_again_leaves_the_queue_with_the_loss) {
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

TEST_F(AcquiringTest, pushed_grant_in_time_is_held_until_its_claim_less_drift) {
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

TEST_F(AcquiringTest, pushed_grant_is_believed_no_longer_than_its_member_asked_for) {
  const auto request = acquire(-1, with_lease(20'000 * kMs));
  const std::string token = argument(0);
  reply_queued();
  push_grant(token, 0, 99'999);
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_LE(request->lease->deadline.load(), now_ + 3'000 * kMs);
  const auto brief = acquire(-1, with_lease(500 * kMs), "brief");
  const std::string second = argument(0);
  reply_queued();
  push_grant(second, 0, 3'000);
  ASSERT_EQ(brief->status.load(), Status::kOk);
  EXPECT_LE(brief->lease->deadline.load(), now_ + 500 * kMs);
}

TEST_F(AcquiringTest, pushed_fence_that_cannot_have_been_minted_is_a_hint) {
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

TEST_F(AcquiringTest, pushed_fence_that_is_not_above_the_last_one_is_a_hint) {
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

TEST_F(AcquiringTest, dead_waiters_left_over_are_gone_on_with_at_once) {
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

TEST_F(AcquiringTest, pushed_grant_that_comes_too_late_is_asked_again) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  now_ += 5'000 * kMs;
  push_grant(token, 2'990 * kMs);
  EXPECT_EQ(request->status.load(), Status::kPending);
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_EQ(argument(0), token);
}

TEST_F(AcquiringTest, pushed_grant_without_a_fresh_clock_sample_is_a_hint) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued(700'000'000);
  now_ += 61'000 * kMs;
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kPending);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(AcquiringTest, pushed_grant_for_another_key_is_a_hint) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  push_grant(token, 0, 3000, "87654321");
  EXPECT_EQ(request->status.load(), Status::kPending);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(AcquiringTest, confirm_makes_every_push_a_hint) {
  lock::AcquireOptions options;
  options.is_confirmed = true;
  const auto request = acquire(-1, options);
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kPending);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

// As the primary after a failover does, which has an older queue.
TEST_F(AcquiringTest, grant_to_an_ended_place_is_given_back) {
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

TEST_F(AcquiringTest, grant_to_a_cancelled_place_is_given_back) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  client_->cancel(*request, now_);
  reply_count("cancel", 1);
  push_grant(token);
  ASSERT_EQ(next_script(), "release text");
  EXPECT_EQ(argument(0), token);
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

TEST_F(AcquiringTest, head_is_told_of_a_claim_and_looks_when_it_is_over) {
  acquire();
  const std::string token = argument(0);
  reply_queued(14'000, 1);
  client_->on_push(0, "n" + token.substr(22) + "03000", now_);
  advance(2'990 * kMs);
  EXPECT_EQ(next_script(), "");
  advance(20 * kMs);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(AcquiringTest, message_to_the_head_may_overtake_the_answer) {
  acquire();
  const std::string rid = argument(0).substr(22);
  client_->on_push(0, "n" + rid + "00500", now_);
  reply_queued(30'000);
  advance(502 * kMs);
  EXPECT_EQ(next_script(), "acquire");
}

// It cannot be believed, and nothing else will say it: the claim would run out, and then the next
// poll be waited for.
TEST_F(AcquiringTest, grant_that_overtakes_the_answer_is_asked_for_at_once) {
  const auto request = acquire();
  const std::string token = argument(0);
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kPending);
  reply_queued(30'000);
  advance(1 * kMs);
  ASSERT_EQ(next_script(), "acquire");
  EXPECT_EQ(argument(0), token);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(AcquiringTest, wait_that_runs_out_is_cancelled_and_a_crossing_grant_goes_on) {
  const auto request = acquire(1'000);
  reply_queued();
  advance(500 * kMs);
  reply_queued();
  advance(501 * kMs);
  EXPECT_EQ(request->status.load(), Status::kTimeout);
  reply_count("cancel", 2);
  reply_count("release", 2);
  EXPECT_TRUE(client_->is_drained());
}

TEST_F(AcquiringTest, cancel_is_decisive_and_a_late_push_is_released) {
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

TEST_F(AcquiringTest, cancel_after_the_grant_leaves_the_result) {
  const auto request = acquire();
  reply_granted();
  EXPECT_EQ(client_->cancel(*request, now_), Status::kOk);
  EXPECT_EQ(state(request->lease), Lease::kHeld);
}

TEST_F(AcquiringTest, wait_without_any_answer_is_an_unknown_outcome) {
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

TEST_F(AcquiringTest, burst_ends_and_the_servers_queue_has_its_turn) {
  std::vector<RequestPtr> callers;
  lock::AcquireOptions options;
  options.max_local_handoffs = 3;
  for (int i = 0; i < 8; i++) callers.push_back(acquire(-1, options));
  reply_granted();
  reply_queued();
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(release(callers[static_cast<size_t>(i)]->lease)->status.load(), Status::kOk);
  }
  EXPECT_EQ(callers[3]->status.load(), Status::kOk);
  const auto last = release(callers[3]->lease);
  EXPECT_EQ(callers[4]->status.load(), Status::kPending);
  reply_count("release", 2);
  EXPECT_EQ(last->status.load(), Status::kOk);
}

TEST_F(AcquiringTest, without_max_local_handoffs_every_caller_has_a_place_of_its_own) {
  lock::AcquireOptions options;
  options.max_local_handoffs = 0;
  const auto first = acquire(-1, options);
  const auto second = acquire(-1, options);
  ASSERT_EQ(sent_.size(), 2u);
  EXPECT_NE(sent_[0][8], sent_[1][8]);
  reply_granted();
  reply_queued();
  release(first->lease);
  EXPECT_EQ(next_script(), "release");
  EXPECT_EQ(second->status.load(), Status::kPending);
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
  EXPECT_TRUE(client_->is_drained());
}

TEST_F(AcquiringTest, vacant_place_is_given_up_soon) {
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

TEST_F(AcquiringTest, caller_that_gives_up_leaves_the_others_their_place) {
  const auto first = acquire();
  const auto second = acquire(100);
  const auto third = acquire();
  const std::string token = argument(0);
  reply_queued();
  client_->cancel(*first, now_);
  advance(50 * kMs);
  reply_queued();
  advance(51 * kMs);
  EXPECT_EQ(second->status.load(), Status::kTimeout);
  EXPECT_EQ(next_script(), "");
  push_grant(token);
  EXPECT_EQ(third->status.load(), Status::kOk);
}

TEST_F(AcquiringTest, lease_asked_for_by_a_caller_that_left_is_extended_to_the_next_ones) {
  const auto first = acquire(-1, with_lease(1'000 * kMs));
  lock::AcquireOptions options = with_lease(60'000 * kMs);
  options.is_renewed = false;
  const auto second = acquire(-1, options);
  client_->cancel(*first, now_);
  reply_granted();
  ASSERT_EQ(second->status.load(), Status::kOk);
  client_->on_timer(now_);
  ASSERT_EQ(next_script(), "extend");
  EXPECT_EQ(argument(1), "60000");
  reply_count("extend", 1);
  EXPECT_GT(second->lease->deadline.load(), now_ + 59'000 * kMs);
}

TEST_F(AcquiringTest, poll_that_crosses_a_grant_and_queues_again_is_cancelled_before_the_release) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued(1'000);
  advance(1'002 * kMs);
  ASSERT_EQ(next_script(), "acquire");
  push_grant(token);
  ASSERT_EQ(request->status.load(), Status::kOk);
  reply_queued();
  release(request->lease);
  reply_count("cancel", 1);
  reply_count("release", -1);
}

TEST_F(AcquiringTest, script_that_is_not_known_is_sent_as_text_if_still_wanted) {
  const auto request = acquire();
  reply(MadeReply::error("NOSCRIPT No matching script."));
  EXPECT_EQ(next_script(), "acquire text");
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(AcquiringTest, script_that_is_not_known_is_not_sent_again_after_a_cancel) {
  const auto request = acquire();
  client_->cancel(*request, now_);
  reply(MadeReply::error("NOSCRIPT No matching script."));
  reply_count("cancel", 0);
  EXPECT_EQ(next_script(), "") << "an acquire behind its cancel would hold the lock for nobody";
}

TEST_F(AcquiringTest, denied_fails_at_once_and_what_may_pass_is_tried_again) {
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

TEST_F(AcquiringTest, nonsense_from_the_server_is_never_a_grant) {
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
TEST_F(AcquiringTest, no_more_is_asked_for_than_is_answered) {
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

TEST_F(AcquiringTest, throttled_waiters_ask_on_the_next_connection) {
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
