// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a connection for messages that died silently is noticed while a lock is waited for, within
// two limits; one that lives is kept, and an idle client asks nothing.
#include "session/message_check.h"

#include "lock_client_world.h"

namespace redlatch {
namespace {

using session::MessageCheck;
using Command = MessageCheck::Command;

constexpr Nanos kLimit = 2'000 * kMs;

TEST(MessageCheckTest, connection_without_waiters_is_not_checked) {
  MessageCheck check;
  check.on_waiting();
  EXPECT_EQ(check.due(), kNever) << "messages come with the replies";
  check.open(kLimit, 0);
  EXPECT_EQ(check.due(), kNever);
  check.on_waiting();
  EXPECT_EQ(check.due(), kLimit);
  EXPECT_EQ(check.on_time(false, kLimit), Command::kNone);
  EXPECT_EQ(check.due(), kNever) << "the last waiter has gone";
}

TEST(MessageCheckTest, silence_causes_a_question_and_then_ends_the_connection) {
  MessageCheck check;
  check.open(kLimit, 0);
  check.on_waiting();
  EXPECT_EQ(check.on_time(true, kLimit - 1), Command::kNone);
  EXPECT_EQ(check.on_time(true, kLimit), Command::kAsk);
  EXPECT_EQ(check.on_time(true, 2 * kLimit - 1), Command::kNone);
  check.on_heard(2 * kLimit - 1);
  EXPECT_EQ(check.due(), 3 * kLimit - 1);
  EXPECT_EQ(check.on_time(true, 3 * kLimit), Command::kAsk);
  EXPECT_EQ(check.on_time(false, 4 * kLimit), Command::kDrop);
  EXPECT_EQ(check.due(), kNever);
}

TEST(MessageCheckTest, a_polled_grant_without_its_message_ends_the_connection) {
  MessageCheck check;
  EXPECT_EQ(check.on_late_grant(kLimit, 2 * kLimit), Command::kNone);
  check.open(kLimit, 0);
  EXPECT_EQ(check.on_late_grant(MessageCheck::kLongestWay - 1, kLimit), Command::kNone);
  check.on_heard(kLimit);
  EXPECT_EQ(check.on_late_grant(kLimit, kLimit + kMs), Command::kNone) << "it lives";
  EXPECT_EQ(check.on_late_grant(kLimit, 3 * kLimit), Command::kDrop);
}

class DeafTest : public LockClientWorld {
 protected:
  void send_on_messages(size_t, std::span<const std::string_view> argv) override {
    EXPECT_EQ(argv.front(), "PING");
    asked_count_++;
  }
  static ServerFacts resp2() {
    ServerFacts facts;
    facts.has_messages = true;
    return facts;
  }
  int asked_count_ = 0;
};

TEST_F(DeafTest, waiting_drops_a_second_connection_that_delivers_no_messages) {
  connect(resp2());
  acquire();
  reply_queued();
  advance(settings_.command_timeout);
  EXPECT_EQ(asked_count_, 1);
  client_->on_messages_heard(0, now_);
  advance(settings_.command_timeout);
  EXPECT_EQ(asked_count_, 2);
  EXPECT_FALSE(is_dropped_);
  advance(settings_.command_timeout);
  EXPECT_TRUE(is_dropped_);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_.front().find("for messages"), std::string::npos);
}

TEST_F(DeafTest, resp3_connection_is_not_checked) {
  connect();
  acquire();
  reply_queued();
  advance(3 * settings_.command_timeout);
  EXPECT_EQ(asked_count_, 0);
  EXPECT_FALSE(is_dropped_);
}

}  // namespace
}  // namespace redlatch
