// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a quorum without fences acquires by VOTE, and knows what a vote without a fence and without
// the time of its grant means.
#include "quorum_world.h"

namespace redlatch {

namespace {

TEST_F(QuorumTest, an_uncontended_cycle_is_one_vote_and_one_release_at_each_node) {
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
    count(i, "release", 1);
    expect_nothing_at({i});
  }
  EXPECT_EQ(release->status.load(), Status::kOk);
}

TEST_F(QuorumTest, a_malformed_answer_is_no_vote) {
  connect_all();
  const auto request = acquire();
  reply(0, MadeReply::integer(2));
  reply(1, MadeReply::text("1"));
  reply(2, MadeReply::list(MadeReply::integer(1)));
  ASSERT_EQ(request->status.load(), Status::kServer);
  EXPECT_NE(request->message.find("unexpected answer"), std::string::npos) << request->message;
}

// The key holds data: no vote, whatever the caller would wait.
MadeReply data() {
  return MadeReply::list(MadeReply::integer(0), MadeReply::integer(-1),
                         MadeReply::integer(1'700'000'000'000), MadeReply::text(""),
                         MadeReply::integer(-1), MadeReply::text("12345678"), MadeReply::text(""),
                         MadeReply::text("list"), MadeReply::integer(0));
}

TEST_F(QuorumTest, data_on_a_minority_of_nodes_does_not_prevent_a_grant) {
  connect_all();
  const auto request = acquire(-1);
  for (size_t i = 0; i < 2; i++) reply(i, data());
  for (size_t i = 2; i < kNodes; i++) yes(i);
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
}

TEST_F(QuorumTest, data_on_too_many_nodes_ends_the_wait_and_releases_the_votes) {
  connect_all();
  for (const int64_t wait_ms : {int64_t{0}, int64_t{-1}}) {
    const auto request = acquire(wait_ms);
    for (size_t i = 0; i < 3; i++) reply(i, data());
    yes(3);
    yes(4);
    ASSERT_EQ(request->status.load(), Status::kWrongType) << request->message;
    EXPECT_NE(request->message.find("has data at its keys on 3 of 5 nodes"), std::string::npos)
        << request->message;
    EXPECT_NE(request->message.find("(got list)"), std::string::npos) << request->message;
    for (size_t i = 0; i < kNodes; i++) count(i, "release", i < 3 ? -1 : 1);
  }
}

TEST_F(QuorumTest, an_acquire_with_a_label_asks_for_the_time_of_the_grant) {
  connect_all();
  lock::AcquireOptions options;
  options.label = "nightly";
  (void)acquire(0, options);
  EXPECT_EQ(exact_script(0), "acquire");
  reply(0, MadeReply::integer(1));
  expect_nothing_at({0});  // no grant: it would be described
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
