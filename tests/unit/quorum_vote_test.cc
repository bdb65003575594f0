// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the first round of a quorum without fences asks and gives back by the brief scripts, and
// what they refuse is seen to by ACQUIRE and RELEASE with the same token.
#include "quorum_world.h"

namespace redlatch {

namespace {

TEST_F(QuorumTest, an_uncontended_cycle_is_one_vote_and_one_unvote_at_each_node) {
  connect_all();
  const auto request = acquire();
  const std::string token = argument(0, 0);
  for (size_t i = 0; i < kNodes; i++) {
    ASSERT_EQ(exact_script(i), "vote") << i;
    EXPECT_EQ(argument(i, 0), token);
    EXPECT_EQ(argument(i, 1), "30000");
    yes(i);
  }
  ASSERT_EQ(request->status.load(), Status::kOk) << request->message;
  EXPECT_EQ(request->lease->token, token);
  EXPECT_EQ(request->lease->fence.load(), 0);
  EXPECT_EQ(left(request->lease), 30 * kSecond - 302 * kMs);
  const auto release = ask(Request::Op::kRelease, request->lease);
  for (size_t i = 0; i < kNodes; i++) {
    ASSERT_EQ(exact_script(i), "unvote") << i;
    EXPECT_EQ(argument(i, 0), token);
    reply(i, MadeReply::integer(1));
    expect_nothing_at({i});
  }
  EXPECT_EQ(release->status.load(), Status::kOk);
}

TEST_F(QuorumTest, a_vote_for_another_token_is_refused_without_a_second_question) {
  connect_all();
  const auto request = acquire();
  for (const size_t node : {0, 1, 2}) no(node);
  EXPECT_EQ(request->status.load(), Status::kBusy);
  EXPECT_EQ(exact_script(0), "unvote");
  reply(0, MadeReply::integer(-1));
  EXPECT_EQ(exact_script(0), "");
}

TEST_F(QuorumTest, a_vote_that_is_not_decided_is_followed_by_acquire_with_the_same_token) {
  connect_all();
  const auto request = acquire();
  const std::string token = argument(0, 0);
  reply(0, MadeReply::integer(0));
  ASSERT_EQ(exact_script(0), "acquire");
  EXPECT_EQ(argument(0, 0), token);
  yes(0);  // all who waited there were dead
  for (const size_t node : {1, 2}) yes(node);
  ASSERT_EQ(request->status.load(), Status::kOk) << request->message;
  EXPECT_EQ(request->lease->fence.load(), 0);
  (void)ask(Request::Op::kRelease, request->lease);
  EXPECT_EQ(exact_script(0), "release");
  EXPECT_EQ(exact_script(1), "unvote");
}

TEST_F(QuorumTest, an_unvote_that_is_not_decided_is_followed_by_release) {
  connect_all();
  const auto lease = held();
  const auto release = ask(Request::Op::kRelease, lease);
  for (size_t i = 0; i < kNodes; i++) {
    reply(i, MadeReply::integer(0));
    ASSERT_EQ(exact_script(i), "release") << i;
    EXPECT_EQ(argument(i, 0), lease->token);
    EXPECT_EQ(release->status.load(), i < 3 ? Status::kPending : Status::kOk);
    count(i, "release", 2);  // to one who waited
  }
  EXPECT_EQ(release->status.load(), Status::kOk);
}

TEST_F(QuorumTest, what_is_no_answer_to_a_vote_is_no_vote) {
  connect_all();
  const auto request = acquire();
  reply(0, MadeReply::integer(2));
  reply(1, MadeReply::text("1"));
  reply(2, MadeReply::list(MadeReply::integer(1)));
  ASSERT_EQ(request->status.load(), Status::kServer);
  EXPECT_NE(request->message.find("unexpected answer to a vote"), std::string::npos)
      << request->message;
}

TEST_F(QuorumTest, fences_and_labels_need_acquire) {
  connect_all();
  engine::AcquireOptions options;
  options.label = "nightly";
  (void)acquire(0, options);
  EXPECT_EQ(exact_script(0), "acquire");
}

TEST_F(QuorumTest, a_round_behind_one_that_failed_asks_by_acquire) {
  connect_all();
  const auto request = acquire(-1);
  for (size_t i = 0; i < kNodes; i++) reply(i, MadeReply::error("ERR busy elsewhere"));
  for (size_t i = 0; i < kNodes; i++) {
    while (script(i) == "release") count(i, "release", -1);
  }
  advance(kSecond);
  for (size_t i = 0; i < kNodes; i++) EXPECT_EQ(exact_script(i), "acquire") << i;
}

TEST_F(QuorumTest, the_holder_of_a_vote_is_described_once_the_time_of_the_grant_is_known) {
  connect_all();
  const auto lease = held();
  while (exact_script(0) != "extend") advance(100 * kMs);
  EXPECT_FALSE(is_description(0));
  const Nanos held_for = now_ - 1000 * kSecond;
  reply(0, MadeReply::list(MadeReply::integer(1), MadeReply::integer(1'700'000'000'000)));
  ASSERT_TRUE(is_description(0));
  EXPECT_EQ(argument(0, 6), "since");
  EXPECT_EQ(argument(0, 7), std::to_string(1'700'000'000'000 - held_for / kMs));
}

}  // namespace

}  // namespace redlatch
