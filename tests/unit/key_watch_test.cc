// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: while others hold a key, one waiter of the client rechecks when it changes, and all poll as
// often as they must and no more. Method: the key watch alone, with made events. After each of them
// its model is checked.
#include "lock/key_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "timing/waiting.h"

namespace redlatch::lock {
namespace {

using Command = KeyWatch::Command;
using Seen = KeyWatch::Seen;
using Step = KeyWatch::Step;
using Watcher = KeyWatch::Watcher;

constexpr Nanos kLongestForeignPoll = 250 * kMs;

class KeyWatchTest : public ::testing::Test {
 protected:
  // ~KeyWatch() looks at no watcher, so they may go first.
  Watcher &waiter(uint64_t id, int64_t rank) {
    watchers_.push_back(std::make_unique<Watcher>(id));
    Watcher &watcher = *watchers_.back();
    watcher.set_rank(rank);
    watch_.set_waiting(watcher, true);
    verify();
    return watcher;
  }
  void leave(Watcher &watcher) {
    watch_.set_waiting(watcher, false);
    verify();
  }
  void verify() const { EXPECT_STREQ(watch_.check(), nullptr); }

  static Seen foreign(int64_t pttl_ms = 30'000) { return {.pttl_ms = pttl_ms, .is_foreign = true}; }
  static Seen ours(int64_t pttl_ms = 30'000) { return {.pttl_ms = pttl_ms}; }
  static Seen readers(int64_t pttl_ms = 30'000) { return {.pttl_ms = pttl_ms, .is_shared = true}; }
  static Seen left_to_others(int64_t pttl_ms = 150) {
    return {.pttl_ms = pttl_ms, .is_left_to_others = true};
  }

  // What the client does with a refusal. @return in how long the waiter polls.
  Nanos refuse(Watcher &watcher, const Seen &seen) {
    const Step step = watch_.on_refused(watcher, seen, now_, abilities_);
    EXPECT_EQ(step.recheck_id, 0u) << "the waiter has asked just now";
    verify();
    if (step.command == Command::kTrack && can_send_) {
      EXPECT_TRUE(abilities_.can_track) << "the server cannot";
      watch_.sent(watcher, now_);
      track_count_++;
      verify();
    }
    return watch_.poll_delay(watcher, seen, abilities_, random_);
  }
  Step change() {
    const Step step = watch_.on_changed(now_);
    EXPECT_EQ(step.command, Command::kNone);
    EXPECT_FALSE(watch_.is_tracked()) << "the server reports once";
    verify();
    return step;
  }

  KeyWatch watch_;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  KeyWatch::Abilities abilities_{.can_track = true, .is_push_trusted = true};
  Entropy random_{7};
  Nanos now_ = 1'000 * kMs;
  bool can_send_ = true;
  int track_count_ = 0;
};

// ---- tracking

TEST_F(KeyWatchTest, key_of_a_foreign_holder_is_tracked_and_its_change_is_rechecked) {
  Watcher &head = waiter(1, 0);
  refuse(head, foreign());
  EXPECT_TRUE(watch_.is_tracked());
  const Step step = change();
  EXPECT_EQ(step.recheck_id, 1u);
  EXPECT_EQ(step.recheck_at, now_);
  EXPECT_EQ(change().recheck_id, 0u) << "until it is tracked again";
  refuse(head, foreign());
  EXPECT_EQ(track_count_, 2);
}

TEST_F(KeyWatchTest, key_of_a_holder_that_notifies_is_not_tracked) {
  Watcher &head = waiter(1, 0);
  refuse(head, ours());
  refuse(head, readers());
  EXPECT_EQ(track_count_, 0);
  EXPECT_EQ(change().recheck_id, 0u);
}

TEST_F(KeyWatchTest, key_is_tracked_once_for_all_waiters) {
  Watcher &second = waiter(2, 1);
  Watcher &third = waiter(3, 2);
  refuse(second, foreign());
  refuse(third, foreign());
  EXPECT_EQ(track_count_, 1);
  EXPECT_EQ(change().recheck_id, 2u);
}

TEST_F(KeyWatchTest, waiter_with_the_best_rank_rechecks_a_changed_key) {
  refuse(waiter(1, 5), foreign());
  refuse(waiter(2, 3), foreign());
  refuse(waiter(3, 4), foreign());
  EXPECT_EQ(track_count_, 1);
  const Step step = change();
  EXPECT_EQ(step.recheck_id, 2u);
  EXPECT_EQ(step.recheck_at, now_ + timing::poll_spacing(3)) << "a live head would be first";
}

TEST_F(KeyWatchTest, tracking_outlives_the_waiter_that_started_it) {
  Watcher &head = waiter(1, 0);
  waiter(7, 3);
  waiter(5, 2);
  waiter(6, 2);
  refuse(head, foreign());
  leave(head);
  EXPECT_TRUE(watch_.is_tracked());
  EXPECT_EQ(change().recheck_id, 5u) << "the foremost, and of two the older";
}

TEST_F(KeyWatchTest, tracking_without_waiters_ends_with_the_next_report) {
  Watcher &only = waiter(1, 0);
  refuse(only, foreign());
  leave(only);
  EXPECT_EQ(watch_.watcher_count(), 0u);
  EXPECT_EQ(change().recheck_id, 0u);
  refuse(waiter(2, 0), foreign());
  EXPECT_EQ(change().recheck_id, 2u);
}

TEST_F(KeyWatchTest, next_waiter_uses_tracking_that_is_already_on) {
  Watcher &gone = waiter(1, 0);
  refuse(gone, foreign());
  leave(gone);
  Watcher &next = waiter(2, 4);
  refuse(next, foreign());
  EXPECT_EQ(track_count_, 1);
  EXPECT_EQ(change().recheck_id, 2u);
}

TEST_F(KeyWatchTest, recheck_uses_the_current_rank_of_the_waiter) {
  Watcher &far = waiter(1, 9);
  refuse(far, foreign());
  far.set_rank(0);
  EXPECT_EQ(change().recheck_at, now_);
}

TEST_F(KeyWatchTest, disconnect_ends_the_tracking) {
  Watcher &head = waiter(1, 0);
  refuse(head, foreign());
  watch_.on_disconnected();
  EXPECT_EQ(change().recheck_id, 0u);
  refuse(head, foreign());
  EXPECT_EQ(track_count_, 2);
}

TEST_F(KeyWatchTest, key_is_not_tracked_without_memory_or_the_right_to_track) {
  Watcher &head = waiter(1, 0);
  can_send_ = false;
  refuse(head, foreign());
  EXPECT_FALSE(watch_.is_tracked());
  can_send_ = true;
  abilities_.can_track = false;
  refuse(head, foreign());
  EXPECT_FALSE(watch_.is_tracked());
  EXPECT_EQ(track_count_, 0);
}

TEST_F(KeyWatchTest, key_deleted_before_tracking_began_is_rechecked_at_once) {
  Watcher &head = waiter(1, 0);
  refuse(head, foreign());
  EXPECT_EQ(watch_.on_key_found(head, true, now_).recheck_id, 0u);
  EXPECT_TRUE(watch_.is_tracked());
  EXPECT_EQ(watch_.on_key_found(head, false, now_).recheck_id, 1u);
  EXPECT_FALSE(watch_.is_tracked());
}

TEST_F(KeyWatchTest, only_the_head_tracks_a_key_left_free_for_other_libraries) {
  Watcher &head = waiter(1, 0);
  Watcher &second = waiter(2, 1);
  refuse(second, left_to_others());
  EXPECT_EQ(track_count_, 0);
  refuse(head, left_to_others());
  EXPECT_EQ(track_count_, 1);
  EXPECT_EQ(watch_.on_key_found(head, false, now_).recheck_id, 0u) << "it is known to be free";
  EXPECT_EQ(change().recheck_id, 1u) << "another library took it";
}

// ---- a thousand waiters do not all ask at each release

TEST_F(KeyWatchTest, waiter_behind_the_head_pauses_tracking_after_a_report) {
  Watcher &far = waiter(1, 100);
  refuse(far, foreign());
  change();
  const Nanos quiet_until = now_ + timing::quiet_of(100);
  now_ = quiet_until - 1;
  refuse(far, foreign());
  EXPECT_EQ(track_count_, 1);
  now_ = quiet_until;
  refuse(far, foreign());
  EXPECT_EQ(track_count_, 2);
}

TEST_F(KeyWatchTest, head_never_pauses_tracking) {
  Watcher &head = waiter(1, 0);
  for (int i = 1; i <= 3; i++) {
    refuse(head, foreign());
    EXPECT_EQ(track_count_, i);
    change();
  }
}

TEST_F(KeyWatchTest, new_connection_ends_the_pause_of_tracking) {
  Watcher &far = waiter(1, 1'000);
  refuse(far, foreign());
  watch_.on_disconnected();
  refuse(far, foreign());
  EXPECT_EQ(track_count_, 1);
  far.on_connected();
  refuse(far, foreign());
  EXPECT_EQ(track_count_, 2);
}

// ---- polling

TEST_F(KeyWatchTest, head_polls_a_foreign_holder_with_growing_pauses) {
  Watcher &head = waiter(1, 0);
  Nanos most = 0;
  for (const Nanos step : {10, 20, 40, 80, 160, 250, 250}) {
    const Nanos delay = refuse(head, foreign());
    EXPECT_GE(delay, step * kMs / 2);
    EXPECT_LE(delay, step * kMs);
    most = std::max(most, delay);
  }
  EXPECT_LE(most, kLongestForeignPoll);
}

TEST_F(KeyWatchTest, poll_pauses_restart_with_the_next_holder) {
  Watcher &head = waiter(1, 0);
  for (int i = 0; i < 6; i++) refuse(head, foreign());
  EXPECT_EQ(refuse(head, ours(5'000)), 5'001 * kMs);
  EXPECT_LE(refuse(head, foreign()), 10 * kMs);
}

TEST_F(KeyWatchTest, poll_pause_ends_with_the_ttl_of_a_foreign_holder) {
  Watcher &head = waiter(1, 0);
  for (int i = 0; i < 6; i++) refuse(head, foreign());
  EXPECT_LE(refuse(head, foreign(3)), 4 * kMs);
}

TEST_F(KeyWatchTest, waiter_behind_the_head_relies_on_tracking_reports) {
  Watcher &second = waiter(1, 1);
  EXPECT_EQ(refuse(second, foreign()), timing::poll_past_head(1)) << "the head may be dead";
  abilities_.can_track = false;
  EXPECT_LE(refuse(second, foreign()), 10 * kMs + timing::quiet_of(1)) << "nothing is reported";
}

TEST_F(KeyWatchTest, poll_interval_without_tracking_grows_with_the_rank) {
  abilities_.can_track = false;
  Nanos before = 0;
  for (const int64_t rank : {0, 5, 10, 20}) {
    Watcher &watcher = waiter(static_cast<uint64_t>(rank) + 1, rank);
    Nanos least = kNever;
    for (int i = 0; i < 8; i++) least = std::min(least, refuse(watcher, foreign()));
    EXPECT_GE(least, timing::quiet_of(rank));
    EXPECT_GE(least, before);
    before = least;
  }
}

TEST_F(KeyWatchTest, holder_that_notifies_is_polled_when_its_lease_may_have_expired) {
  EXPECT_EQ(refuse(waiter(1, 0), ours(2'000)), 2'001 * kMs);
  EXPECT_EQ(refuse(waiter(2, 10), ours(2'000)), timing::poll_delay(2'000, 10));
  EXPECT_EQ(refuse(waiter(3, 0), ours(-1)), 15'000 * kMs) << "a key without an expiry";
}

TEST_F(KeyWatchTest, every_holder_is_polled_if_messages_do_not_arrive) {
  abilities_.is_push_trusted = false;
  for (const int64_t rank : {0, 7}) {
    Watcher &watcher = waiter(static_cast<uint64_t>(rank) + 1, rank);
    for (int i = 0; i < 8; i++) EXPECT_LE(refuse(watcher, ours()), kLongestForeignPoll);
  }
}

TEST_F(KeyWatchTest, waiters_behind_readers_poll_in_case_the_head_is_dead) {
  EXPECT_EQ(refuse(waiter(1, 1), readers()), timing::poll_past_head(1));
  EXPECT_EQ(refuse(waiter(2, 3), readers()), timing::poll_past_head(3));
  EXPECT_EQ(refuse(waiter(3, 3), ours()), timing::kLongestPoll) << "a writer's release skips them";
}

TEST_F(KeyWatchTest, head_polls_during_a_turn_only_without_tracking) {
  Watcher &head = waiter(1, 0);
  EXPECT_EQ(refuse(head, left_to_others(150)), 151 * kMs);
  abilities_.can_track = false;
  EXPECT_LE(refuse(head, left_to_others(150)), 10 * kMs);
}

// ---- the waiters

TEST_F(KeyWatchTest, waiting_and_leaving_are_idempotent) {
  Watcher &watcher = waiter(1, 0);
  watch_.set_waiting(watcher, true);
  EXPECT_EQ(watch_.watcher_count(), 1u);
  leave(watcher);
  leave(watcher);
  EXPECT_EQ(watch_.watcher_count(), 0u);
}

TEST_F(KeyWatchTest, waiters_leave_in_any_order) {
  std::mt19937 order(3);
  for (int round = 0; round < 50; round++) {
    std::vector<Watcher *> all;
    for (uint64_t id = 1; id <= 8; id++) {
      all.push_back(&waiter(id + 8 * static_cast<uint64_t>(round), static_cast<int64_t>(id)));
    }
    refuse(*all.back(), foreign());
    std::shuffle(all.begin(), all.end(), order);
    while (!all.empty()) {
      leave(*all.back());
      all.pop_back();
      ASSERT_EQ(watch_.watcher_count(), all.size());
    }
    ASSERT_EQ(change().recheck_id, 0u);
    watchers_.clear();
  }
}

// Waiters come and go at random.
TEST_F(KeyWatchTest, change_always_reaches_a_waiter) {
  int recheck_count = 0;
  for (unsigned seed = 1; seed <= 200 && !HasFailure(); seed++) {
    SCOPED_TRACE(seed);
    std::mt19937 dice(seed);
    watch_ = KeyWatch();
    watchers_.clear();
    std::vector<Watcher *> waiting;
    std::map<const Watcher *, uint64_t> ids;
    for (uint64_t id = 1; id <= 100; id++) {
      now_ += static_cast<Nanos>(dice() % 50) * kMs;
      const auto what = dice() % 10;
      if (what < 4) {
        waiting.push_back(&waiter(id, static_cast<int64_t>(dice() % 6)));
        ids[waiting.back()] = id;
        refuse(*waiting.back(), foreign());
      } else if (what < 6 && !waiting.empty()) {
        std::swap(waiting[dice() % waiting.size()], waiting.back());
        leave(*waiting.back());
        waiting.pop_back();
      } else if (what < 8 && !waiting.empty()) {
        refuse(*waiting[dice() % waiting.size()], dice() % 4 == 0 ? ours() : foreign());
      } else if (what == 8) {
        watch_.on_disconnected();
        for (Watcher *watcher : waiting) watcher->on_connected();
      } else {
        const bool was_tracked = watch_.is_tracked();
        const Step step = change();
        if (!was_tracked || waiting.empty()) {
          ASSERT_EQ(step.recheck_id, 0u);
          continue;
        }
        recheck_count++;
        const bool waits = std::any_of(waiting.begin(), waiting.end(), [&](const Watcher *each) {
          return ids[each] == step.recheck_id;
        });
        ASSERT_TRUE(waits) << "a change is lost: " << step.recheck_id;
        ASSERT_LE(step.recheck_at, now_ + timing::poll_spacing(5));
      }
    }
    for (Watcher *watcher : waiting) leave(*watcher);
  }
  EXPECT_GT(recheck_count, 100);
}

}  // namespace
}  // namespace redlatch::lock
