// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: what an attempt to connect has found counts only if nothing newer was heard meanwhile; then
// the next attempt begins at once; a new primary is one line of the log.
// Method: opinions and replies made by hand.
#include "driver/primary_follower.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lock_client_world.h"

namespace redlatch::driver {
namespace {

constexpr Nanos kSecond = 1000 * kMs;
const HostPort kSentinel{"s1", "26379"}, kA{"10.0.0.1", "6379"}, kB{"10.0.0.2", "6379"};

class PrimaryFollowerTest : public ::testing::Test, private Log {
 protected:
  PrimaryFollowerTest() {
    settings_.sentinel.primary_name = "main";
    settings_.sentinel.addresses = {kSentinel};
  }
  Outcome attempt_ends(const HostPort &primary, int64_t epoch, Outcome outcome = {}) {
    sentinel::Knowledge found = follower_.watch().known();
    found.primary = primary;
    follower_.on_attempt_over(std::move(found), {kSentinel, primary, epoch, false}, outcome);
    return outcome;
  }
  bool take(const MadeReply &made, bool is_push) {
    Reply reply = made.get();
    if (is_push) reply.kind = Reply::Kind::kPush;
    return follower_.on_reply(
        0, reply, [](std::span<const std::string_view>) {}, now_ += kMs);
  }
  // The sentinel is heard, and names kA.
  void hear(int64_t epoch) {
    sentinel::PrimaryWatch &watch = follower_.watch();
    ASSERT_EQ(watch.begin_dial(now_), 0u);
    watch.on_dialled(
        0, watch.settings_of(0), [](std::span<const std::string_view>) {}, now_);
    take(MadeReply::list(MadeReply::text("mode"), MadeReply::text("sentinel")), false);
    for (const char *channel : {"+promoted-slave", "+switch-master"}) {
      take(MadeReply::list(MadeReply::text("subscribe"), MadeReply::text(channel),
                           MadeReply::integer(1)),
           true);
    }
    take(MadeReply::list(MadeReply::text("config-epoch"), MadeReply::text(std::to_string(epoch))),
         false);
    ASSERT_FALSE(take(MadeReply::list(MadeReply::text(kA.host), MadeReply::text(kA.port)), false));
  }
  bool moves() {
    return take(MadeReply::list(MadeReply::text("message"), MadeReply::text("+switch-master"),
                                MadeReply::text("main 10.0.0.1 6379 10.0.0.2 6379")),
                true);
  }
  static ServerFacts facts_with(Nanos clock) {
    ServerFacts facts;
    facts.age.clock = clock;
    facts.age.round_trip = kMs;
    return facts;
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  std::vector<std::string> lines_;
  PrimaryFollower follower_{settings_, *this};

 private:
  void add(LogLevel, std::string_view text) noexcept override { lines_.emplace_back(text); }
};

TEST_F(PrimaryFollowerTest, news_end_the_connection_and_hurry_the_next_attempt_once) {
  follower_.begin_attempt();
  EXPECT_TRUE(attempt_ends(kA, 3).ok());
  hear(3);
  EXPECT_FALSE(follower_.take_hurry());
  EXPECT_TRUE(moves());
  EXPECT_TRUE(follower_.take_hurry());
  EXPECT_FALSE(follower_.take_hurry());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("moved from 10.0.0.1:6379 to 10.0.0.2:6379"), std::string::npos);
}

TEST_F(PrimaryFollowerTest, an_attempt_that_found_the_primary_that_was_left_has_failed) {
  follower_.begin_attempt();
  ASSERT_TRUE(attempt_ends(kA, 3).ok());
  hear(3);
  follower_.begin_attempt();
  ASSERT_TRUE(moves());
  const Outcome outcome = attempt_ends(kA, 3);
  EXPECT_EQ(outcome.status, Status::kUnavailable);
  EXPECT_NE(outcome.message.find("has moved"), std::string::npos) << outcome.message;
  EXPECT_TRUE(follower_.take_hurry());
  follower_.begin_attempt();
  EXPECT_TRUE(attempt_ends(kB, 4).ok());
  EXPECT_FALSE(follower_.take_hurry());
}

TEST_F(PrimaryFollowerTest, a_new_primary_is_one_line_and_its_clock_is_compared) {
  for (int i = 0; i < 2; i++) {
    follower_.begin_attempt();
    ASSERT_TRUE(attempt_ends(kA, 3).ok());
    follower_.note_success(facts_with(5 * kSecond));
  }
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("connected to redis://10.0.0.1:6379"), std::string::npos) << lines_[0];
  hear(3);
  ASSERT_TRUE(moves());
  follower_.begin_attempt();
  ASSERT_TRUE(attempt_ends(kB, 4).ok());
  follower_.note_success(facts_with(4 * kSecond));
  ASSERT_EQ(lines_.size(), 4u);
  EXPECT_NE(lines_[3].find("1000 ms behind"), std::string::npos) << lines_[3];
}

TEST_F(PrimaryFollowerTest, that_no_sentinel_is_heard_is_logged_once) {
  follower_.begin_attempt();
  ASSERT_TRUE(attempt_ends(kA, 3).ok());
  for (int i = 0; i < 3; i++) {
    ASSERT_EQ(follower_.watch().begin_dial(now_ += 10 * kSecond), 0u);
    follower_.on_ended(0, failure(Status::kUnavailable, "refused"), 7, false, now_);
  }
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("refused"), std::string::npos) << lines_[0];
}

TEST_F(PrimaryFollowerTest, a_client_that_closes_does_not_log_that_it_hears_no_sentinel) {
  follower_.begin_attempt();
  ASSERT_EQ(follower_.watch().begin_dial(now_), 0u);
  follower_.on_ended(0, failure(Status::kUnavailable, "refused"), 7, true, now_);
  EXPECT_TRUE(lines_.empty()) << lines_.front();
}

}  // namespace
}  // namespace redlatch::driver
