// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a holder asks again for the votes that it has not, and counts them only beside a majority
// that does without them; a replica has no vote. Method: as quorum_test.cc.
#include "quorum_world.h"

namespace redlatch {

TEST_F(QuorumTest, missing_votes_are_requested_with_each_renewal) {
  connect_all();
  const auto lease = barely_held();
  advance(7 * kSecond);
  expect_nothing_at({0, 1, 2, 3, 4});
  advance(3 * kSecond);
  renew({0, 1, 2});
  for (const size_t node : {3, 4}) {
    ASSERT_EQ(script(node), "acquire") << node;
    EXPECT_EQ(argument(node, 2), "") << "a try";
    EXPECT_NE(argument(node, 0), lease->token) << "a RELEASE of that was sent there";
  }
  yes(3);
  no(4);
  count(4, "release", -1);
  // Now one may be forgotten.
  advance(10 * kSecond);
  count(0, "extend", 0);
  EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
  ASSERT_EQ(script(4), "acquire");
}

TEST_F(QuorumTest, a_node_that_lost_its_vote_is_asked_again_with_the_same_token) {
  connect_all();
  const auto lease = held();
  advance(10 * kSecond);
  renew({1, 2, 3, 4});
  advance(kMs);
  count(0, "extend", 0);
  expect_nothing_at({0});
  renew({2, 3});  // asked again, at once
  expect_nothing_at({0});
  count(1, "extend", 0);  // it had forgotten as well, in between
  confirm({2, 3, 4});
  for (const size_t node : {0, 1}) {
    ASSERT_EQ(script(node), "acquire");
    EXPECT_EQ(argument(node, 0), lease->token);
    yes(node);
  }
  advance(10 * kSecond);
  confirm({0, 1, 4});
  for (const size_t node : {2, 3}) {  // two more: 0 and 1 count
    while (script(node) == "extend") count(node, "extend", 0);
  }
  EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
  confirm({0, 1, 4});
  ask(Request::Op::kRelease, lease);
  for (const size_t node : {0, 1, 4}) count(node, "release", 1);
  for (const size_t node : {2, 3}) {  // asked before: their grants are released
    yes(node);
    EXPECT_EQ(script(node), "release") << node;
  }
}

// .. by force, or by all of them; it is not taken again from one node to the next.
TEST_F(QuorumTest, a_lock_removed_from_a_majority_is_lost_and_not_requested_again) {
  connect_all();
  const auto lease = held();
  advance(10 * kSecond);
  for (const size_t node : {0, 1, 2}) {
    EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
    count(node, "extend", 0);
    EXPECT_NE(script(node), "acquire");
  }
  EXPECT_EQ(lease->state_at(now_), Lease::kLost);
}

// A node that keeps nothing is not asked without end.
TEST_F(QuorumTest, a_node_that_keeps_losing_its_vote_is_not_asked_in_a_loop) {
  auto options = lock::AcquireOptions();
  options.label = "written with an extension, at once";
  connect_all();
  const auto request = acquire(0, options);
  for (size_t i = 0; i < kNodes; i++) yes(i);
  for (const size_t node : {1, 2, 3, 4}) count(node, "extend", 1);
  int asked = 0;
  for (int i = 0; i < 100; i++) {
    if (script(0) == "extend") count(0, "extend", 0);
    confirm({1, 2, 3, 4});
    if (script(0) != "acquire") break;
    yes(0);
    asked++;
  }
  EXPECT_LE(asked, 1);
  EXPECT_EQ(request->lease->state_at(now_), Lease::kHeld);
}

TEST_F(QuorumTest, validity_of_a_late_vote_counts_from_its_request) {
  connect_all();
  const auto lease = barely_held();
  const Nanos end = now_ + 10 * kSecond;
  while (script(3).empty() && now_ < end) advance(10 * kMs);
  const Nanos asked_at = now_;
  advance(end - now_);
  renew({1, 2});
  yes(3);
  count(0, "extend", 0);
  const Nanos lease_time = kDefaultTtlMs * kMs;
  EXPECT_LE(lease->deadline.load(), asked_at + lease_time - lease_time / 100 - 2 * kMs);
  EXPECT_GT(lease->deadline.load(), asked_at + lease_time - lease_time / 100 - 13 * kMs);
  EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
}

TEST_F(QuorumTest, a_late_vote_does_not_revive_a_lost_lease) {
  connect_all();
  const auto lease = barely_held();
  advance(10 * kSecond);
  ASSERT_EQ(script(3), "acquire");
  count(0, "extend", 0);  // two are left
  EXPECT_EQ(lease->state_at(now_), Lease::kLost);
  yes(3);
  yes(4);
  EXPECT_EQ(lease->state_at(now_), Lease::kLost);
  for (const size_t node : {3, 4}) EXPECT_EQ(script(node), "release") << node;
}

TEST_F(QuorumTest, an_extension_by_the_caller_also_requests_missing_votes) {
  auto options = lock::AcquireOptions();
  options.is_renewed = false;
  connect_all();
  const auto lease = barely_held(options);
  advance(20 * kSecond);
  expect_nothing_at({0, 1, 2, 3, 4});
  ask(Request::Op::kExtend, lease, 20 * kSecond);
  for (const size_t node : {3, 4}) {
    ASSERT_EQ(script(node), "acquire") << node;
    EXPECT_EQ(argument(node, 1), "20000");
  }
  renew({0, 1, 2});
  for (const size_t node : {3, 4}) yes(node);
  advance(4 * kSecond);
  ask(Request::Op::kExtend, lease, 20 * kSecond);
  count(0, "extend", 0);
  expect_nothing_at({0});
  renew({1, 2, 3, 4});
  EXPECT_EQ(script(0), "acquire");
  EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
  expect_nothing_at({1, 2, 3, 4});
}

TEST_F(QuorumTest, missing_votes_are_requested_only_of_nodes_that_may_vote) {
  for (const size_t node : {0, 1, 2}) connect(node, facts_of(node));
  connect(3, facts_of(3, 30));
  connect(4, facts_of(4));
  const auto request = acquire();
  for (const size_t node : {0, 1, 2}) yes(node);
  no(4);
  count(4, "release", -1);
  disconnect(4);
  connect(4, facts_of(2));  // the same server as 2
  for (int i = 0; i < 3; i++) {
    advance(10 * kSecond);
    renew({0, 1, 2});
    expect_nothing_at({3, 4});
  }
  advance(10 * kSecond);  // it is old enough
  EXPECT_EQ(script(3), "acquire");
  expect_nothing_at({4});
}

TEST_F(QuorumTest, a_shutdown_releases_requested_votes) {
  connect_all();
  barely_held();
  advance(10 * kSecond);
  renew({0, 1, 2});
  quorum().shut_down(now_);
  for (const size_t node : {3, 4}) {
    yes(node);
    EXPECT_EQ(script(node), "release") << node;
  }
}

// ---- fences -------------------------------------------------------------------------------------

// Else the next owner, if the first three forget it, has a lower one.
TEST_F(QuorumTest, a_late_vote_counts_only_after_its_fence_is_written) {
  settings_.is_fenced = true;
  connect_all();
  const auto request = acquire();
  yes(0, 7);
  yes(1, 900);
  yes(2, 8);
  for (const size_t node : {0, 1, 2}) count(node, "raise_fence", 1);
  for (const size_t node : {3, 4}) {
    no(node);
    count(node, "release", -1);
  }
  advance(10 * kSecond);
  yes(3, 5);
  EXPECT_EQ(argument(3, 1), "900");
  renew({1, 2});
  count(0, "extend", 0);
  EXPECT_EQ(request->lease->state_at(now_), Lease::kLost) << "3 has not written it";
}

TEST_F(QuorumTest, a_late_vote_counts_once_its_fence_is_written) {
  settings_.is_fenced = true;
  connect_all();
  const auto request = acquire();
  for (const size_t node : {0, 1, 2}) yes(node);
  for (const size_t node : {0, 1, 2}) count(node, "raise_fence", 1);
  yes(3);  // late, and raised as well
  count(3, "raise_fence", 1);
  yes(4);
  count(4, "raise_fence", 0);  // forgotten in between
  advance(10 * kSecond);
  count(0, "extend", 0);
  renew({1, 2, 3});
  EXPECT_EQ(request->lease->state_at(now_), Lease::kHeld);
}

// ---- replicas -----------------------------------------------------------------------------------

TEST_F(QuorumTest, a_replica_has_no_vote_and_the_other_nodes_decide) {
  for (const size_t node : {0, 1, 2}) connect(node, facts_of(node));
  const auto request = acquire();
  for (const size_t node : {3, 4}) {
    connect(node, replica_facts_of(node));
    EXPECT_TRUE(is_dropped_[node]);
    disconnect(node);
  }
  for (const size_t node : {0, 1, 2}) yes(node);
  ASSERT_EQ(request->status.load(), Status::kOk) << request->message;
  ASSERT_EQ(validated_.size(), 2U) << "said once for each";
  EXPECT_NE(validated_[0].find("node3:6379 is a replica"), std::string::npos) << validated_[0];
  std::vector<NodeStatus> nodes(5);
  nodes[4].address = "redis://node4:6379";
  quorum().describe(nodes, now_);
  EXPECT_EQ(nodes[4].state, NodeState::kNoVote);
  EXPECT_EQ(nodes[4].reason, "is a replica, which has no vote: nodes must be primaries");
  EXPECT_EQ(nodes[0].reason, "");
  // It is looked at again; promoted, it is one more vote of who holds.
  advance(10 * kSecond);
  EXPECT_EQ(dialed_[3], 1);
  quorum().on_connected(3, facts_of(3), now_);
  yes(3);
  EXPECT_EQ(validated_.back(), "3: ");
}

TEST_F(QuorumTest, too_many_replicas_are_an_error_that_names_one) {
  for (const size_t node : {0, 1}) connect(node, facts_of(node));
  const auto request = acquire(5000);
  for (const size_t node : {2, 3}) connect(node, replica_facts_of(node));
  EXPECT_EQ(request->status.load(), Status::kPending);
  connect(4, replica_facts_of(4));
  EXPECT_EQ(request->status.load(), Status::kUnsupported);
  EXPECT_NE(request->message.find("3 of 5 nodes are replicas"), std::string::npos);
  EXPECT_NE(request->message.find("node2:6379, "), std::string::npos) << request->message;
}

// What was said of them lately is not held against those that are promoted.
TEST_F(QuorumTest, each_acquire_checks_again_for_a_majority_of_replicas) {
  nodes_.resize(3);
  connect(0, facts_of(0));
  connect(1, facts_of(1));
  connect(2, replica_facts_of(2));
  disconnect(2);
  auto request = acquire();
  yes(0);
  reply(1, MadeReply::error("READONLY You can't write against a read only replica."));
  connect(2, replica_facts_of(2));
  EXPECT_EQ(request->status.load(), Status::kUnsupported) << request->message;
  EXPECT_EQ(script(0), "release");
  count(0, "release", 1);
  request = acquire(5000);  // before the connections are gone
  EXPECT_EQ(request->status.load(), Status::kPending);
  disconnect(2);
  connect(2, replica_facts_of(2));
  EXPECT_EQ(request->status.load(), Status::kPending) << "the other one was not looked at yet";
  disconnect(1);
  advance(kSecond);
  EXPECT_GT(dialed_[1], 0);
  quorum().on_connected(1, facts_of(1), now_);
  for (const size_t node : {0, 1}) yes(node);
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
}

TEST_F(QuorumTest, a_node_that_becomes_a_replica_has_no_vote_until_it_is_promoted) {
  connect_all();
  const auto lease = held();
  advance(10 * kSecond);
  renew({1, 2, 3, 4});
  reply(0, MadeReply::error("READONLY You can't write against a read only replica."));
  EXPECT_TRUE(is_dropped_[0]);
  ASSERT_EQ(validated_.size(), 1U);
  EXPECT_NE(validated_[0].find("node0:6379 is a replica"), std::string::npos) << validated_[0];
  disconnect(0);
  connect(0, replica_facts_of(0));
  disconnect(0);
  EXPECT_EQ(validated_.size(), 1U);
  for (const size_t node : {1, 2}) {  // .. and is not counted: with two less it is lost
    EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
    disconnect(node);
    auto facts = facts_of(node);
    facts.run_id += "again";
    connect(node, facts);
  }
  EXPECT_EQ(lease->state_at(now_), Lease::kLost);
  EXPECT_NE(lease->reason.find("node0:6379 is a replica"), std::string::npos) << lease->reason;
}

}  // namespace redlatch
