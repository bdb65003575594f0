// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Which nodes of a quorum may vote: replicas, duplicates, restarts and the guard, in made reports.
#include "quorum/node_eligibility.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace redlatch::quorum {
namespace {

constexpr Nanos kSecond = 1000 * kMs;

class NodeEligibilityTest : public ::testing::Test {
 protected:
  NodeEligibilityTest() : nodes_(3) {
    for (size_t i = 0; i < nodes_.size(); i++) nodes_[i].host = "node" + std::to_string(i);
  }

  ServerFacts facts_of(const std::string &run_id, int64_t uptime_s = 100'000) const {
    ServerFacts facts;
    facts.run_id = run_id;
    facts.age.uptime_s = uptime_s;
    facts.age.asked_at = now_;
    return facts;
  }
  void connect_all(NodeEligibility &eligibility) {
    for (size_t i = 0; i < nodes_.size(); i++) {
      EXPECT_FALSE(eligibility.on_connected(i, facts_of("run" + std::to_string(i))));
    }
  }

  std::vector<Settings> nodes_;
  QuorumSettings settings_;
  Nanos now_ = 1000 * kSecond;
};

TEST_F(NodeEligibilityTest, primaries_with_a_long_uptime_vote) {
  NodeEligibility eligibility(nodes_, settings_);
  EXPECT_FALSE(eligibility.was_tried(0));
  connect_all(eligibility);
  for (size_t i = 0; i < nodes_.size(); i++) {
    EXPECT_TRUE(eligibility.was_tried(i));
    EXPECT_TRUE(eligibility.may_vote(i, now_));
    EXPECT_TRUE(eligibility.why_no_vote(i, now_).ok());
  }
  EXPECT_TRUE(eligibility.fatal_fault().ok());
}

TEST_F(NodeEligibilityTest, a_restarted_node_votes_when_the_guard_has_passed) {
  NodeEligibility eligibility(nodes_, settings_);
  connect_all(eligibility);
  EXPECT_FALSE(eligibility.note_restart(1, facts_of("run1"), now_));
  ServerFacts facts = facts_of("new");  // its clock claims a long uptime
  EXPECT_TRUE(eligibility.note_restart(1, facts, now_));
  EXPECT_FALSE(eligibility.on_connected(1, facts));
  EXPECT_FALSE(eligibility.may_vote(1, now_ + settings_.restart_guard - 1));
  EXPECT_NE(eligibility.why_no_vote(1, now_).message.find("restart_guard"), std::string::npos);
  EXPECT_TRUE(eligibility.may_vote(1, now_ + settings_.restart_guard));
}

TEST_F(NodeEligibilityTest, durable_nodes_need_no_guard) {
  settings_.is_durable = true;
  NodeEligibility eligibility(nodes_, settings_);
  connect_all(eligibility);
  EXPECT_FALSE(eligibility.note_restart(1, facts_of("new", 0), now_));
  EXPECT_FALSE(eligibility.on_connected(1, facts_of("new", 0)));
  EXPECT_TRUE(eligibility.may_vote(1, now_));
}

TEST_F(NodeEligibilityTest, one_server_listed_twice_is_fatal) {
  NodeEligibility eligibility(nodes_, settings_);
  EXPECT_FALSE(eligibility.on_connected(0, facts_of("same")));
  EXPECT_TRUE(eligibility.on_connected(1, facts_of("same")));
  EXPECT_FALSE(eligibility.may_vote(1, now_));
  EXPECT_EQ(eligibility.fatal_fault().status, Status::kInvalid);
  eligibility.on_connecting(1);  // the next acquire waits for a new attempt
  EXPECT_FALSE(eligibility.was_tried(1));
  EXPECT_TRUE(eligibility.fatal_fault().ok());
}

TEST_F(NodeEligibilityTest, a_minority_of_replicas_is_not_fatal) {
  NodeEligibility eligibility(nodes_, settings_);
  connect_all(eligibility);
  ServerFacts replica = facts_of("run3");
  replica.is_replica = true;
  NodeEligibility fresh(nodes_, settings_);
  EXPECT_TRUE(fresh.on_connected(0, replica));
  EXPECT_TRUE(fresh.is_replica(0));
  EXPECT_TRUE(fresh.fatal_fault().ok());
  replica.run_id = "run4";
  EXPECT_TRUE(fresh.on_connected(1, replica));
  const Outcome fault = fresh.fatal_fault();
  EXPECT_EQ(fault.status, Status::kUnsupported);
  EXPECT_NE(fault.message.find("2 of 3 nodes are replicas"), std::string::npos) << fault.message;
  // A node that was good and became a replica has failed, as nodes do.
  EXPECT_TRUE(eligibility.on_replica(0));
  EXPECT_FALSE(eligibility.on_replica(0)) << "reported once";
  EXPECT_TRUE(eligibility.on_replica(1));
  EXPECT_TRUE(eligibility.fatal_fault().ok());
  EXPECT_FALSE(eligibility.may_vote(0, now_));
}

TEST_F(NodeEligibilityTest, a_later_temporary_failure_replaces_a_refusal) {
  NodeEligibility eligibility(nodes_, settings_);
  eligibility.on_connect_failed(0, failure(Status::kDenied, "node0: wrong password"));
  EXPECT_EQ(eligibility.refusal_of(0).status, Status::kDenied);
  EXPECT_EQ(eligibility.fatal_fault().status, Status::kDenied);
  eligibility.on_connect_failed(0, failure(Status::kUnavailable, "node0: refused"));
  EXPECT_TRUE(eligibility.refusal_of(0).ok());
  EXPECT_TRUE(eligibility.fatal_fault().ok());
}

TEST_F(NodeEligibilityTest, the_order_depends_on_the_servers_not_on_the_list) {
  NodeEligibility eligibility(nodes_, settings_);
  connect_all(eligibility);
  NodeEligibility reversed(nodes_, settings_);
  for (size_t i = 0; i < nodes_.size(); i++) {
    EXPECT_FALSE(reversed.on_connected(i, facts_of("run" + std::to_string(nodes_.size() - 1 - i))));
  }
  for (const char *name : {"a", "b", "orders:1", "orders:2"}) {
    const auto order = eligibility.order_of(name);
    auto mirrored = reversed.order_of(name);
    for (size_t &node : mirrored) node = nodes_.size() - 1 - node;
    EXPECT_EQ(order, mirrored) << name;
  }
}

}  // namespace
}  // namespace redlatch::quorum
