// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a watch reports each switch of its primary and one that it missed, and ends when its
// sentinel is of no use.
// Method: replies made by hand; check() after every step.
#include "sentinel/sentinel_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lock_client_world.h"

namespace redlatch::sentinel {
namespace {

using Stage = SentinelWatch::Stage;

constexpr Nanos kSecond = 1000 * kMs;
const HostPort kA{"10.0.0.1", "6379"}, kB{"10.0.0.2", "6379"};

MadeReply hello() { return MadeReply::list(MadeReply::text("mode"), MadeReply::text("sentinel")); }

class SentinelWatchTest : public ::testing::Test {
 protected:
  SentinelWatchTest() : watch_(settings(), "main") { watch_.start(send(), now_); }

  static Settings settings() {
    Settings given;
    given.sentinel.addresses = {{"s1", "26379"}};
    return given.of_sentinel({"s1", "26379"});
  }
  Send send() {
    return [this](std::span<const std::string_view> argv) {
      std::string line;
      for (const std::string_view word : argv)
        line += (line.empty() ? "" : " ") + std::string(word);
      sent_.push_back(line);
    };
  }
  std::optional<Opinion> reply(const MadeReply &reply) { return take(reply.get()); }
  std::optional<Opinion> push(const MadeReply &made) {
    Reply push = made.get();
    push.kind = Reply::Kind::kPush;
    return take(push);
  }
  std::optional<Opinion> message(const std::string &text,
                                 const std::string &channel = "+switch-master") {
    return push(MadeReply::list(MadeReply::text("message"), MadeReply::text(channel),
                                MadeReply::text(text)));
  }
  void subscribe() {
    reply(hello());
    for (const char *channel : {"+promoted-slave", "+switch-master"}) {
      ASSERT_EQ(watch_.stage(), Stage::kSubscribing);
      push(MadeReply::list(MadeReply::text("subscribe"), MadeReply::text(channel),
                           MadeReply::integer(1)));
    }
    ASSERT_EQ(watch_.stage(), Stage::kAsking);
  }
  std::optional<Opinion> answer(const HostPort &primary, int epoch) {
    EXPECT_FALSE(reply(
        MadeReply::list(MadeReply::text("config-epoch"), MadeReply::text(std::to_string(epoch)))));
    return reply(MadeReply::list(MadeReply::text(primary.host), MadeReply::text(primary.port)));
  }
  void timer(Nanos later) {
    watch_.on_timer(send(), now_ += later);
    ASSERT_STREQ(watch_.check(), nullptr);
  }

  Nanos now_ = 100 * kSecond;
  std::vector<std::string> sent_;
  SentinelWatch watch_;

 private:
  std::optional<Opinion> take(const Reply &reply) {
    auto news = watch_.on_reply(reply, send(), now_ += kMs);
    EXPECT_STREQ(watch_.check(), nullptr);
    return news;
  }
};

TEST_F(SentinelWatchTest, a_watch_asks_for_the_primary_once_it_is_subscribed) {
  subscribe();
  EXPECT_EQ(sent_,
            (std::vector<std::string>{"HELLO 3 SETNAME redlatch", "SUBSCRIBE +promoted-slave",
                                      "SUBSCRIBE +switch-master", "SENTINEL MASTER main",
                                      "SENTINEL GET-MASTER-ADDR-BY-NAME main"}));
  const auto news = answer(kB, 4);
  ASSERT_TRUE(news);
  EXPECT_EQ(news->primary, kB);
  EXPECT_EQ(news->epoch, 4);
  EXPECT_FALSE(news->is_switch);
  EXPECT_EQ(watch_.stage(), Stage::kWatching);
}

TEST_F(SentinelWatchTest, a_failover_of_its_primary_is_reported_and_its_epoch_asked) {
  subscribe();
  EXPECT_FALSE(message("other 10.0.0.1 6379 10.0.0.2 6379"));
  EXPECT_FALSE(message("main 10.0.0.1 6379 10.0.0.2"));
  EXPECT_FALSE(message("main 10.0.0.1 6379 10.0.0.2 6379", "+sdown"));
  const auto early = message("main 10.0.0.1 6379 10.0.0.2 6379");
  ASSERT_TRUE(early) << "also before the question is answered";
  EXPECT_TRUE(early->is_switch);
  EXPECT_EQ(early->primary, kB);
  EXPECT_EQ(early->epoch, -1);
  EXPECT_EQ(sent_.size(), 5u) << "a question is under way";
  answer(kA, 4);
  EXPECT_EQ(watch_.stage(), Stage::kAsking) << "its answer may be older than the message";
  EXPECT_EQ(sent_.size(), 7u);
  answer(kB, 5);
  EXPECT_EQ(watch_.stage(), Stage::kWatching);
  ASSERT_TRUE(message("main 10.0.0.2 6379 10.0.0.1 6379"));
  EXPECT_EQ(sent_.size(), 9u) << "a message has no epoch";
}

TEST_F(SentinelWatchTest, a_promotion_of_a_replica_is_reported) {
  subscribe();
  answer(kA, 4);
  const std::string channel = "+promoted-slave";
  EXPECT_FALSE(message("slave b 10.0.0.2 6379 @ other 10.0.0.1 6379", channel));
  EXPECT_FALSE(message("slave b 10.0.0.2 6379", channel));
  const auto news = message("slave 10.0.0.2:6379 10.0.0.2 6379 @ main 10.0.0.1 6379", channel);
  ASSERT_TRUE(news);
  EXPECT_TRUE(news->is_switch);
  EXPECT_EQ(news->primary, kB);
}

TEST_F(SentinelWatchTest, a_refused_subscription_to_promotions_is_not_fatal) {
  reply(hello());
  reply(MadeReply::error("NOPERM this user has no permissions"));
  push(MadeReply::list(MadeReply::text("subscribe"), MadeReply::text("+switch-master"),
                       MadeReply::integer(1)));
  EXPECT_EQ(watch_.stage(), Stage::kAsking);
}

TEST_F(SentinelWatchTest, refused_subscriptions_end_the_watch) {
  reply(hello());
  reply(MadeReply::error("NOPERM this user has no permissions"));
  EXPECT_FALSE(watch_.is_over());
  reply(MadeReply::error("NOPERM this user has no permissions"));
  EXPECT_TRUE(watch_.is_over());
  EXPECT_EQ(watch_.outcome().status, Status::kDenied);
}

TEST_F(SentinelWatchTest, an_unknown_name_ends_the_watch) {
  subscribe();
  reply(MadeReply::error("ERR No such master with that name"));
  EXPECT_FALSE(watch_.is_over());
  reply(MadeReply());
  EXPECT_TRUE(watch_.is_over());
  EXPECT_FALSE(message("main 10.0.0.1 6379 10.0.0.2 6379"));
}

TEST_F(SentinelWatchTest, a_server_that_is_not_a_sentinel_ends_the_watch) {
  reply(MadeReply::list(MadeReply::text("mode"), MadeReply::text("standalone")));
  EXPECT_TRUE(watch_.is_over());
}

TEST_F(SentinelWatchTest, a_silent_sentinel_is_asked_and_then_disconnected) {
  subscribe();
  answer(kA, 1);
  EXPECT_EQ(watch_.next_due() - now_, 3 * kSecond);
  timer(watch_.next_due() - now_ - 1);
  EXPECT_EQ(sent_.size(), 5u);
  timer(1);
  EXPECT_EQ(sent_.size(), 7u);
  const auto news = answer(kB, 2);
  ASSERT_TRUE(news) << "a switch without a message";
  EXPECT_EQ(news->primary, kB);
  timer(watch_.next_due() - now_);
  EXPECT_FALSE(watch_.is_over());
  timer(watch_.next_due() - now_);
  EXPECT_TRUE(watch_.is_over());
  EXPECT_EQ(watch_.next_due(), kNever);
}

TEST_F(SentinelWatchTest, a_sentinel_that_answers_nothing_is_disconnected) {
  EXPECT_EQ(watch_.next_due() - now_, settings().command_timeout);
  timer(settings().command_timeout);
  EXPECT_TRUE(watch_.is_over());
}

}  // namespace
}  // namespace redlatch::sentinel
