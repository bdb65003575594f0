// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: beside other libraries on the same key: who looks when theirs goes, and when they have
// turns. Method: a client with made replies and a fake clock.
#include "lock_client_world.h"

namespace redlatch {

class ForeignTest : public LockClientWorld {
 protected:
  ForeignTest() { connect(); }
};

TEST_F(ForeignTest, head_polls_when_a_foreign_holder_releases_the_key) {
  connect_with_tracking();
  const auto request = acquire();
  reply_queued(30'000, 0, "some-other-library");
  ASSERT_EQ(sent_.size(), 3u);  // CLIENT TRACKING, CLIENT CACHING, EXISTS
  for (int i = 0; i < 2; i++) reply(MadeReply::text("OK"));
  EXPECT_EQ(sent_.front()[0], "EXISTS");
  reply(MadeReply::integer(1));
  client_->on_invalidated(0, "other", now_);
  EXPECT_EQ(next_script(), "");
  client_->on_invalidated(0, "lock", now_);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(ForeignTest, key_deleted_before_tracking_began_is_polled_at_once) {
  connect_with_tracking();
  acquire();
  reply_queued(30'000, 0, "some-other-library");
  for (int i = 0; i < 2; i++) reply(MadeReply::text("OK"));
  reply(MadeReply::integer(0));
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(ForeignTest, head_tracks_a_turn_of_another_library_without_polling) {
  connect_with_tracking();
  lock::AcquireOptions options;
  options.yield_every = 1;
  acquire(-1, options);
  reply_queued(150, 0, "", "none");
  for (int i = 0; i < 2; i++) reply(MadeReply::text("OK"));
  reply(MadeReply::integer(0));
  EXPECT_EQ(next_script(), "") << "that the key is free is no news";
  client_->on_invalidated(0, "lock", now_);
  EXPECT_EQ(next_script(), "acquire");
}

// Who in front is dead is not known: the first one alive must not learn of it by its own timer.
TEST_F(ForeignTest, waiter_behind_the_head_polls_a_little_after_a_foreign_release) {
  connect_with_tracking();
  const auto request = acquire();
  reply_queued(30'000, 7, "some-other-library");
  ASSERT_EQ(sent_.size(), 3u);  // CLIENT TRACKING, CLIENT CACHING, EXISTS
  for (int i = 0; i < 2; i++) reply(MadeReply::text("OK"));
  reply(MadeReply::integer(1));
  client_->on_invalidated(0, "lock", now_);
  advance(6 * kMs);
  EXPECT_EQ(next_script(), "") << "the head comes first";
  advance(kMs);
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
}

// One call drops as many of the dead as it looks at.
TEST_F(ForeignTest, release_sends_the_number_of_local_holders) {
  const auto first = acquire();
  const auto second = acquire();
  reply_granted();
  release(first->lease);
  ASSERT_EQ(second->status.load(), Status::kOk) << "it passes on";
  while (next_script() == "acquire") reply_queued();
  release(second->lease);
  while (next_script() == "cancel") reply_count("cancel", 1);
  ASSERT_EQ(next_script(), "release");
  EXPECT_EQ(argument(2), "-1");
  EXPECT_EQ(argument(3), "150");
  EXPECT_EQ(argument(4), "2");
}

TEST_F(ForeignTest, yield_every_of_one_prevents_local_hand_offs) {
  lock::AcquireOptions options;
  options.yield_every = 1;
  const auto first = acquire(-1, options);
  const auto second = acquire(-1, options);
  reply_granted();
  release(first->lease);
  EXPECT_EQ(second->status.load(), Status::kPending);
}

TEST_F(ForeignTest, refused_tracking_is_not_retried) {
  connect_with_tracking();
  acquire();
  reply_queued(30'000, 0, "some-other-library");
  for (int i = 0; i < 3; i++) reply(MadeReply::error("NOPERM no"));
  advance(20 * kMs);
  reply_queued(30'000, 0, "some-other-library");
  EXPECT_EQ(next_script(), "");
}

}  // namespace redlatch
