// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: an attempt of a client has the dialogue that its node needs, begins another one with the
// next password, and says what the client has in the end; the follower of a primary hears of it.
// Method: the machine, with dialogues held by a host without I/O.
#include "driver/node_attempt.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "dialogue_world.h"
#include "noted_events.h"

namespace redlatch::driver {
namespace {

using Result = NodeAttempt::Result;

class NodeAttemptTest : public DialogueWorld, public ::testing::Test {
 protected:
  NodeAttempt &begin(PrimaryFollower *follower = nullptr) {
    attempt_.emplace(settings_, service_, 0, follower);
    ready();
    return *attempt_;
  }
  void ready(const Login &login = {}) {
    attempt_->login().on_read({}, now_);
    attempt_->login().on_given(login);
  }
  void expect_failure(Result result, Status status, const std::string &words) {
    EXPECT_EQ(result, Result::kFailed);
    EXPECT_EQ(attempt_->outcome().status, status);
    EXPECT_NE(attempt_->outcome().message.find(words), std::string::npos)
        << attempt_->outcome().message;
  }

  NotedEvents service_;
  NotedLines log_;
  std::optional<NodeAttempt> attempt_;
};

TEST_F(NodeAttemptTest, a_dialogue_is_there_while_it_is_held) {
  NodeAttempt &attempt = begin();
  EXPECT_EQ(attempt.dialogue(), nullptr);
  Dialogue &dialogue = attempt.begin(now_);
  EXPECT_EQ(attempt.dialogue(), &dialogue);
  open(dialogue);
  attempt.end(now_);
  EXPECT_EQ(attempt.dialogue(), nullptr);
  ASSERT_EQ(attempt.conclude(), Result::kConnected);
  EXPECT_TRUE(attempt.facts().is_push_trusted);
  EXPECT_FALSE(attempt.has_slots());
}

TEST_F(NodeAttemptTest, another_login_gets_a_dialogue_of_its_own) {
  attempt_.emplace(settings_, service_, 0, nullptr);
  ready({1, "u", "old"});
  Dialogue &refused = attempt_->begin(now_);
  dialled(refused);
  reply(refused, denied());
  attempt_->end(now_);
  ASSERT_EQ(attempt_->login().stage(), LoginAttempt::Stage::kDenied);
  attempt_->login().on_hope(true);
  ready({2, "u", "new"});
  open(attempt_->begin(now_));
  attempt_->end(now_);
  EXPECT_EQ(attempt_->conclude(), Result::kConnected);
  EXPECT_EQ(attempt_->login().login().number, 2U);
}

TEST_F(NodeAttemptTest, a_node_of_a_cluster_that_is_named_alone_makes_the_client_one_of_it) {
  Dialogue &dialogue = begin().begin(now_);
  dialled(dialogue);
  reply(dialogue, hello("cluster"));
  ASSERT_TRUE(dialogue.is_over()) << "nothing else is asked";
  attempt_->end(now_);
  EXPECT_EQ(attempt_->conclude(), Result::kCluster);
}

TEST_F(NodeAttemptTest, a_node_that_the_slots_name_is_connected_to) {
  settings_.is_of_cluster = true;
  Dialogue &dialogue = begin().begin(now_);
  dialled(dialogue);
  reply(dialogue, hello("cluster"));
  ASSERT_FALSE(dialogue.is_over());
  dialogue.on_late(now_);
  attempt_->end(now_);
  expect_failure(attempt_->conclude(), Status::kUnavailable, "no answer");
}

TEST_F(NodeAttemptTest, the_slots_of_a_cluster_are_read_from_the_servers_that_are_known) {
  settings_.host.clear();
  settings_.cluster.addresses = {{"a", "1"}};
  NodeAttempt &attempt = begin();
  tell_slots(attempt.begin(now_));
  attempt.end(now_);
  ASSERT_EQ(attempt.conclude(), Result::kSlots);
  EXPECT_EQ(dialled_, std::vector<std::string>{"h"}) << "as the service says, not the URL";
  EXPECT_EQ(attempt.slots().size(), 1U);
  EXPECT_EQ(attempt.facts().version, "Redis 7.4.1");
}

TEST_F(NodeAttemptTest, without_a_password_or_memory_it_fails_with_that_reason) {
  attempt_.emplace(settings_, service_, 0, nullptr);
  attempt_->login().on_read(failure(Status::kUnavailable, "no file"), now_);
  expect_failure(attempt_->conclude(), Status::kUnavailable, "no file");
  NodeAttempt &attempt = begin();
  (void)attempt.begin(now_);
  attempt.fail({Status::kNoMemory, {}});
  expect_failure(attempt.conclude(), Status::kNoMemory, "");
}

TEST_F(NodeAttemptTest, connections_that_the_host_cannot_use_are_a_failure) {
  NodeAttempt &attempt = begin();
  open(attempt.begin(now_));
  attempt.end(now_);
  ASSERT_EQ(attempt.conclude(), Result::kConnected);
  attempt.fail(failure(Status::kUnavailable, "cannot poll"));
  EXPECT_EQ(attempt.outcome().message, "cannot poll");
}

TEST_F(NodeAttemptTest, the_follower_hears_of_each_end) {
  settings_.host.clear();
  settings_.sentinel.addresses = {kA, kB};
  settings_.sentinel.primary_name = "main";
  PrimaryFollower follower(settings_, log_);
  attempt_.emplace(settings_, service_, 0, &follower);
  attempt_->login().on_read(failure(Status::kUnavailable, "no file"), now_);
  expect_failure(attempt_->conclude(), Status::kUnavailable, "no file");
  NodeAttempt &attempt = begin(&follower);
  Dialogue &dialogue = attempt.begin(now_);
  EXPECT_EQ(dialogue.wire(), Dialogue::kSentinel);
  while (!dialogue.is_over()) dialogue.on_late(now_ += kSecond);
  attempt.end(now_);
  expect_failure(attempt.conclude(), Status::kUnavailable, "");
  EXPECT_EQ(follower.watch().known().silent.size(), 2U) << "both were asked in vain";
  Dialogue &named = begin(&follower).begin(now_);
  name_primary(named, kC);
  greet_primary(named, "master");
  reply(named, hello());
  reply(named, counts());
  attempt_->end(now_);
  EXPECT_EQ(attempt_->conclude(), Result::kConnected);
  EXPECT_EQ(attempt_->facts().run_id, "abc");
  EXPECT_EQ(follower.primary().host, "c");
}

}  // namespace
}  // namespace redlatch::driver
