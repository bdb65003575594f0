// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the arithmetic of leases, clocks and waiting. Method: plain values, no clock.
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/random.h"
#include "timing/backoff.h"
#include "timing/clock_offset.h"
#include "timing/lease_clock.h"
#include "timing/quorum.h"
#include "timing/waiting.h"

namespace redlatch::timing {

constexpr Nanos kSecond = 1000 * kMs;

TEST(LeaseClockTest, deadline_is_send_time_plus_ttl_less_drift) {
  EXPECT_EQ(deadline_of(5 * kSecond, 30 * kSecond), 35 * kSecond - 302 * kMs);
  EXPECT_EQ(deadline_of(0, 10 * kMs), 10 * kMs - 100'000 - 2 * kMs);
}

TEST(LeaseClockTest, ttl_near_max_hold_covers_it_and_hardly_more) {
  const Nanos lease = lease_within(30 * kSecond, 0, 4 * kSecond);
  EXPECT_GE(deadline_of(0, lease), 4 * kSecond);
  EXPECT_LE(lease, 4'100 * kMs);
  EXPECT_EQ(lease_within(30 * kSecond, 0, kNever), 30 * kSecond);
  EXPECT_EQ(lease_within(30 * kSecond, 5 * kSecond, 4 * kSecond), kMinTtlMs * kMs);
}

TEST(LeaseClockTest, failed_renewal_is_retried_several_times_before_the_deadline) {
  Nanos now = 0;
  int tries = 0;
  for (; now < 2 * kSecond; tries++) now = renewal_retry(now, 2 * kSecond);
  EXPECT_GE(tries, 5);
  EXPECT_LE(tries, 200);
}

TEST(ClockOffsetTest, impossible_server_times_are_not_believed) {
  // 13 digits of a push, and any number of a reply: nanoseconds have no room for them.
  constexpr int64_t kStamp = 1'700'000'000'000;
  for (const int64_t none :
       {kMaxServerMs + 1, int64_t{9'999'999'999'999}, INT64_MAX, INT64_MIN, int64_t{-1}}) {
    ClockOffset offset;
    offset.sample(kSecond, kSecond, kStamp);
    EXPECT_EQ(offset.local_time(kStamp, kSecond), kSecond - kMs);
    EXPECT_FALSE(offset.local_time(none, kSecond).has_value()) << none;
    offset.sample(kSecond, 2 * kSecond, none);
    EXPECT_FALSE(offset.local_time(kStamp, 2 * kSecond).has_value()) << "the clock was stepped";
    EXPECT_FALSE(offset.local_time(none, 2 * kSecond).has_value()) << none;
  }
  ClockOffset offset;
  offset.sample(kSecond, 2 * kSecond, kMaxServerMs);
  const auto local = offset.local_time(kMaxServerMs, 2 * kSecond);
  ASSERT_TRUE(local.has_value());
  EXPECT_LE(*local, kSecond);
  offset.sample(3 * kSecond, 4 * kSecond, 0);
  EXPECT_TRUE(offset.local_time(0, 4 * kSecond).has_value());
}

TEST(ClockOffsetTest, local_time_is_never_later_than_the_truth) {
  // A server that is fast or slow, by all that the drift margin covers, round trips of up to 50 ms:
  // for a day of random samples the local time of a stamp is at or before its true local time.
  for (const int ppm : {-9'900, -100, 0, 100, 9'900}) {
    Entropy entropy(static_cast<uint64_t>(ppm + 1000));
    ClockOffset offset;
    const auto server_ms = [&](Nanos local) {
      return 1'700'000'000'000 + (local + local / 1'000'000 * ppm) / kMs;
    };
    for (Nanos now = kSecond; now < 86'400 * kSecond; now += 15 * kSecond) {
      const auto there = static_cast<Nanos>(entropy.next() % 25) * kMs;
      const auto back = static_cast<Nanos>(entropy.next() % 25) * kMs;
      offset.sample(now, now + there + back, server_ms(now + there));
      const Nanos stamped = now + 3 * kSecond;
      const auto local = offset.local_time(server_ms(stamped), stamped + kSecond);
      ASSERT_TRUE(local.has_value());
      ASSERT_LE(*local, stamped) << ppm << " ppm at " << now / kSecond << " s";
      ASSERT_GE(*local, stamped - 200 * kMs) << "of no use";
    }
  }
}

TEST(ClockOffsetTest, sample_of_more_than_a_minute_ago_is_forgotten) {
  ClockOffset offset;
  offset.sample(kSecond, kSecond, 1'000'000);
  EXPECT_TRUE(offset.local_time(1'000'000, 30 * kSecond).has_value());
  // No server can have read that yet: its clock was stepped back since.
  EXPECT_FALSE(offset.local_time(1'040'000, 30 * kSecond).has_value());
  EXPECT_FALSE(offset.local_time(1'000'000, 62 * kSecond).has_value());
}

TEST(ClockOffsetTest, server_clock_that_jumps_forward_drops_old_samples) {
  ClockOffset offset;
  offset.sample(10 * kSecond, 10 * kSecond, 1'000'000);
  offset.sample(11 * kSecond, 11 * kSecond, 1'011'000);  // 10 s ahead of what is known
  const auto local = offset.local_time(1'011'000, 11 * kSecond);
  ASSERT_TRUE(local.has_value());
  EXPECT_LE(*local, 11 * kSecond);
}

TEST(BackoffTest, pauses_double_with_random_jitter) {
  Backoff backoff = kReconnect;
  Entropy entropy(1);
  Nanos step = 10 * kMs;
  for (int i = 0; i < 12; i++) {
    const Nanos pause = backoff.next(entropy.next());
    EXPECT_GE(pause, step / 2);
    EXPECT_LE(pause, step);
    step = std::min(step * 2, 500 * kMs);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(entropy.next()), 10 * kMs);
}

TEST(WaitingTest, poll_waits_for_the_holders_lease_and_the_waiters_in_front) {
  EXPECT_EQ(poll_delay(2'000, 0), 2'001 * kMs);
  EXPECT_EQ(poll_delay(2'000, 3), 2'001 * kMs + 150 * kMs / 1000);
  EXPECT_EQ(poll_delay(2'000, 1'500), 2'051 * kMs) << "hardly later than the head";
  EXPECT_EQ(poll_delay(100, 1'500), 1'500 * kMs) << "not all of them ten times a second";
  EXPECT_EQ(poll_delay(60'000, 0), kLongestPoll);
  EXPECT_EQ(poll_delay(-1, 0), kLongestPoll);
  EXPECT_EQ(poll_delay(-2, 0), 20 * kMs);
  EXPECT_EQ(poll_delay(INT64_MAX, INT64_MAX), kLongestPoll);
}

TEST(WaitingTest, local_hand_offs_are_limited_by_count_time_and_validity) {
  const LocalHandoffs fresh{0, 0};
  const Nanos lease = 30 * kSecond;
  EXPECT_TRUE(may_hand_off(fresh, 16, kSecond, 20 * kSecond, lease, lease));
  EXPECT_FALSE(may_hand_off(fresh, 0, kSecond, 20 * kSecond, lease, lease));
  EXPECT_FALSE(may_hand_off(LocalHandoffs{16, 0}, 16, kSecond, 20 * kSecond, lease, lease));
  EXPECT_FALSE(may_hand_off(fresh, 16, 31 * kSecond, 60 * kSecond, lease, lease));
  EXPECT_FALSE(may_hand_off(fresh, 16, kSecond, 2 * kSecond, lease, lease));
  EXPECT_TRUE(may_hand_off(fresh, 16, kSecond, kSecond + 10 * kMs, lease, 20 * kMs));
}

TEST(QuorumPolicyTest, lease_is_valid_while_a_majority_of_votes_is) {
  const std::array<Nanos, 4> deadlines{7, 9, 3, 5};
  EXPECT_EQ(valid_until(deadlines, 3), 5);
  EXPECT_EQ(valid_until(deadlines, 5), 0);
  EXPECT_EQ(majority_of(1), 1U);
  EXPECT_EQ(majority_of(5), 3U);
}

TEST(QuorumPolicyTest, node_timeout_has_bounds) {
  EXPECT_EQ(node_limit(10 * kMs), 5 * kMs);
  EXPECT_EQ(node_limit(600 * kMs), 30 * kMs);
  EXPECT_EQ(node_limit(30 * kSecond), 50 * kMs);
}

// Every client must get the same ranks: docs/wire.md lists them, and they never change.
TEST(QuorumPolicyTest, node_ranks_match_the_documented_protocol) {
  EXPECT_EQ(rank_of_node("a", "lock"), rank_of_node("alo", "ck"));
  EXPECT_NE(rank_of_node("a", "lock"), rank_of_node("b", "lock"));
  EXPECT_EQ(rank_of_node("run", "lock"), 0xdbf2300ff861aaaaU);
}

TEST(QuorumPolicyTest, uptime_is_doubted_by_the_possible_error_of_the_clock) {
  const auto at = [](Nanos clock) { return ServerAge{.clock = clock}; };
  const Nanos hour = 3600 * kSecond;
  // One other is known, and one of three may be wrong: it is right, or this one is.
  EXPECT_EQ(clock_doubt(at(hour), std::array{at(0)}, 1), hour);
  EXPECT_EQ(clock_doubt(at(0), std::array{at(hour), at(0)}, 1), 0);
  // Two of five may be wrong, and agree.
  EXPECT_EQ(clock_doubt(at(hour), std::array{at(hour), at(0), at(0)}, 2), hour);
  EXPECT_EQ(clock_doubt(at(0), std::array{at(0)}, 2), kNever);
  EXPECT_EQ(clock_doubt(at(0), {}, 0), 0);
  const ServerAge later{.clock = 0, .asked_at = hour};
  EXPECT_EQ(clock_doubt(later, std::array{at(0)}, 1), hour / 100);

  const ServerAge age{.uptime_s = 100, .clock = 0, .round_trip = kSecond, .asked_at = hour};
  EXPECT_EQ(votes_from(age, 0, 60 * kSecond), hour);
  EXPECT_EQ(votes_from(age, 48 * kSecond, 60 * kSecond), hour + 10 * kSecond);
  EXPECT_EQ(votes_from(age, hour, 60 * kSecond), hour + 60 * kSecond);
  EXPECT_EQ(votes_from(age, kNever, 60 * kSecond), kNever);
}

}  // namespace redlatch::timing
