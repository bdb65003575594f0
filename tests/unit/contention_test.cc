// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lock counts as busy for long only while no answer found it free. Method: by hand.
#include "lock/contention.h"

#include <gtest/gtest.h>

#include <string>

namespace redlatch::lock {
namespace {

constexpr Nanos kBegin = 5'000 * kMs;
constexpr Nanos kLater = kBegin + timing::kSearchAfter;

TEST(ContentionTest, contention_counts_from_the_first_busy_answer) {
  Contention contention;
  EXPECT_FALSE(contention.is_long("k", kLater));
  contention.saw_busy("k", kBegin);
  contention.saw_busy("k", kLater - kMs);
  EXPECT_FALSE(contention.is_long("k", kLater - 1));
  EXPECT_TRUE(contention.is_long("k", kLater));
  EXPECT_FALSE(contention.is_long("other", kLater));
}

TEST(ContentionTest, one_free_answer_ends_the_contention) {
  Contention contention;
  contention.saw_busy("k", kBegin);
  contention.saw_free("other");
  EXPECT_TRUE(contention.is_long("k", kLater));
  contention.saw_free("k");
  EXPECT_FALSE(contention.is_long("k", kLater));
  contention.saw_busy("k", kLater);
  EXPECT_FALSE(contention.is_long("k", kLater + kMs));
}

TEST(ContentionTest, contention_without_newer_answers_is_forgotten) {
  Contention contention;
  contention.saw_busy("k", kBegin);
  const Nanos end = kBegin + timing::kSearchEvery;
  EXPECT_TRUE(contention.is_long("k", end - 1));
  EXPECT_FALSE(contention.is_long("k", end));
  contention.saw_busy("k", end);
  EXPECT_FALSE(contention.is_long("k", end + kMs));
}

TEST(ContentionTest, two_locks_that_share_an_entry_use_it_in_turns) {
  std::string other;
  for (int i = 0; other.empty(); i++) {
    Contention contention;
    const std::string name = "other" + std::to_string(i);
    contention.saw_busy("k", kBegin);
    contention.saw_busy(name, kBegin);
    if (!contention.is_long(name, kLater)) other = name;
  }
  Contention contention;
  int long_count = 0, other_count = 0;
  for (Nanos now = kBegin; now < kBegin + 10 * timing::kSearchAfter; now += 10 * kMs) {
    contention.saw_busy("k", now);
    contention.saw_busy(other, now);
    long_count += contention.is_long("k", now);
    other_count += contention.is_long(other, now);
  }
  EXPECT_GT(long_count, 0);
  EXPECT_GT(other_count, 0);
}

TEST(ContentionTest, locks_that_share_entries_are_not_confused) {
  Contention contention;
  for (int i = 0; i < 10'000; i++) contention.saw_busy("k" + std::to_string(i), kBegin);
  int known = 0;
  for (int i = 0; i < 10'000; i++) known += contention.is_long("k" + std::to_string(i), kLater);
  EXPECT_GT(known, 0);
  EXPECT_LE(known, 64);
  EXPECT_FALSE(contention.is_long("k10000", kLater));
}

}  // namespace
}  // namespace redlatch::lock
