// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The client: a lease goes from one client to another.
#include "lock_client_world.h"

namespace redlatch {

class AttachingTest : public LockClientWorld {
 protected:
  static constexpr std::string_view kToken = "aaaaaaaaaaaaaaaaaaaaaA0123456789";

  AttachingTest() { connect(); }

  RequestPtr attach() {
    auto request = std::make_shared<Request>(Request::Op::kAttach);
    request->name = "lock";
    request->arguments->token = kToken;
    request->lease = std::make_shared<Lease>();
    client_->start(request, now_);
    return request;
  }
  void reply_attached(int64_t result, int64_t attach_count = 2) {
    reply_count("attach", result, attach_count);
  }
};

TEST_F(AttachingTest, detached_lease_is_neither_renewed_nor_released) {
  const auto lease = held();
  const auto request = detach(lease);
  EXPECT_EQ(argument(0), lease->token);
  EXPECT_EQ(argument(1), "0");
  reply_count("detach", 1);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(state(lease), Lease::kDetached);
  EXPECT_EQ(ended_count_, 1);
  EXPECT_TRUE(client_->is_idle());
  advance(60'000 * kMs);
  EXPECT_EQ(next_script(), "");
  EXPECT_EQ(release(lease)->status.load(), Status::kNotHeld);
}

TEST_F(AttachingTest, lease_is_no_longer_held_once_detach_is_sent) {
  const auto lease = held();
  detach(lease);
  EXPECT_EQ(state(lease), Lease::kDetached);
  EXPECT_EQ(release(lease)->status.load(), Status::kNotHeld);
  EXPECT_EQ(extend(lease, 5'000 * kMs)->status.load(), Status::kNotHeld);
  EXPECT_EQ(detach(lease)->status.load(), Status::kNotHeld);
  client_->release_async(*lease, now_);
  ASSERT_EQ(sent_.size(), 1u);
  advance(1'900 * kMs);
  EXPECT_EQ(sent_.size(), 1u) << "nothing about its token is sent behind it";
}

TEST_F(AttachingTest, detach_of_a_lease_that_the_server_does_not_have_is_a_loss) {
  const auto lease = held();
  const auto request = detach(lease);
  reply_count("detach", 0);
  EXPECT_EQ(request->status.load(), Status::kLost);
  EXPECT_EQ(state(lease), Lease::kLost);
  advance(60'000 * kMs);
  EXPECT_EQ(next_script(), "") << "its token may be another client's: it is not released";
}

TEST_F(AttachingTest, refused_detach_leaves_the_lease_held) {
  const auto lease = held();
  const auto request = detach(lease);
  reply(MadeReply::error("NOPERM this user has no permissions"));
  EXPECT_EQ(request->status.load(), Status::kDenied);
  EXPECT_EQ(state(lease), Lease::kHeld);
  EXPECT_EQ(ended_count_, 0);
  advance(10'000 * kMs);
  EXPECT_EQ(next_script(), "extend");
  release(lease);
  reply_count("extend", 1);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(AttachingTest, refused_detach_of_an_abandoned_lease_releases_it) {
  const auto lease = held();
  detach(lease);
  client_->release_async(*lease, now_);
  reply(MadeReply::error("NOPERM this user has no permissions"));
  EXPECT_EQ(next_script(), "release");
  EXPECT_EQ(state(lease), Lease::kReleased);
}

TEST_F(AttachingTest, detach_with_an_unknown_script_is_sent_as_text) {
  const auto lease = held();
  const auto request = detach(lease);
  reply(MadeReply::error("NOSCRIPT No matching script."));
  EXPECT_EQ(state(lease), Lease::kDetached);
  ASSERT_EQ(next_script(), "detach text");
  reply_count("detach text", 1);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(AttachingTest, detach_without_an_answer_is_sent_again) {
  const auto lease = held();
  const auto request = detach(lease);
  disconnect();
  EXPECT_EQ(request->status.load(), Status::kPending);
  EXPECT_EQ(state(lease), Lease::kDetached);
  connect();
  ASSERT_EQ(next_script(), "detach");
  // The first copy was carried out, and the lease attached since.
  reply_count("detach", 2);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(sent_.size(), 0u);
}

TEST_F(AttachingTest, failed_detach_that_was_repeated_does_not_release) {
  for (const bool is_refused : {false, true}) {
    const auto lease = held();
    const auto request = detach(lease);
    reconnect();
    if (is_refused) reply(MadeReply::error("OOM command not allowed"));
    if (!is_refused) reply_count("detach", 0);
    EXPECT_LT(static_cast<int>(request->status.load()), 0);
    EXPECT_EQ(state(lease), Lease::kDetached);
    advance(60'000 * kMs);
    EXPECT_EQ(next_script(), "");
  }
}

TEST_F(AttachingTest, unanswered_detach_has_an_unknown_outcome_and_does_not_release) {
  const auto lease = held();
  const auto request = detach(lease);
  advance(settings_.command_timeout);
  EXPECT_EQ(request->status.load(), Status::kOutcomeUnknown);
  EXPECT_EQ(state(lease), Lease::kDetached);
  EXPECT_EQ(ended_count_, 1);
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(AttachingTest, detach_that_cannot_be_sent_leaves_the_lease_held) {
  const auto lease = held();
  disconnect();
  const auto request = detach(lease);
  EXPECT_EQ(state(lease), Lease::kHeld);
  EXPECT_EQ(client_->cancel(*request, now_), Status::kCancelled);
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(AttachingTest, only_one_of_two_detaches_is_sent) {
  const auto lease = held();
  disconnect();
  const auto first = detach(lease);
  const auto second = detach(lease);
  connect();
  EXPECT_EQ(second->status.load(), Status::kNotHeld);
  ASSERT_EQ(next_script(), "extend");  // of the new connection, for what is held
  reply_count("extend", 1);
  reply_count("detach", 1);
  EXPECT_EQ(first->status.load(), Status::kOk);
  EXPECT_EQ(sent_.size(), 0u);
}

TEST_F(AttachingTest, shutdown_does_not_release_a_lease_that_is_being_detached) {
  const auto lease = held();
  const auto request = detach(lease);
  client_->shut_down(now_);
  EXPECT_EQ(request->status.load(), Status::kClosed);
  EXPECT_EQ(state(lease), Lease::kDetached);
  EXPECT_EQ(sent_.size(), 1u) << "no release";
  EXPECT_EQ(1U, client_->drained_count());
}

TEST_F(AttachingTest, pushed_grant_for_a_detached_token_releases_nothing) {
  auto options = with_lease(30'000 * kMs);
  const auto request = acquire(-1, options);
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);
  ASSERT_EQ(request->status.load(), Status::kOk);
  detach(request->lease);
  push_grant(token);
  reply_count("detach", 1);
  push_grant(token);
  EXPECT_EQ(sent_.size(), 0u);
}

TEST_F(AttachingTest, late_answer_to_an_extension_before_detach_releases_nothing) {
  const auto lease = held();
  const auto extension = extend(lease, 100 * kMs);
  const auto request = detach(lease);
  now_ += 200 * kMs;
  reply_count("extend", 1);  // of a lease that has ended since
  EXPECT_EQ(extension->status.load(), Status::kNotHeld);
  reply_count("detach", 1);
  EXPECT_EQ(request->status.load(), Status::kOk);
  advance(60'000 * kMs);
  EXPECT_EQ(next_script(), "");
}

TEST_F(AttachingTest, downgrade_is_not_repeated_after_a_detach_that_succeeds) {
  for (const bool is_refused : {false, true}) {
    const auto lease = held();
    const auto down = downgrade(lease);
    detach(lease);
    ASSERT_EQ(client_->cancel(*down, now_), Status::kCancelled);
    EXPECT_EQ(sent_.size(), 2u) << "its token may be another client's writer";
    reply_count("downgrade", 1);
    if (!is_refused) reply_count("detach", 1);
    if (is_refused) reply(MadeReply::error("NOPERM this user has no permissions"));
    EXPECT_EQ(next_script(), is_refused ? "downgrade" : "");
  }
}

TEST_F(AttachingTest, upgrade_ends_when_detach_is_sent_and_not_before) {
  lock::AcquireOptions options;
  options.mode = protocol::Mode::kRead;
  const auto lease = held(options);
  const auto upgrading = upgrade(lease);
  reply_queued(20'000, 0, "rl:shared");
  disconnect();
  const auto request = detach(lease);
  EXPECT_EQ(upgrading->status.load(), Status::kPending);
  connect();
  EXPECT_EQ(upgrading->status.load(), Status::kNotHeld);
  EXPECT_EQ(state(lease), Lease::kDetached);
  EXPECT_EQ(request->status.load(), Status::kPending);
}

TEST_F(AttachingTest, place_opened_by_a_poll_that_crossed_is_cancelled_after_a_detach) {
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued(2'000);
  advance(2'001 * kMs);
  ASSERT_EQ(next_script(), "acquire");
  push_grant(token);  // crosses the poll
  ASSERT_EQ(request->status.load(), Status::kOk);
  detach(request->lease);
  reply_queued(3'000, 0);  // the poll put the token back into the queue
  reply_count("detach", 1);
  ASSERT_EQ(next_script(), "cancel");
  reply_count("cancel", 2);  // its token has the lock, which is another client's now
  EXPECT_EQ(sent_.size(), 0u);
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(AttachingTest, detach_leaves_other_waiters_in_the_queue) {
  const auto lease = held();
  const auto other = acquire();
  reply_queued();
  detach(lease);
  reply_count("detach", 1);
  EXPECT_EQ(other->status.load(), Status::kPending);
  EXPECT_EQ(sent_.size(), 0u);
}

TEST_F(AttachingTest, attached_reader_also_extends_its_own_key) {
  const auto request = attach();
  reply_attached(2);
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->lease->mode.load(), protocol::Mode::kRead);
  advance(10'000 * kMs);
  ASSERT_EQ(next_script(), "extend_shared");
  EXPECT_EQ(sent_.front().at(2), "3") << "K, R and I";
}

TEST_F(AttachingTest, lease_that_was_not_detached_is_not_attached) {
  for (const int64_t result : {0, -1}) {
    const auto request = attach();
    reply_attached(result, 0);
    EXPECT_EQ(request->status.load(), Status::kNotHeld);
    EXPECT_NE(request->message.find(result == 0 ? "not held by" : "not detached"),
              std::string::npos);
  }
}

TEST_F(AttachingTest, repeated_attach_keeps_its_id_and_the_next_has_a_new_one) {
  attach();
  const std::string name = argument(2);
  EXPECT_EQ(name.size(), protocol::kTokenSize);
  reconnect();
  ASSERT_EQ(next_script(), "attach");
  EXPECT_EQ(argument(2), name);
  reply_attached(0, 0);
  attach();
  EXPECT_NE(argument(2), name);
}

TEST_F(AttachingTest, shutdown_waits_until_an_unwanted_attach_is_undone) {
  const auto cancelled = attach();
  ASSERT_EQ(client_->cancel(*cancelled, now_), Status::kCancelled);
  const auto pending = attach();
  client_->shut_down(now_);
  EXPECT_EQ(pending->status.load(), Status::kClosed);
  EXPECT_EQ(0U, client_->drained_count());
  reply_attached(1, 4);
  reply_attached(0, 0);  // has taken nothing over
  EXPECT_EQ(0U, client_->drained_count());
  EXPECT_EQ(argument(1), "4");
  reply(MadeReply::error("NOSCRIPT No matching script."));
  EXPECT_EQ(0U, client_->drained_count());
  reply_count("detach text", 1);
  EXPECT_EQ(1U, client_->drained_count());
  EXPECT_EQ(sent_.size(), 0u);
}

TEST_F(AttachingTest, shutdown_undoes_a_pending_attach) {
  attach();
  client_->shut_down(now_);
  reply_attached(1);
  ASSERT_EQ(next_script(), "detach");
  disconnect();
  EXPECT_EQ(1U, client_->drained_count()) << "its lease ends with its ttl";
}

TEST_F(AttachingTest, detach_sends_the_attach_count_of_the_lease) {
  const auto request = attach();
  reply_attached(1, 4);
  detach(request->lease);
  ASSERT_EQ(next_script(), "detach");
  EXPECT_EQ(argument(1), "4");
}

}  // namespace redlatch
