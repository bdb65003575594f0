// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: an opening dials what the server needs, gives each step its time, and never takes a message
// for a reply. Method: replies made by hand; check() after every step.
#include "protocol/opening.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lock_client_world.h"
#include "protocol/scripts.h"

namespace redlatch::protocol {
namespace {

using Wire = Opening::Wire;

constexpr Nanos kSecond = 1000 * kMs;
constexpr const char *kInfo =
    "redis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:77\r\nrole:master\r\n";

// The reply to a command without its arguments.
constexpr const char *kArity = "ERR wrong number of arguments for 'x' command";

MadeReply ok() { return MadeReply::text("OK"); }
MadeReply hello() {
  return MadeReply::list(MadeReply::text("server"), MadeReply::text("redis"),
                         MadeReply::text("version"), MadeReply::text("7.4.1"));
}
MadeReply counts(int own, int unused) {
  return MadeReply::list(MadeReply::integer(own), MadeReply::integer(unused));
}

class OpeningTest : public ::testing::Test {
 protected:
  OpeningTest() {
    settings_.host = "db";
    settings_.connect_timeout = 3 * kSecond;
    settings_.command_timeout = 2 * kSecond;
  }

  void dialled(Opening &opening) {
    now_ += kMs;
    opening.on_dialled(send(), now_);
    ASSERT_STREQ(opening.check(), nullptr);
  }
  void reply(Opening &opening, const MadeReply &reply, Nanos later = kMs) {
    reply_on(opening, opening.wire(), reply, later);
  }
  void reply_on(Opening &opening, Wire wire, const MadeReply &reply, Nanos later = kMs) {
    now_ += later;
    opening.on_reply(wire, reply.get(), send(), now_);
    ASSERT_STREQ(opening.check(), nullptr);
  }
  void load_scripts(Opening &opening) {
    for (size_t i = 0; i < kScriptCount; i++) reply(opening, ok());
  }
  // With RESP2, up to the second dial.
  void reach_messages(Opening &opening) {
    dialled(opening);
    reply(opening, MadeReply::error("NOPROTO unsupported protocol version"));
    reply(opening, hello());
    load_scripts(opening);
    ASSERT_TRUE(opening.is_dialling());
    ASSERT_EQ(opening.wire(), Wire::kMessages);
  }
  // Up to the confirmation of the subscription.
  void greet_messages(Opening &opening) {
    dialled(opening);
    reply(opening, MadeReply::error("NOPROTO unsupported protocol version"));
    reply(opening, hello());
  }
  Opening::Send send() {
    return [this](std::span<const std::string_view> argv) { sent_.emplace_back(argv[0]); };
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  std::vector<std::string> sent_;
};

TEST_F(OpeningTest, resp3_needs_one_connection) {
  Opening opening(settings_, "c", false, now_);
  EXPECT_TRUE(opening.is_dialling());
  EXPECT_EQ(opening.awaited_count(), 0U);
  EXPECT_EQ(opening.limit(), now_ + 3 * kSecond);
  dialled(opening);
  EXPECT_EQ(opening.limit(), now_ + 2 * kSecond);
  const Nanos limit = opening.limit();
  reply(opening, hello());
  EXPECT_EQ(opening.awaited_count(), kScriptCount);
  load_scripts(opening);
  reply(opening, hello());
  EXPECT_EQ(opening.limit(), limit) << "one limit for all of the handshake";
  reply(opening, counts(1, 0));
  EXPECT_TRUE(opening.is_over());
  EXPECT_TRUE(opening.outcome().ok());
  EXPECT_TRUE(opening.facts().is_push_trusted);
  EXPECT_FALSE(opening.has_messages());
}

TEST_F(OpeningTest, resp2_messages_get_a_connection_and_a_probe) {
  Opening opening(settings_, "c", false, now_);
  reach_messages(opening);
  EXPECT_EQ(opening.limit(), now_ + 3 * kSecond);
  greet_messages(opening);
  EXPECT_EQ(sent_.back(), "SSUBSCRIBE");
  reply(opening, ok(), kSecond);
  EXPECT_EQ(opening.wire(), Wire::kCommands);
  EXPECT_EQ(opening.limit(), now_ + 2 * kSecond) << "the probe has a limit of its own";
  EXPECT_EQ(sent_.back(), "EVAL");
  reply(opening, counts(1, 0));
  EXPECT_TRUE(opening.is_over());
  EXPECT_TRUE(opening.has_messages());
  EXPECT_TRUE(opening.facts().is_push_trusted);
  EXPECT_FALSE(opening.facts().can_track);
}

// Kvrocks answers HELLO 3 so, unless its RESP3 is switched on.
TEST_F(OpeningTest, hello_3_answered_with_resp2_opens_a_connection_for_messages) {
  const auto lowered_hello = [] {
    return MadeReply::list(MadeReply::text("version"), MadeReply::text("7.4.1"),
                           MadeReply::text("proto"), MadeReply::integer(2));
  };
  Opening opening(settings_, "c", false, now_);
  dialled(opening);
  reply(opening, lowered_hello());
  load_scripts(opening);
  ASSERT_TRUE(opening.is_dialling());
  ASSERT_EQ(opening.wire(), Wire::kMessages);
  dialled(opening);
  reply(opening, lowered_hello());
  EXPECT_EQ(sent_.back(), "SSUBSCRIBE") << "no other command follows it";
  reply(opening, ok());
  reply(opening, counts(1, 0));
  EXPECT_TRUE(opening.is_over());
  EXPECT_TRUE(opening.has_messages());
  EXPECT_TRUE(opening.facts().is_push_trusted);
  EXPECT_FALSE(opening.facts().can_track);
}

TEST_F(OpeningTest, a_message_is_never_taken_for_the_reply_to_the_probe) {
  Opening opening(settings_, "c", false, now_);
  reach_messages(opening);
  greet_messages(opening);
  reply(opening, ok());
  // It came together with the confirmation. With RESP2 it looks like a reply.
  reply_on(opening, Wire::kMessages, counts(1, 0));
  EXPECT_FALSE(opening.is_over());
  reply(opening, counts(0, 0));
  for (int i = 0; i < 2; i++) reply(opening, MadeReply::error(kArity));
  EXPECT_TRUE(opening.is_over());
  EXPECT_FALSE(opening.facts().is_push_trusted);
}

TEST_F(OpeningTest, a_refused_subscription_closes_the_second_connection) {
  Opening opening(settings_, "c", false, now_);
  reach_messages(opening);
  greet_messages(opening);
  reply(opening, MadeReply::error("NOPERM this user has no permissions to access the channel"));
  EXPECT_EQ(opening.wire(), Wire::kCommands);
  for (int i = 0; i < 2; i++) reply(opening, MadeReply::error(kArity));
  EXPECT_TRUE(opening.is_over());
  EXPECT_TRUE(opening.outcome().ok());
  EXPECT_FALSE(opening.has_messages());
  EXPECT_FALSE(opening.facts().is_push_trusted);
}

TEST_F(OpeningTest, plain_channels_get_a_new_second_connection) {
  Opening opening(settings_, "c", false, now_);
  reach_messages(opening);
  greet_messages(opening);
  reply(opening, ok());
  reply(opening, counts(-1, -1));
  EXPECT_EQ(opening.awaited_count(), 2U);
  reply(opening, MadeReply::error("ERR wrong number of arguments for 'ssubscribe' command"));
  reply(opening, MadeReply::error("ERR Command is not available: 'SPUBLISH'"));
  load_scripts(opening);
  ASSERT_TRUE(opening.is_dialling()) << "the first one is subscribed, and of no more use";
  ASSERT_EQ(opening.wire(), Wire::kMessages);
  greet_messages(opening);
  EXPECT_EQ(sent_.back(), "SUBSCRIBE");
  reply(opening, ok());
  reply(opening, counts(1, 0));
  EXPECT_TRUE(opening.is_over());
  EXPECT_TRUE(opening.has_messages());
  EXPECT_FALSE(opening.facts().is_sharded);
}

TEST_F(OpeningTest, a_failure_on_either_connection_ends_the_opening) {
  Opening first(settings_, "c", false, now_);
  dialled(first);
  reply(first, MadeReply::error("LOADING Redis is loading the dataset in memory"));
  EXPECT_TRUE(first.is_over());
  EXPECT_EQ(first.outcome().status, Status::kServer);

  Opening second(settings_, "c", false, now_);
  reach_messages(second);
  dialled(second);
  reply(second, MadeReply::error("LOADING Redis is loading the dataset in memory"));
  EXPECT_TRUE(second.is_over());
  EXPECT_EQ(second.outcome().status, Status::kServer);
  EXPECT_FALSE(second.outcome().ok());
}

// The time of the identity is not taken from what follows: a node that answered INFO after 1.9 of
// its 2 s, and all else within 10 ms, was given up.
TEST_F(OpeningTest, the_identity_has_its_own_time_limit) {
  Opening opening(settings_, "c", true, now_);
  dialled(opening);
  reply(opening, hello(), kSecond);
  for (size_t i = 0; i < kScriptCount; i++) reply(opening, ok(), 0);
  EXPECT_EQ(opening.awaited_count(), 3U);
  EXPECT_EQ(opening.limit(), now_ + 2 * kSecond);
  reply(opening, MadeReply::text(kInfo), 1900 * kMs);
  reply(opening, MadeReply::text(kInfo), 0);
  reply(opening, MadeReply::list(MadeReply::text("1000"), MadeReply::text("500000")), 0);
  EXPECT_EQ(opening.facts().run_id, "abc");
  EXPECT_EQ(sent_.back(), "HELLO");
  EXPECT_EQ(opening.limit(), now_ + kSecond) << "what the handshake had left before";
}

// An answer that is read behind its limit leaves no time to what follows, and never all the time.
TEST_F(OpeningTest, a_time_limit_that_has_passed_is_not_extended) {
  Opening opening(settings_, "c", true, now_);
  dialled(opening);
  reply(opening, hello());
  for (size_t i = 1; i < kScriptCount; i++) reply(opening, ok(), 0);
  reply(opening, ok(), opening.limit() - now_ + kMs);
  EXPECT_EQ(opening.awaited_count(), 3U) << "the identity";
  reply(opening, MadeReply::text(kInfo), 0);
  reply(opening, MadeReply::text(kInfo), 0);
  reply(opening, MadeReply::list(MadeReply::text("1000"), MadeReply::text("500000")), 0);
  EXPECT_LE(opening.limit(), now_);
}

}  // namespace
}  // namespace redlatch::protocol
