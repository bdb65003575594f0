// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a shutdown waits for answers, and always ends. Method: by hand.
#include "driver/drain.h"

#include <gtest/gtest.h>

namespace redlatch::driver {
namespace {

constexpr Nanos kBegin = 5'000 * kMs;
constexpr Nanos kTimeout = 2'000 * kMs;
constexpr Nanos kMoment = 50 * kMs;  // the others of a quorum have it

TEST(DrainTest, one_server_is_waited_for_until_it_has_answered) {
  Drain drain(kTimeout, kBegin);
  EXPECT_FALSE(drain.is_over(0, 1, false, kBegin));
  EXPECT_FALSE(drain.is_over(0, 1, false, kBegin + kTimeout - 1));
  EXPECT_TRUE(drain.is_over(1, 1, false, kBegin + kTimeout - 1));
}

TEST(DrainTest, nothing_is_waited_for_where_nothing_was_given_back) {
  EXPECT_TRUE(Drain(kTimeout, kBegin).is_over(1, 1, false, kBegin));
  EXPECT_TRUE(Drain(kTimeout, kBegin).is_over(4, 4, true, kBegin));
}

TEST(DrainTest, a_server_that_does_not_answer_is_given_up) {
  for (const bool is_of_cluster : {false, true}) {
    Drain drain(kTimeout, kBegin);
    EXPECT_EQ(drain.limit(), kBegin + kTimeout);
    EXPECT_FALSE(drain.is_over(0, 1, is_of_cluster, drain.limit() - 1));
    EXPECT_TRUE(drain.is_over(0, 1, is_of_cluster, drain.limit()));
  }
}

TEST(DrainTest, the_rest_of_a_quorum_has_a_moment_after_the_majority) {
  Drain drain(kTimeout, kBegin);
  EXPECT_FALSE(drain.is_over(2, 5, false, kBegin + kMs));
  EXPECT_EQ(drain.limit(), kBegin + kTimeout);
  EXPECT_FALSE(drain.is_over(3, 5, false, kBegin + 2 * kMs));
  EXPECT_EQ(drain.limit(), kBegin + 2 * kMs + kMoment);
  EXPECT_FALSE(drain.is_over(4, 5, false, kBegin + 10 * kMs));
  EXPECT_FALSE(drain.is_over(2, 5, false, kBegin + 20 * kMs)) << "the moment is not counted again";
  EXPECT_FALSE(drain.is_over(3, 5, false, drain.limit() - 1));
  EXPECT_EQ(drain.limit(), kBegin + 2 * kMs + kMoment);
  EXPECT_TRUE(drain.is_over(4, 5, false, drain.limit()));
}

TEST(DrainTest, a_majority_that_is_late_adds_nothing_to_the_limit) {
  Drain drain(kTimeout, kBegin);
  EXPECT_FALSE(drain.is_over(3, 5, false, kBegin + kTimeout - kMs));
  EXPECT_EQ(drain.limit(), kBegin + kTimeout);
}

TEST(DrainTest, each_node_of_a_cluster_is_waited_for_also_one_that_comes_later) {
  Drain drain(kTimeout, kBegin);
  EXPECT_FALSE(drain.is_over(2, 3, true, kBegin));
  EXPECT_FALSE(drain.is_over(3, 4, true, kBegin + 1'000 * kMs));
  EXPECT_EQ(drain.limit(), kBegin + kTimeout);
  EXPECT_TRUE(drain.is_over(4, 4, true, kBegin + 1'000 * kMs));
}

TEST(DrainTest, one_server_turns_out_to_be_a_node_of_a_cluster) {
  Drain drain(kTimeout, kBegin);
  EXPECT_FALSE(drain.is_over(0, 1, false, kBegin));
  EXPECT_FALSE(drain.is_over(2, 3, true, kBegin + 1'000 * kMs));
  EXPECT_EQ(drain.limit(), kBegin + kTimeout) << "a majority is not enough";
}

TEST(DrainTest, a_timeout_without_end_has_no_overflow) {
  Drain drain(kNever, kBegin);
  EXPECT_FALSE(drain.is_over(0, 1, true, kBegin));
  EXPECT_EQ(drain.limit(), kNever);
}

}  // namespace
}  // namespace redlatch::driver
