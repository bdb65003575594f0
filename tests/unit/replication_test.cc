// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lease counts as confirmed only if enough replicas have the extension that was sent in
// front of the WAIT, and callers share WAITs. Method: the machine alone, with made events. After
// each of them its model is checked.
#include "lock/replication.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace redlatch::lock {
namespace {

using Entry = Replication::Entry;
using Verdict = Replication::Verdict;

constexpr Nanos kTtl = 30'000 * kMs;

class ReplicationTest : public ::testing::Test {
 protected:
  std::unique_ptr<Entry> want(int replicas = 2, Nanos timeout = 1'000 * kMs, Nanos limit = kNever) {
    auto entry = std::make_unique<Entry>(replicas, timeout);
    machine_.want(*entry, limit);
    check();
    return entry;
  }
  // @return how many entries are in the batch that was sent; 0: none was.
  size_t send(Nanos ttl = kTtl) {
    batch_.clear();
    for (Entry *entry = machine_.start(); entry != nullptr; entry = Replication::next(*entry)) {
      machine_.sent(*entry, ttl, now_);
      batch_.push_back(entry);
    }
    check();
    return batch_.size();
  }
  void extend_all() {
    for (Entry *entry : batch_) machine_.on_extended(*entry);
    check();
  }
  struct Counted {
    std::vector<Entry *> confirmed, too_few, again;
  };
  Counted count(int64_t replicas) {
    Counted counted;
    while (true) {
      const auto step = machine_.on_counted(replicas, now_);
      check();
      if (step.verdict == Verdict::kNone) return counted;
      if (step.verdict == Verdict::kConfirmed) counted.confirmed.push_back(step.entry);
      if (step.verdict == Verdict::kTooFew) counted.too_few.push_back(step.entry);
      if (step.verdict == Verdict::kAgain) counted.again.push_back(step.entry);
    }
  }
  void check() { ASSERT_STREQ(machine_.check(), nullptr); }

  Replication machine_;
  Nanos now_ = 1'000 * kMs;
  std::vector<Entry *> batch_;
};

TEST_F(ReplicationTest, enough_replicas_confirm) {
  const auto entry = want();
  EXPECT_TRUE(machine_.is_due());
  ASSERT_EQ(send(), 1u);
  EXPECT_FALSE(machine_.is_due());
  EXPECT_EQ(machine_.replicas(), 2);
  EXPECT_EQ(machine_.wait_ms(now_), 1'000);
  extend_all();
  EXPECT_EQ(count(2).confirmed.size(), 1u);
  EXPECT_TRUE(machine_.is_idle());
  EXPECT_FALSE(entry->is_wanted());
}

TEST_F(ReplicationTest, postponed_entry_is_in_a_later_batch_within_its_time) {
  const auto moving = want(), other = want();
  ASSERT_EQ(send(), 2u);
  machine_.on_put_off(*moving, now_ + 100 * kMs);
  machine_.on_extended(*other);
  check();
  EXPECT_EQ(count(2).confirmed, std::vector<Entry *>{other.get()}) << "the others do not wait";
  EXPECT_FALSE(machine_.is_due()) << "not at once";
  EXPECT_FALSE(machine_.is_idle());
  EXPECT_EQ(machine_.put_off_until(), now_ + 100 * kMs);
  now_ += 100 * kMs;
  EXPECT_EQ(machine_.take_up(now_).verdict, Verdict::kNone);
  EXPECT_EQ(machine_.put_off_until(), kNever);
  ASSERT_EQ(send(), 1u);
  EXPECT_EQ(machine_.wait_ms(now_), 900) << "its time goes on";
  machine_.on_put_off(*moving, now_ + 5'000 * kMs);
  (void)count(2);
  EXPECT_EQ(machine_.put_off_until(), now_ + 900 * kMs) << "not beyond its time";
  now_ += 900 * kMs;
  const auto step = machine_.take_up(now_);
  check();
  EXPECT_EQ(step.verdict, Verdict::kTooFew);
  EXPECT_EQ(step.entry, moving.get());
  EXPECT_EQ(machine_.take_up(now_).verdict, Verdict::kNone);
  EXPECT_TRUE(machine_.is_idle());
}

TEST_F(ReplicationTest, postponed_entry_can_be_dropped_refused_and_repeated) {
  const auto dropped = want(), repeated = want();
  ASSERT_EQ(send(), 2u);
  for (const auto *entry : {&dropped, &repeated}) machine_.on_put_off(**entry, now_ + 100 * kMs);
  machine_.drop(*dropped);
  check();
  machine_.on_link_lost();
  check();
  ASSERT_EQ(send(), 1u);
  EXPECT_EQ(machine_.wait_ms(now_), 1'000) << "the outage is not the replicas' fault";
  machine_.on_put_off(*repeated, now_ + 100 * kMs);
  (void)count(0);
  EXPECT_EQ(machine_.take_due(), repeated.get());
  EXPECT_TRUE(machine_.is_idle());
}

TEST_F(ReplicationTest, one_replica_fewer_is_too_few) {
  const auto entry = want();
  send();
  extend_all();
  now_ += 1'000 * kMs;
  const auto counted = count(1);
  EXPECT_EQ(counted.too_few.size(), 1u);
  EXPECT_TRUE(counted.confirmed.empty());
}

TEST_F(ReplicationTest, replica_count_without_an_answered_extension_confirms_nothing) {
  const auto entry = want(1);
  send();
  now_ += 1'000 * kMs;
  EXPECT_EQ(count(5).too_few.size(), 1u) << "the extension was not answered";
}

TEST_F(ReplicationTest, entries_that_come_during_a_wait_share_the_next_one) {
  std::vector<std::unique_ptr<Entry>> entries;
  entries.push_back(want());
  ASSERT_EQ(send(), 1u);
  extend_all();
  for (int i = 0; i < 63; i++) entries.push_back(want());
  EXPECT_FALSE(machine_.is_due()) << "WAIT would block it";
  now_ += 1'000 * kMs;
  EXPECT_EQ(count(0).too_few.size(), 1u);
  ASSERT_EQ(send(), 63u);
  EXPECT_EQ(machine_.wait_ms(now_), 1'000) << "they have not paid for the WAIT before theirs";
  extend_all();
  now_ += 1'000 * kMs;
  EXPECT_EQ(count(0).too_few.size(), 63u);
  EXPECT_TRUE(machine_.is_idle());
}

TEST_F(ReplicationTest, entries_with_different_replica_counts_have_separate_waits) {
  const auto first = want(1);
  const auto second = want(2);
  const auto third = want(1);
  EXPECT_EQ(send(), 2u);
  EXPECT_EQ(machine_.replicas(), 1);
  extend_all();
  EXPECT_EQ(count(1).confirmed.size(), 2u);
  EXPECT_EQ(send(), 1u);
  EXPECT_EQ(machine_.replicas(), 2);
}

TEST_F(ReplicationTest, shortest_time_ends_the_wait_and_the_others_wait_again) {
  const auto patient = want(1, 1'000 * kMs);
  const auto hasty = want(1, 100 * kMs);
  send();
  EXPECT_EQ(machine_.wait_ms(now_), 100);
  extend_all();
  now_ += 100 * kMs;
  const auto counted = count(0);
  ASSERT_EQ(counted.too_few.size(), 1u);
  EXPECT_EQ(counted.too_few.front(), hasty.get());
  ASSERT_EQ(counted.again.size(), 1u);
  ASSERT_EQ(send(), 1u);
  EXPECT_EQ(machine_.wait_ms(now_), 900);
}

TEST_F(ReplicationTest, wait_is_no_longer_than_the_time_of_the_caller_and_the_lease) {
  const auto entry = want(1, 1'000 * kMs, now_ + 300 * kMs);
  send();
  EXPECT_EQ(machine_.wait_ms(now_), 300);
  extend_all();
  (void)count(1);
  const auto brief = want(1, 1'000 * kMs);
  send(200 * kMs);
  EXPECT_LE(machine_.wait_ms(now_), 196);
  EXPECT_GE(machine_.wait_ms(now_), 190);
}

TEST_F(ReplicationTest, wait_is_never_sent_without_a_limit) {
  const auto entry = want(1, 1'000 * kMs, now_);
  send();
  EXPECT_EQ(machine_.wait_ms(now_), 1) << "0 would block for good";
  machine_.drop(*entry);
  EXPECT_EQ(machine_.wait_ms(now_), 1);
}

TEST_F(ReplicationTest, wait_that_ends_slightly_early_is_not_repeated) {
  const auto entry = want(1);
  send();
  extend_all();
  now_ += 999 * kMs;
  EXPECT_EQ(count(0).too_few.size(), 1u);
}

TEST_F(ReplicationTest, dropped_entry_gets_no_verdict) {
  const auto left = want(1);
  const auto right = want(1);
  send();
  extend_all();
  machine_.drop(*left);
  check();
  EXPECT_FALSE(machine_.is_due());
  const auto late = want(1);
  EXPECT_FALSE(machine_.is_due()) << "the WAIT is still unanswered";
  EXPECT_EQ(count(1).confirmed.size(), 1u);
  EXPECT_TRUE(machine_.is_due());
}

TEST_F(ReplicationTest, lost_connection_repeats_all_entries_in_order_with_full_time) {
  const auto first = want(1);
  const auto second = want(1);
  send();
  extend_all();
  const auto third = want(1);
  now_ += 900 * kMs;
  machine_.on_link_lost();
  check();
  ASSERT_EQ(send(), 3u);
  EXPECT_EQ(batch_, (std::vector<Entry *>{first.get(), second.get(), third.get()}));
  EXPECT_EQ(machine_.wait_ms(now_), 1'000);
  now_ += 1'000 * kMs;
  EXPECT_EQ(count(1).too_few.size(), 3u) << "the extension is sent and answered anew";
}

TEST_F(ReplicationTest, entry_with_an_unknown_script_is_in_the_next_batch) {
  const auto entry = want(1);
  send();
  machine_.on_unknown_script(*entry);
  check();
  EXPECT_TRUE(count(3).confirmed.empty());
  EXPECT_EQ(send(), 1u);
}

TEST_F(ReplicationTest, refused_wait_fails_only_its_batch) {
  const auto first = want(1);
  const auto second = want(1);
  send();
  const auto third = want(1);
  EXPECT_EQ(machine_.on_refused(), first.get());
  check();
  EXPECT_EQ(machine_.on_refused(), second.get());
  EXPECT_EQ(machine_.on_refused(), nullptr);
  check();
  EXPECT_TRUE(third->is_wanted());
  EXPECT_EQ(machine_.take_due(), third.get());
  EXPECT_TRUE(machine_.is_idle());
}

TEST_F(ReplicationTest, entry_that_is_wanted_again_starts_over) {
  const auto entry = want(1);
  send();
  extend_all();
  machine_.want(*entry, kNever);
  check();
  EXPECT_TRUE(count(1).confirmed.empty()) << "the count is of an earlier extension";
  EXPECT_EQ(send(), 1u);
}

// Any order of events keeps the model, and no entry is confirmed by a count below its number.
TEST_F(ReplicationTest, any_order_of_events_keeps_the_model) {
  for (unsigned seed = 1; seed <= 200; seed++) {
    std::mt19937 random(seed);
    machine_ = Replication();
    batch_.clear();
    std::vector<std::unique_ptr<Entry>> entries;
    for (int i = 0; i < 12; i++) {
      entries.push_back(std::make_unique<Entry>(1 + static_cast<int>(random() % 3), 50 * kMs));
    }
    bool is_sent = false;
    for (int step = 0; step < 300; step++) {
      now_ += static_cast<Nanos>(random() % 20) * kMs;
      Entry &entry = *entries[random() % entries.size()];
      switch (random() % 7) {
        case 0:
        case 1:
          machine_.want(entry, random() % 4 == 0 ? now_ + 10 * kMs : kNever);
          break;
        case 2:
          machine_.drop(entry);
          break;
        case 3:
          if (!is_sent && machine_.is_due()) is_sent = send() > 0;
          break;
        case 4:
          if (!is_sent) break;
          for (Entry *at : batch_) machine_.on_extended(*at);
          break;
        case 5: {
          if (!is_sent) break;
          const auto replicas = static_cast<int64_t>(random() % 4);
          for (const Entry *at : count(replicas).confirmed) EXPECT_GE(replicas, at->replicas());
          is_sent = false;
          break;
        }
        default:
          machine_.on_link_lost();
          is_sent = false;
      }
      ASSERT_STREQ(machine_.check(), nullptr) << "seed " << seed << ", step " << step;
    }
  }
}

}  // namespace
}  // namespace redlatch::lock
