// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the primary is left at the first news from any sentinel, once, and never for old news;
// sentinels that cannot be reached are dialled less and less often, a few at a time.
// Method: replies made by hand; check() after every step.
#include "sentinel/primary_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lock_client_world.h"

namespace redlatch::sentinel {
namespace {

constexpr Nanos kSecond = 1000 * kMs;
const HostPort kA{"10.0.0.1", "6379"}, kB{"10.0.0.2", "6379"}, kC{"10.0.0.3", "6379"};

class PrimaryWatchTest : public ::testing::Test {
 protected:
  PrimaryWatchTest() { name_sentinels(3); }

  void name_sentinels(int count) {
    settings_.sentinel.primary_name = "main";
    settings_.sentinel.addresses.clear();
    for (int i = 1; i <= count; i++) {
      settings_.sentinel.addresses.push_back({"s" + std::to_string(i), "26379"});
    }
  }
  Send send() {
    return [this](std::span<const std::string_view>) { sent_count_++; };
  }
  void check() { ASSERT_STREQ(watch_.check(), nullptr); }
  // A discovery has found it.
  bool found(const HostPort &primary, int64_t epoch) {
    Knowledge found = watch_.known();
    found.primary = primary;
    Opinion opinion{{"s1", "26379"}, primary, epoch, false};
    const bool is_believed = watch_.on_found(std::move(found), opinion);
    check();
    return is_believed;
  }
  void use(const HostPort &primary, int64_t epoch) {
    watch_.begin_discovery();
    ASSERT_TRUE(found(primary, epoch));
  }
  std::optional<Opinion> take(size_t number, const MadeReply &made, bool is_push) {
    Reply reply = made.get();
    if (is_push) reply.kind = Reply::Kind::kPush;
    auto news = watch_.on_reply(number, reply, send(), now_ += kMs);
    check();
    return news;
  }
  void subscribe(size_t number) {
    watch_.on_dialled(number, watch_.settings_of(number), send(), now_);
    take(number, MadeReply::list(MadeReply::text("mode"), MadeReply::text("sentinel")), false);
    for (const char *channel : {"+promoted-slave", "+switch-master"}) {
      take(number,
           MadeReply::list(MadeReply::text("subscribe"), MadeReply::text(channel),
                           MadeReply::integer(1)),
           true);
    }
  }
  std::optional<Opinion> answer(size_t number, const HostPort &primary, int64_t epoch) {
    const std::string text = std::to_string(epoch);
    take(number, MadeReply::list(MadeReply::text("config-epoch"), MadeReply::text(text)), false);
    return take(number,
                MadeReply::list(MadeReply::text(primary.host), MadeReply::text(primary.port)),
                false);
  }
  // All three are heard, and name kA.
  void watch_all(int64_t epoch) {
    for (size_t i = 0; i < 3; i++) {
      ASSERT_EQ(watch_.begin_dial(now_), i);
      subscribe(i);
      ASSERT_FALSE(answer(i, kA, epoch));
    }
    EXPECT_FALSE(watch_.begin_dial(now_));
  }
  std::optional<Opinion> switched(size_t number, const HostPort &from, const HostPort &to) {
    return take(number,
                MadeReply::list(MadeReply::text("message"), MadeReply::text("+switch-master"),
                                MadeReply::text("main " + from.host + " " + from.port + " " +
                                                to.host + " " + to.port)),
                true);
  }
  std::optional<Opinion> promoted(size_t number, const HostPort &to) {
    return take(number,
                MadeReply::list(MadeReply::text("message"), MadeReply::text("+promoted-slave"),
                                MadeReply::text("slave " + to.text() + " " + to.host + " " +
                                                to.port + " @ main 10.0.0.1 6379")),
                true);
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  int sent_count_ = 0;
  PrimaryWatch watch_{settings_};
};

TEST_F(PrimaryWatchTest, the_first_reported_failover_ends_the_primary_once) {
  use(kA, 3);
  watch_all(3);
  EXPECT_TRUE(switched(2, kA, kB)) << "the last of the URL";
  EXPECT_EQ(watch_.known().left, kA);
  EXPECT_EQ(watch_.known().first, (HostPort{"s3", "26379"}));
  EXPECT_FALSE(switched(1, kA, kB));
  EXPECT_FALSE(answer(2, kB, 4));
  EXPECT_EQ(watch_.known().epoch, 4);
  use(kB, 4);
  EXPECT_FALSE(answer(1, kB, 4));
  EXPECT_FALSE(switched(0, kA, kB)) << "the leader is seconds late";
  EXPECT_FALSE(answer(0, kB, 4));
}

TEST_F(PrimaryWatchTest, a_promotion_ends_the_primary) {
  use(kA, 3);
  watch_all(3);
  watch_.begin_discovery();
  EXPECT_TRUE(promoted(0, kB));
  EXPECT_FALSE(found(kA, 3)) << "what a discovery found that had not heard of it";
  watch_.begin_discovery();
  EXPECT_TRUE(found(kB, 4));
  EXPECT_FALSE(switched(1, kA, kB));
}

TEST_F(PrimaryWatchTest, a_greater_epoch_in_an_answer_ends_the_primary) {
  use(kA, 3);
  watch_all(3);
  now_ += 3 * kSecond;
  const int count = sent_count_;
  watch_.on_timer(1, send(), now_);
  EXPECT_EQ(sent_count_, count + 2);
  EXPECT_TRUE(answer(1, kB, 4));
  EXPECT_EQ(watch_.known().left_epoch, 3);
}

TEST_F(PrimaryWatchTest, an_answer_with_an_older_epoch_is_ignored) {
  use(kB, 4);
  ASSERT_EQ(watch_.begin_dial(now_), 0u);
  subscribe(0);
  EXPECT_FALSE(answer(0, kA, 3)) << "it is behind";
  EXPECT_FALSE(answer(0, kA, 3));
  EXPECT_EQ(watch_.known().epoch, 4);
  EXPECT_FALSE(switched(0, kA, kC)) << "of an earlier failover, perhaps: its answer decides";
  EXPECT_FALSE(answer(0, kC, 4)) << "another one of this epoch: a discovery will say so";
  EXPECT_TRUE(switched(0, kC, kA)) << "it is not behind now";
}

TEST_F(PrimaryWatchTest, a_late_message_of_an_earlier_failover_is_ignored) {
  use(kA, 3);
  watch_all(3);
  EXPECT_TRUE(switched(1, kA, kB));
  EXPECT_FALSE(answer(1, kB, 4));
  use(kB, 4);
  EXPECT_TRUE(switched(1, kB, kA));
  EXPECT_FALSE(answer(1, kA, 5));
  use(kA, 5);
  EXPECT_FALSE(switched(2, kA, kB)) << "of the failover before";
  EXPECT_FALSE(answer(2, kB, 4));
  EXPECT_FALSE(switched(2, kB, kA));
}

TEST_F(PrimaryWatchTest, sentinels_with_epoch_zero_are_watched) {
  use(kA, 7);
  use(kA, 0);
  watch_all(0);
  EXPECT_TRUE(switched(0, kA, kB));
}

TEST_F(PrimaryWatchTest, a_sentinel_without_a_readable_epoch_is_believed) {
  use(kA, -1);
  ASSERT_EQ(watch_.begin_dial(now_), 0u);
  subscribe(0);
  take(0, MadeReply::error("NOPERM"), false);
  take(0, MadeReply::list(MadeReply::text(kA.host), MadeReply::text(kA.port)), false);
  EXPECT_TRUE(switched(0, kA, kB));
}

TEST_F(PrimaryWatchTest, an_unreachable_sentinel_is_dialled_with_growing_pauses) {
  ASSERT_EQ(watch_.begin_dial(now_), 0u);
  ASSERT_EQ(watch_.begin_dial(now_), 1u);
  ASSERT_EQ(watch_.begin_dial(now_), 2u);
  subscribe(1);
  Nanos last = 0;
  for (int i = 0; i < 12; i++) {
    EXPECT_FALSE(watch_.on_ended(0, now_, 0));
    Nanos pause = 0;
    for (; !watch_.begin_dial(now_ + pause); pause += kMs) ASSERT_LT(pause, 6 * kSecond);
    EXPECT_GE(pause, last);
    last = pause;
    now_ += pause;
  }
  EXPECT_EQ(last, 2500 * kMs);
  EXPECT_FALSE(watch_.on_ended(2, now_, 0));
  EXPECT_TRUE(watch_.on_ended(1, now_, 0)) << "none is heard";
  EXPECT_FALSE(watch_.on_ended(0, now_, 0)) << "that was reported";
}

TEST_F(PrimaryWatchTest, the_number_of_sentinels_dialled_at_once_is_limited) {
  name_sentinels(static_cast<int>(kMaxSentinels));
  for (size_t i = 0; i < PrimaryWatch::kMaxDials; i++) EXPECT_EQ(watch_.begin_dial(now_), i);
  EXPECT_FALSE(watch_.begin_dial(now_));
  EXPECT_EQ(watch_.next_due(true), kNever);
  watch_.on_ended(0, now_, 0);
  now_ += kSecond;
  EXPECT_EQ(watch_.begin_dial(now_), PrimaryWatch::kMaxDials) << "one that was not tried yet";
}

TEST_F(PrimaryWatchTest, sentinels_found_by_a_discovery_are_watched) {
  name_sentinels(1);
  use(kA, 3);
  EXPECT_EQ(watch_.begin_dial(now_), 0u);
  EXPECT_FALSE(watch_.begin_dial(now_));
  Knowledge more = watch_.known();
  more.others = {{"s2", "26379"}};
  watch_.on_not_found(std::move(more));
  ASSERT_EQ(watch_.begin_dial(now_), 1u);
  EXPECT_EQ(watch_.settings_of(1).host, "s2");
  subscribe(1);
  EXPECT_FALSE(watch_.is_over(1));
  Knowledge less = watch_.known();
  less.others = {{"s3", "26379"}};
  watch_.on_not_found(std::move(less));
  ASSERT_EQ(watch_.begin_dial(now_), 2u);
  EXPECT_TRUE(watch_.is_over(1)) << "it was removed";
  watch_.on_ended(1, now_, 0);
  check();
  EXPECT_FALSE(watch_.begin_dial(now_ + 10 * kSecond));
}

}  // namespace
}  // namespace redlatch::sentinel
