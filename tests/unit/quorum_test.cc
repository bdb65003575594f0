// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: votes, validity, which nodes may vote, where to queue, what is released. Method: a quorum
// with made replies and a fake clock.
#include "quorum_world.h"

namespace redlatch {

// ---- votes -------------------------------------------------------------------------------------

TEST_F(QuorumTest, a_majority_grants_the_lock_and_late_votes_are_released) {
  connect_all();
  const auto request = acquire();
  yes(0);
  yes(1);
  EXPECT_EQ(request->status.load(), Status::kPending);
  yes(2);
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->lease->fence.load(), 0);
  // Without the fourth, the loss of one would be the end.
  yes(3);
  ask(Request::Op::kRelease, request->lease);
  for (const size_t node : {0, 1, 2, 3}) count(node, "release", 1);
  yes(4);  // asked before, answered after
  EXPECT_EQ(script(4), "release");
}

TEST_F(QuorumTest, a_node_that_is_connected_late_is_one_more_vote) {
  for (const size_t node : {0, 1, 2, 3}) connect(node, facts_of(node));
  const auto request = acquire();
  advance(50 * kMs);  // no longer than a node is waited for
  for (const size_t node : {0, 1, 2, 3}) yes(node);
  ASSERT_EQ(request->status.load(), Status::kOk);
  advance(kSecond);
  connect(4, facts_of(4));
  yes(4);
  ask(Request::Op::kRelease, request->lease);
  EXPECT_EQ(script(4), "release");
}

TEST_F(QuorumTest, all_nodes_of_a_round_see_one_token_and_each_round_has_its_own) {
  connect_all();
  acquire();
  const std::string first = argument(0, 0);
  for (size_t i = 0; i < kNodes; i++) EXPECT_EQ(argument(i, 0), first);
  for (size_t i = 0; i < kNodes; i++) no(i);
  for (size_t i = 0; i < kNodes; i++) count(i, "release", -1);
  acquire();
  EXPECT_NE(argument(0, 0), first);
}

TEST_F(QuorumTest, an_acquire_is_busy_once_a_majority_is_impossible) {
  connect_all();
  const auto request = acquire();
  yes(0);
  no(1);
  no(2);
  EXPECT_EQ(request->status.load(), Status::kPending);
  no(3);
  EXPECT_EQ(request->status.load(), Status::kBusy);
  // Released on all nodes: granted, refused, and not answered yet.
  for (const size_t node : {0, 1, 2, 3}) EXPECT_EQ(script(node), "release") << node;
  EXPECT_EQ(sent_[4].size(), 2U);
}

TEST_F(QuorumTest, validity_counts_from_the_moment_of_sending) {
  connect_all();
  const auto request = acquire();
  now_ += 20 * kMs;
  for (const size_t node : {0, 1, 2}) yes(node);
  const Nanos lease = request->options.ttl;
  EXPECT_EQ(left(request->lease), lease - lease / 100 - 2 * kMs - 20 * kMs);
}

TEST_F(QuorumTest, silent_nodes_are_named_when_the_node_timeout_ends) {
  connect_all();
  const auto request = acquire();
  yes(0);
  yes(1);
  advance(49 * kMs);
  EXPECT_EQ(request->status.load(), Status::kPending);
  advance(1 * kMs);
  ASSERT_EQ(request->status.load(), Status::kUnavailable);
  for (const char *name : {"node2", "node3", "node4"}) {
    EXPECT_NE(request->message.find(name), std::string::npos) << request->message;
  }
  yes(2);  // too late, and released
  EXPECT_EQ(script(2), "release");
}

TEST_F(QuorumTest, a_lease_is_lost_when_its_client_is_destroyed) {
  connect_all();
  const auto lease = held();
  quorum_.reset();
  EXPECT_EQ(lease->state.load(), Lease::kLost);
  EXPECT_EQ(lease->loss, lock::LossReason::kClosed);
  EXPECT_EQ(lease->reason, "client is gone");
}

TEST_F(QuorumTest, a_grant_with_too_little_validity_is_released) {
  settings_.min_validity = 29'690 * kMs;
  connect_all();
  const auto request = acquire();
  now_ += 10 * kMs;
  for (const size_t node : {0, 1, 2}) yes(node);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  for (const size_t node : {0, 1, 2}) EXPECT_EQ(script(node), "release");
}

// ---- held --------------------------------------------------------------------------------------

TEST_F(QuorumTest, validity_is_renewed_by_a_majority_only) {
  connect_all();
  const auto lease = held();
  advance(10 * kSecond);
  const Nanos before = lease->deadline.load();
  count(0, "extend", 1);
  count(1, "extend", 1);
  EXPECT_EQ(lease->deadline.load(), before);
  count(2, "extend", 1);
  EXPECT_GT(lease->deadline.load(), before);
}

TEST_F(QuorumTest, a_lease_without_a_majority_is_lost_and_its_votes_are_released) {
  connect_all();
  const auto lease = held();
  advance(10 * kSecond);
  count(0, "extend", 0);
  count(1, "extend", 0);
  EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
  count(2, "extend", 0);
  EXPECT_EQ(lease->state_at(now_), Lease::kLost);
  EXPECT_EQ(lease->loss, lock::LossReason::kNoMajority);
  EXPECT_NE(lease->reason.find("2 of 5"), std::string::npos) << lease->reason;
  EXPECT_EQ(ended_count_, 1);
  confirm({3, 4});
  advance(301 * kMs);
  for (const size_t node : {3, 4}) EXPECT_EQ(script(node), "") << "its holder is notified";
  advance(kMs);
  for (const size_t node : {3, 4}) EXPECT_EQ(script(node), "release") << node;
}

// Others may have held it in between.
TEST_F(QuorumTest, a_vote_after_the_deadline_does_not_revive_the_lease) {
  for (const size_t node : {0, 1, 2, 3}) connect(node, facts_of(node));
  const auto request = acquire();
  advance(50 * kMs);
  for (const size_t node : {0, 1, 2, 3}) yes(node);
  ASSERT_EQ(request->status.load(), Status::kOk);
  for (int i = 0; i < 2; i++) {
    advance(10 * kSecond);
    for (const size_t node : {2, 3}) count(node, "extend", 1);
  }
  advance(8 * kSecond);
  connect(4, facts_of(4));
  now_ += 1900 * kMs;  // this process stood still; the lease ended
  yes(4);              // with the two that were renewed a majority, again
  EXPECT_EQ(request->lease->state_at(now_), Lease::kLost);
  EXPECT_EQ(ended_count_, 1);
}

TEST_F(QuorumTest, a_release_is_decided_by_a_majority) {
  connect_all();
  auto lease = held();
  auto request = ask(Request::Op::kRelease, lease);
  for (const size_t node : {4, 3}) count(node, "release", 1);
  EXPECT_EQ(request->status.load(), Status::kPending);
  count(2, "release", 1);
  EXPECT_EQ(request->status.load(), Status::kOk);
  for (const size_t node : {0, 1}) count(node, "release", 1);

  lease = held();
  request = ask(Request::Op::kRelease, lease);
  for (const size_t node : {0, 1, 2}) count(node, "release", -1);
  EXPECT_EQ(request->status.load(), Status::kLost);

  EXPECT_EQ(ask(Request::Op::kRelease, lease)->status.load(), Status::kNotHeld);
}

// ---- who may vote ------------------------------------------------------------------------------

TEST_F(QuorumTest, a_young_node_has_no_vote_until_the_guard_is_over) {
  for (const size_t node : {0, 1, 2}) connect(node, facts_of(node, 30));
  for (const size_t node : {3, 4}) connect(node, facts_of(node));
  auto request = acquire();
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_NE(request->message.find("31 s"), std::string::npos) << request->message;
  advance(31 * kSecond);
  request = acquire();
  for (const size_t node : {0, 1, 2}) yes(node);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(QuorumTest, an_uptime_is_trusted_only_if_the_clocks_of_the_nodes_agree) {
  for (size_t node = 0; node < kNodes; node++) {
    auto facts = facts_of(node, 3700);
    if (node < 3) facts.age.clock = 3650 * kSecond;  // .. stepped, and so is the uptime
    connect(node, facts);
  }
  // Three agree. The other two are doubted, by 3650 s: of two neighbours one must be right.
  auto request = acquire();
  for (const size_t node : {0, 1, 2}) EXPECT_EQ(script(node), "acquire");
  for (const size_t node : {3, 4}) EXPECT_EQ(script(node), "");
}

TEST_F(QuorumTest, a_restarted_node_loses_its_vote_even_if_it_reports_a_long_uptime) {
  connect_all();
  const auto lease = held();
  for (const size_t node : {0, 1}) {
    disconnect(node);
    auto facts = facts_of(node);  // an uptime that lies
    facts.run_id += "again";
    connect(node, facts);
    EXPECT_EQ(script(node), "release");
    count(node, "release", -1);
  }
  EXPECT_EQ(lease->state_at(now_), Lease::kHeld);
  ask(Request::Op::kRelease, lease);
  for (const size_t node : {2, 3, 4}) count(node, "release", 1);
  acquire();
  for (const size_t node : {0, 1}) EXPECT_EQ(script(node), "") << node;
  for (const size_t node : {2, 3, 4}) yes(node);
}

TEST_F(QuorumTest, an_unsuitable_server_is_an_error_that_names_it) {
  const auto expect_refusal = [&](ServerFacts facts, Status status, const char *word) {
    quorum_.reset();
    for (auto &sent : sent_) sent.clear();
    for (const size_t node : {0, 1, 2, 3}) connect(node, facts_of(node));
    const auto request = acquire();
    connect(4, facts);
    EXPECT_EQ(request->status.load(), status) << word;
    EXPECT_NE(request->message.find("node4"), std::string::npos) << request->message;
    EXPECT_NE(request->message.find(word), std::string::npos) << request->message;
    EXPECT_TRUE(is_dropped_[4]);
  };
  expect_refusal(facts_of(1), Status::kInvalid, "node1");
  auto facts = facts_of(4);
  facts.is_cluster_member = true;
  expect_refusal(facts, Status::kUnsupported, "cluster");
  facts = {};
  facts.why_unknown = failure(Status::kDenied, "NOPERM");
  expect_refusal(facts, Status::kDenied, "restart_guard=off");
}

TEST_F(QuorumTest, a_ttl_above_the_restart_guard_is_invalid) {
  connect_all();
  auto options = lock::AcquireOptions();
  options.ttl = settings_.restart_guard + kMs;
  EXPECT_EQ(acquire(0, options)->status.load(), Status::kInvalid);
  const auto lease = held();
  EXPECT_EQ(ask(Request::Op::kExtend, lease, options.ttl)->status.load(), Status::kInvalid);
}

// ---- fences ------------------------------------------------------------------------------------

TEST_F(QuorumTest, a_fence_is_written_to_a_majority_before_it_is_used) {
  settings_.is_fenced = true;
  connect_all();
  const auto request = acquire();
  yes(0, 7);
  yes(1, 900);
  yes(2, 8);
  EXPECT_EQ(request->status.load(), Status::kPending);
  for (const size_t node : {0, 1, 2}) {
    EXPECT_EQ(argument(node, 1), "900");
    EXPECT_EQ(request->status.load(), Status::kPending);
    count(node, "raise_fence", 1);
  }
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->lease->fence.load(), 900);
}

TEST_F(QuorumTest, a_grant_needs_its_fence_written_to_a_majority) {
  settings_.is_fenced = true;
  connect_all();
  const auto request = acquire();
  for (const size_t node : {0, 1, 2}) yes(node);
  count(0, "raise_fence", 1);
  advance(50 * kMs);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
}

// ---- waiting -----------------------------------------------------------------------------------

// The order of the nodes for this lock is the same for all, and found out by who is refused.
TEST_F(QuorumTest, a_refused_acquire_queues_at_the_first_node_that_refused) {
  connect_all();
  const auto request = acquire(5000);
  const size_t queued_at = refused_by_all();
  ASSERT_LT(queued_at, kNodes);
  EXPECT_NE(argument(queued_at, 2), "");
  yes(queued_at);  // handed off
  for (size_t i = 0; i < kNodes; i++) {
    if (i != queued_at) yes(i);
  }
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
}

TEST_F(QuorumTest, a_node_that_has_restarted_in_the_round_is_not_asked) {
  for (size_t restarted = 0; restarted < kNodes; restarted++) {
    for (auto &sent : sent_) sent.clear();
    quorum_.reset();
    connect_all();
    const auto request = acquire(-1);
    no(restarted);
    disconnect(restarted);
    auto facts = facts_of(restarted);
    facts.run_id += "again";
    connect(restarted, facts);
    for (size_t i = 0; i < kNodes; i++) {
      if (script(i) == "acquire") no(i);
    }
    for (size_t i = 0; i < kNodes; i++) {
      while (script(i) == "release") count(i, "release", -1);
    }
    EXPECT_EQ(script(restarted), "") << restarted;
    advance(kSecond);
    EXPECT_EQ(script(restarted), "") << restarted;
    for (size_t i = 0; i < kNodes; i++) {
      if (i == restarted) continue;
      EXPECT_EQ(script(i), "acquire") << "the next round, node " << i;
    }
    EXPECT_EQ(request->status.load(), Status::kPending);
  }
}

TEST_F(QuorumTest, it_queues_at_a_node_that_is_connected) {
  for (size_t away = 0; away < kNodes; away++) {
    for (auto &sent : sent_) sent.clear();
    quorum_.reset();
    connect_all();
    const auto request = acquire(-1);
    no(away);
    disconnect(away);
    size_t asked_count = 0;
    for (size_t i = 0; i < kNodes; i++) {
      if (script(i) == "acquire") no(i);
    }
    for (size_t i = 0; i < kNodes; i++) {
      while (script(i) == "release") count(i, "release", -1);
      asked_count += script(i) == "acquire" ? 1 : 0;
    }
    EXPECT_EQ(asked_count, 1) << away;
    EXPECT_EQ(script(away), "") << away;
  }
}

TEST_F(QuorumTest, the_head_of_a_queue_repeats_the_round) {
  connect_all();
  const auto request = acquire(5000);
  const size_t queued_at = refused_by_all();
  ASSERT_LT(queued_at, kNodes);
  no(queued_at);  // it has a place, and is the head
  advance(10 * kMs);
  for (size_t i = 0; i < kNodes; i++) {
    if (i != queued_at) yes(i);  // the release at that node was lost
  }
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
  EXPECT_EQ(script(queued_at), "cancel");
}

// Whose turn it is to notice, the quorum's or the engine's, does not matter.
TEST_F(QuorumTest, a_wait_that_ends_in_a_queue_has_timed_out) {
  nodes_.resize(1);
  connect(0, facts_of(0));
  const auto request = acquire(300);
  no(0);
  count(0, "release", -1);
  no(0);
  advance(150 * kMs);
  no(0);
  advance(150 * kMs);
  EXPECT_EQ(request->status.load(), Status::kTimeout) << request->message;
}

// Whatever the wait was at when it ended: in queued_at, asking all, or between two attempts.
TEST_F(QuorumTest, a_timeout_names_the_holder) {
  holder_name_ = "web-1/4711";
  connect_all();
  for (int64_t wait_ms = 20; wait_ms < 400; wait_ms += 19) {
    const auto request = acquire(wait_ms);
    const Nanos end = now_ + (wait_ms + 10) * kMs;
    while (now_ < end) {
      advance(kMs * 3 / 10);
      for (size_t i = 0; i < kNodes; i++) {
        while (script(i) == "release" || script(i) == "cancel") count(i, script(i), 0);
        while (script(i) == "acquire") no(i);
      }
    }
    ASSERT_EQ(request->status.load(), Status::kTimeout) << request->message;
    EXPECT_NE(request->message.find("; holder: web-1/4711"), std::string::npos)
        << wait_ms << ": " << request->message;
  }
}

TEST_F(QuorumTest, a_timeout_says_that_the_thread_waits_for_itself) {
  constexpr uint64_t kThread = 5;
  connect_all();
  const auto lease = held();
  lease->starter = kThread;
  const auto request = acquire(300);
  EXPECT_FALSE(quorum().waits_for_itself(*request));
  request->waiter.number = kThread + 1;
  EXPECT_FALSE(quorum().waits_for_itself(*request));
  request->waiter.number = kThread;
  EXPECT_TRUE(quorum().waits_for_itself(*request)) << "before any answer";
  for (size_t i = 0; i < kNodes; i++) no(i);
  advance(300 * kMs);
  EXPECT_EQ(request->message,
            "lock 'lock' was not granted by 3 of 5 nodes within 0.3 s; holder: the thread that "
            "waits");
}

TEST_F(QuorumTest, a_timeout_releases_votes_and_cancels_the_place) {
  connect_all();
  const auto request = acquire(300);
  for (const size_t node : {0, 1}) yes(node);
  for (const size_t node : {2, 3, 4}) no(node);
  advance(300 * kMs);
  EXPECT_EQ(request->status.load(), Status::kTimeout);
  for (size_t i = 0; i < kNodes; i++) {
    ASSERT_FALSE(sent_[i].empty());
    while (sent_[i].size() > 1) sent_[i].pop_front();
    const auto last = script(i);
    EXPECT_TRUE(last == "release" || last == "cancel") << last;
  }
}

}  // namespace redlatch
