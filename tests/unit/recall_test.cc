// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lease notes that its holder is asked to finish, whatever else a message says; a client
// sends at most one recall a second for a name. Method: a client with made replies and a fake
// clock.
#include <string>

#include "base/limits.h"
#include "lock_client_world.h"
#include "operate/operation.h"
#include "operate/recalls.h"

namespace redlatch {
namespace {

using operate::Recall;
using operate::Recalls;
using protocol::parse_push;
using protocol::Push;

// ---- messages ----------------------------------------------------------------------------------

TEST(RecallMessageTest, reason_may_be_any_bytes) {
  for (const std::string &reason :
       {std::string(), std::string("deploy"), std::string(":a:b"), std::string("\0\n\x1b", 3),
        std::string(kMaxReasonBytes, 'x')}) {
    const std::string message = "r00000000ff:" + reason;
    const auto push = parse_push(message);
    ASSERT_TRUE(push.has_value());
    EXPECT_EQ(push->kind, Push::Kind::kRecall);
    EXPECT_EQ(push->rid, 255U);
    EXPECT_TRUE(push->is_by_user);
    EXPECT_EQ(push->reason, reason);
  }
}

TEST(RecallMessageTest, message_of_a_waiter_has_no_reason) {
  const auto push = parse_push("r80000000ff");
  ASSERT_TRUE(push.has_value());
  EXPECT_EQ(push->kind, Push::Kind::kRecall);
  EXPECT_TRUE(push->is_recallable);
  EXPECT_EQ(push->rid, 255U);
  EXPECT_FALSE(push->is_by_user);
}

TEST(RecallMessageTest, forged_message_is_refused) {
  for (const std::string &message :
       {std::string("r"), std::string("r:"), std::string("r00000000f:why"),
        std::string("r00000000ffwhy"), std::string("r00000000ff "), std::string("r00000000fg:why"),
        std::string("r+0000000ff:why"), std::string("r-0000000ff:why"),
        std::string("r0x000000ff:why"), std::string("R00000000ff:why"),
        "r00000000ff:" + std::string(kMaxReasonBytes + 1, 'x'),
        "r00000000ff:" + std::string(1 << 20, 'x')}) {
    EXPECT_FALSE(parse_push(message).has_value()) << message.substr(0, 40);
  }
}

// ---- hearing -----------------------------------------------------------------------------------

class RecallTest : public LockClientWorld {
 protected:
  RecallTest() { connect(); }
  void lease_recalled(Lease &lease) override {
    recalled_count_++;
    last_ = &lease;
  }
  void recall(const std::string &token, const std::string &rest = ":why") {
    client_->on_push(0, "r" + token.substr(protocol::kCidSize) + rest, now_);
  }

  int recalled_count_ = 0;
  const Lease *last_ = nullptr;
};

TEST_F(RecallTest, held_lease_notes_it) {
  const auto lease = held();
  recall(lease->token);
  EXPECT_EQ(recalled_count_, 1);
  EXPECT_EQ(last_, lease.get());
  EXPECT_EQ(lease->recall_count, 1);
  EXPECT_EQ(lease->recall_reason, "why");
  EXPECT_EQ(state(lease), Lease::kHeld) << "nothing is forced";
  EXPECT_TRUE(sent_.empty());
}

TEST_F(RecallTest, all_of_them_count_and_the_last_reason_stays) {
  const auto lease = held();
  for (const char *rest : {":first", ":", ":third"}) recall(lease->token, rest);
  EXPECT_EQ(lease->recall_count, 3);
  EXPECT_EQ(lease->recall_reason, "third");
  recall(lease->token, ":");
  EXPECT_EQ(lease->recall_reason, "");
}

TEST_F(RecallTest, control_characters_do_not_reach_the_caller) {
  const auto lease = held();
  recall(lease->token, std::string(":a\0b\r\n\x1b[31m\x7f", 12));
  EXPECT_EQ(lease->recall_count, 1);
  for (const char c : lease->recall_reason) EXPECT_GE(c, ' ');
  EXPECT_NE(lease->recall_reason.find("[31m"), std::string::npos) << lease->recall_reason;
}

TEST_F(RecallTest, longest_reason_is_kept) {
  const auto lease = held();
  const std::string reason(kMaxReasonBytes, 'x');
  recall(lease->token, ":" + reason);
  EXPECT_EQ(lease->recall_reason, reason);
}

TEST_F(RecallTest, forged_message_changes_nothing) {
  const auto lease = held();
  recall(lease->token, "why");
  recall(lease->token, ":" + std::string(kMaxReasonBytes + 1, 'x'));
  client_->on_push(0, "r00000000fg:why", now_);
  client_->on_push(0, "r7fffffffff:why", now_);
  EXPECT_EQ(recalled_count_, 0);
  EXPECT_EQ(lease->recall_count, 0);
  EXPECT_EQ(state(lease), Lease::kHeld);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(RecallTest, waiter_is_no_user) {
  const auto lease = held();
  recall(lease->token, "");
  EXPECT_EQ(lease->recall_count, 0);
}

TEST_F(RecallTest, acquire_that_waits_notes_none) {
  const auto request = acquire();
  const std::string token = argument(0);
  recall(token);
  reply_queued();
  recall(token);
  EXPECT_FALSE(request->is_finished());
  push_grant(token);
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->lease->recall_count, 0);
  recall(token);
  EXPECT_EQ(request->lease->recall_count, 1);
  EXPECT_EQ(recalled_count_, 1);
}

TEST_F(RecallTest, lease_that_was_released_notes_none) {
  const auto lease = held();
  (void)release(lease);
  recall(lease->token);  // its release is under way
  reply_count("release", 1);
  recall(lease->token);  // the token is not known any more
  EXPECT_EQ(recalled_count_, 0);
  EXPECT_EQ(lease->recall_count, 0);
}

TEST_F(RecallTest, lease_that_was_lost_notes_none) {
  const auto lease = held();
  advance(10'000 * kMs);
  reply_count("extend", 0);
  ASSERT_EQ(state(lease), Lease::kLost);
  recall(lease->token);
  EXPECT_EQ(lease->recall_count, 0);
}

TEST_F(RecallTest, lease_that_is_handed_to_another_process_notes_none) {
  const auto lease = held();
  const auto detached = detach(lease);
  recall(lease->token);
  reply_count("detach", 1);
  ASSERT_EQ(detached->status.load(), Status::kOk);
  recall(lease->token);
  EXPECT_EQ(recalled_count_, 0);
}

TEST_F(RecallTest, caller_that_is_handed_the_lock_here_starts_anew) {
  const auto first = acquire();
  reply_granted();
  const auto second = acquire();
  reply_queued();
  recall(first->lease->token);
  EXPECT_EQ(first->lease->recall_count, 1);
  (void)release(first->lease);
  ASSERT_EQ(second->status.load(), Status::kOk) << "handed off inside the client";
  EXPECT_EQ(second->lease->recall_count, 0);
  recall(second->lease->token);
  EXPECT_EQ(second->lease->recall_count, 1);
  EXPECT_EQ(first->lease->recall_count, 1);
}

TEST_F(RecallTest, lease_outlives_a_lost_connection_and_hears_the_next_one) {
  const auto lease = held();
  recall(lease->token, ":before");
  reconnect();
  recall(lease->token, ":after");
  EXPECT_EQ(lease->recall_count, 2);
  EXPECT_EQ(lease->recall_reason, "after");
}

// ---- sending -----------------------------------------------------------------------------------

class SendingRecallTest : public LockClientWorld {
 protected:
  SendingRecallTest() { connect(); }
  RequestPtr ask(const std::string &name, const std::string &reason = "why") {
    auto request = std::make_shared<Request>(Request::What::ask<Recall>());
    request->name = name;
    dynamic_cast<Recall &>(*request->task).reason = reason;
    client_->start(request, now_);
    return request;
  }
  static int64_t heard(const RequestPtr &request) { return request->task->as_recall()->heard; }
  void reply_heard(int64_t count) { reply_count("recall", count); }
};

TEST_F(SendingRecallTest, answer_is_the_number_of_holders) {
  const auto request = ask("lock", "deploy");
  EXPECT_EQ(argument(1), "deploy");
  reply_heard(3);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(heard(request), 3);
}

TEST_F(SendingRecallTest, lock_of_another_format_is_asked_in_that_format) {
  const auto request = ask("lock");
  reply_heard(-1);
  EXPECT_EQ(next_script(), "recall") << "of the format hash";
  reply_heard(2);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(heard(request), 2);
}

TEST_F(SendingRecallTest, key_that_is_no_lock_has_no_holders) {
  const auto request = ask("lock");
  while (!sent_.empty()) {
    reply(MadeReply::list(MadeReply::integer(-1), MadeReply::integer(server_ms())));
  }
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(heard(request), 0);
}

TEST_F(SendingRecallTest, one_within_a_second_is_answered_without_a_call) {
  (void)ask("lock");
  reply_heard(2);
  now_ += 999 * kMs;
  const auto again = ask("lock", "another reason");
  EXPECT_EQ(again->status.load(), Status::kOk);
  EXPECT_EQ(heard(again), 2);
  EXPECT_TRUE(sent_.empty());
  now_ += kMs;
  const auto later = ask("lock");
  EXPECT_FALSE(later->is_finished());
  reply_heard(1);
  EXPECT_EQ(heard(later), 1);
}

TEST_F(SendingRecallTest, second_counts_from_the_answer) {
  (void)ask("lock");
  now_ += 900 * kMs;
  reply_heard(2);
  now_ += 999 * kMs;
  const auto again = ask("lock");
  EXPECT_EQ(heard(again), 2);
  EXPECT_TRUE(sent_.empty());
  now_ += kMs;
  (void)ask("lock");
  EXPECT_EQ(next_script(), "recall");
}

TEST_F(SendingRecallTest, another_name_is_sent_at_once) {
  (void)ask("lock");
  reply_heard(1);
  (void)ask("other");
  EXPECT_EQ(next_script(), "recall");
}

TEST_F(SendingRecallTest, refused_recall_may_be_sent_again_at_once) {
  const auto refused = ask("lock");
  reply(MadeReply::error("NOPERM No permissions to access a channel"));
  EXPECT_EQ(refused->status.load(), Status::kDenied);
  const auto again = ask("lock");
  EXPECT_FALSE(again->is_finished());
  reply_heard(1);
  EXPECT_EQ(heard(again), 1);
}

TEST(RecallsTest, names_are_limited_and_the_rest_is_remembered) {
  constexpr int kNames = 1'000;
  Recalls recalls;
  int64_t heard = 0;
  for (int i = 0; i < kNames; i++) recalls.note("n" + std::to_string(i), 0, i);
  int known = 0;
  for (int i = 0; i < kNames; i++) {
    if (!recalls.take_recent("n" + std::to_string(i), 1, heard)) continue;
    known++;
    EXPECT_EQ(heard, i);
  }
  EXPECT_EQ(known, 256);
  EXPECT_FALSE(recalls.take_recent("n999", 1'000 * kMs, heard));
  EXPECT_FALSE(recalls.take_recent("n999", 1, heard)) << "forgotten";
}

TEST(RecallsTest, oldest_name_is_replaced) {
  constexpr int kMost = 256;
  Recalls recalls;
  int64_t heard = 0;
  // Neither first nor last in the order of the names.
  recalls.note("m", 1, 7);
  for (int i = 1; i < kMost; i++) recalls.note((i % 2 ? "a" : "z") + std::to_string(i), 1 + i, i);
  EXPECT_TRUE(recalls.take_recent("m", kMost, heard));
  recalls.note("a0", kMost, 0);
  EXPECT_FALSE(recalls.take_recent("m", kMost, heard));
  EXPECT_TRUE(recalls.take_recent("a0", kMost, heard));
  recalls.note("a0", kMost + 1, 1);  // A name that is known replaces none.
  for (int i = 1; i < kMost; i++) {
    EXPECT_TRUE(recalls.take_recent((i % 2 ? "a" : "z") + std::to_string(i), kMost, heard)) << i;
  }
}

}  // namespace
}  // namespace redlatch
