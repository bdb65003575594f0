// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lease that moves to a node whose clock is ahead is shortened by the difference as soon as
// both clocks are known, whichever connection ends or is opened first. Method: the client alone,
// made replies; leases without renewal, which no extension prolongs.
#include "cluster_world.h"

namespace redlatch {
namespace {

constexpr Nanos kAhead = 5 * kSecond;

class ClusterClocksTest : public ClusterTest {
 protected:
  ClusterClocksTest() {
    ahead_['b'] = kAhead;
    tells_time_ = true;
  }

  std::shared_ptr<Lease> held_unrenewed(Nanos ttl = 30 * kSecond) {
    lock::AcquireOptions options;
    options.ttl = ttl;
    options.is_renewed = false;
    const auto request = acquire(name_, options);
    run();
    reply('a', granted());
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  // The client hears of it by another request.
  void move_to_b() {
    give(slot_of(name_), 'b');
    start(Request::What::ask<operate::Force>(), name_);
    reply('a', moved(slot_of(name_), 'b'));
    run();
  }
  static void expect_shorter(const std::shared_ptr<Lease> &lease, Nanos before) {
    const Nanos by = before - lease->deadline;
    EXPECT_GE(by, kAhead - 5 * kMs);
    EXPECT_LE(by, kAhead + 5 * kMs);
  }

  const std::string name_ = name_at('a');
};

TEST_F(ClusterClocksTest, a_lease_is_shortened_if_its_new_node_was_already_connected) {
  held(name_at('b'));
  const auto lease = held_unrenewed();
  const Nanos before = lease->deadline;
  move_to_b();
  expect_shorter(lease, before);
}

TEST_F(ClusterClocksTest, a_lease_is_shortened_when_its_new_node_connects) {
  const auto lease = held_unrenewed();
  const Nanos before = lease->deadline;
  down_ = "b";
  move_to_b();
  EXPECT_EQ(lease->deadline, before);
  down_.clear();
  advance(5 * kSecond);
  expect_shorter(lease, before);
}

TEST_F(ClusterClocksTest, a_lease_is_shortened_by_the_first_answer_that_has_the_new_clock) {
  tells_time_ = false;
  const auto lease = held_unrenewed();
  const Nanos before = lease->deadline;
  move_to_b();
  EXPECT_EQ(lease->deadline, before);
  ASSERT_EQ(scripts('b'), "force_release");
  reply('b', count(0, 'b'));
  expect_shorter(lease, before);
}

// As in a failover.
TEST_F(ClusterClocksTest, a_lease_is_shortened_when_the_old_connection_has_ended) {
  const auto lease = held_unrenewed();
  const Nanos before = lease->deadline;
  advance(100 * kMs);
  give(slot_of(name_), 'b');
  disconnect('a');
  run();
  EXPECT_EQ(hosts_, "ab");
  expect_shorter(lease, before);
}

TEST_F(ClusterClocksTest, a_lease_is_shortened_when_its_slot_had_no_node_for_a_time) {
  const auto lease = held_unrenewed();
  const Nanos before = lease->deadline;
  const auto all = ranges_;
  ranges_.erase(ranges_.begin());
  disconnect('a');
  advance(kSecond);
  EXPECT_EQ(lease->deadline, before);
  ranges_ = all;
  give(slot_of(name_), 'b');
  start(Request::What::ask<operate::Force>(), name_);
  advance(10 * kSecond);
  expect_shorter(lease, before);
}

TEST_F(ClusterClocksTest, a_clock_is_remembered_for_longer_than_a_minute) {
  const auto lease = held_unrenewed(600 * kSecond);
  const Nanos before = lease->deadline;
  advance(120 * kSecond);
  move_to_b();
  expect_shorter(lease, before);
}

TEST_F(ClusterClocksTest, a_lease_that_has_expired_by_the_new_nodes_clock_is_lost) {
  ahead_['b'] = 60 * kSecond;
  const auto lease = held_unrenewed();
  move_to_b();
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(ClusterClocksTest, an_extension_at_the_new_node_gives_the_full_ttl) {
  const auto lease = held(name_);
  advance_to_command('a');
  give(slot_of(name_), 'b');
  reply('a', moved(slot_of(name_), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "extend");
  const Nanos sent_at = now_;
  reply('b', count(1, 'b'));
  EXPECT_GT(lease->deadline, sent_at + 29 * kSecond);
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(ClusterClocksTest, a_new_node_whose_clock_is_behind_causes_one_warning) {
  ahead_['b'] = -kAhead;
  const auto lease = held_unrenewed();
  const Nanos before = lease->deadline;
  move_to_b();
  EXPECT_EQ(lease->deadline, before);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_NE(warnings_[0].find("ms behind that of the node that had its locks before: fences may"),
            std::string::npos)
      << warnings_[0];
  EXPECT_NE(warnings_[0].find("b:2"), std::string::npos) << warnings_[0];
  reply('b', count(0, 'b'));
  const std::string other = name_at('a');
  const auto released = release(held(other));
  give(slot_of(other), 'b');
  reply('a', moved(slot_of(other), 'b'));
  advance_to_command('b', kSecond);
  EXPECT_EQ(scripts('b'), "release");
  EXPECT_EQ(warnings_.size(), 1u);
}

}  // namespace
}  // namespace redlatch
