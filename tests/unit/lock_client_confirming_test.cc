// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a caller that wants replicas to confirm gets its lease when they have, and otherwise the
// lease is released. Method: a client with made replies and a fake clock.
#include "lock_client_world.h"

namespace redlatch {

class ConfirmingTest : public LockClientWorld {
 protected:
  static lock::AcquireOptions with_replicas(int replicas, Nanos ttl = 30'000 * kMs) {
    lock::AcquireOptions options;
    options.min_replicas = replicas;
    options.ttl = ttl;
    return options;
  }
  // A request whose grant waits for replicas: its extension and WAIT were sent.
  RequestPtr confirming(int64_t wait_ms = -1, int replicas = 2) {
    connect();
    const auto request = acquire(wait_ms, with_replicas(replicas));
    reply_granted();
    EXPECT_EQ(request->status.load(), Status::kPending) << "nothing has confirmed it yet";
    connect_side();
    EXPECT_EQ(side_sent_.size(), 2u);
    return request;
  }
  RequestPtr confirmed(int replicas = 2) {
    const auto request = confirming(-1, replicas);
    confirmed_by(replicas);
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request;
  }
  std::shared_ptr<Lease> confirmed_reader() {
    connect();
    lock::AcquireOptions options = with_replicas(1);
    options.mode = protocol::Mode::kRead;
    const auto reader = acquire(-1, options);
    reply_granted();
    connect_side();
    confirmed_by(1);
    EXPECT_EQ(reader->status.load(), Status::kOk);
    return reader->lease;
  }
  void side_is_back() {
    client_->on_side_connected(0, now_);
    advance(0);
  }
  void renew() {
    for (int i = 0; i < 110 && sent_.empty(); i++) advance(100 * kMs);
    reply_count("extend", 1);
    advance(0);
  }
};

TEST_F(ConfirmingTest, lease_is_granted_when_the_replicas_have_confirmed) {
  const auto request = confirming();
  EXPECT_EQ(script_of(side_sent_[0]), "extend");
  EXPECT_EQ(side_sent_[1], (std::vector<std::string>{"WAIT", "2", "1000"}));
  EXPECT_TRUE(request->is_queued()) << "no reply finishes it";
  side_extended();
  EXPECT_EQ(request->status.load(), Status::kPending);
  counted(2);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(state(request->lease), Lease::kHeld);
  EXPECT_FALSE(request->is_queued());
}

TEST_F(ConfirmingTest, no_second_connection_is_opened_without_min_replicas) {
  connect();
  const auto request = acquire();
  reply_granted();
  EXPECT_EQ(request->status.load(), Status::kOk);
  advance(60'000 * kMs);
  EXPECT_FALSE(client_->begin_side_connect(0, now_));
  EXPECT_TRUE(side_sent_.empty());
}

TEST_F(ConfirmingTest, too_few_replicas_release_the_lock) {
  const auto request = confirming(10'000);
  now_ += 1'000 * kMs;
  confirmed_by(1);
  EXPECT_EQ(request->status.load(), Status::kNotReplicated);
  EXPECT_EQ(request->message, "lock 'lock': 1 of 2 replicas confirmed within 1 s");
  EXPECT_NE(state(request->lease), Lease::kHeld);
  reply_count("release", 1);
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(ConfirmingTest, pushed_grant_is_confirmed_too) {
  connect();
  const auto request = acquire(-1, with_replicas(1));
  const std::string token = argument(0);
  reply_queued();
  push_grant(token);
  EXPECT_EQ(request->status.load(), Status::kPending);
  connect_side();
  confirmed_by(1);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_GT(request->lease->deadline.load(), now_ + 20'000 * kMs) << "the extension counts";
}

TEST_F(ConfirmingTest, lease_is_renewed_while_replicas_are_asked) {
  connect();
  lock::AcquireOptions options = with_replicas(1, 900 * kMs);
  options.sync_timeout = 60'000 * kMs;
  const auto request = acquire(-1, options);
  reply_granted();
  connect_side();
  side_extended();
  advance(350 * kMs);
  ASSERT_EQ(next_script(), "extend");
  reply_count("extend", 1);
  EXPECT_EQ(request->status.load(), Status::kPending);
}

TEST_F(ConfirmingTest, lease_that_the_server_has_lost_is_not_confirmed) {
  const auto request = confirming();
  side_extended(0);
  EXPECT_EQ(request->status.load(), Status::kNotReplicated);
  EXPECT_NE(request->message.find("lost before its replicas confirmed"), std::string::npos);
  counted(2);
  EXPECT_EQ(request->status.load(), Status::kNotReplicated);
}

TEST_F(ConfirmingTest, lost_connection_repeats_extension_and_wait) {
  const auto request = confirming();
  side_extended();
  disconnect_side();
  EXPECT_EQ(request->status.load(), Status::kPending) << "the outcome is not known";
  advance(1'000 * kMs);
  side_is_back();
  ASSERT_EQ(side_sent_.size(), 2u);
  EXPECT_EQ(script_of(side_sent_[0]), "extend");
  confirmed_by(2);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(ConfirmingTest, end_of_the_main_connection_ends_the_other_one) {
  const auto request = confirming();
  disconnect();
  EXPECT_TRUE(is_side_dropped_);
  confirmed_by(2);
  EXPECT_EQ(request->status.load(), Status::kPending) << "of a server that may be another one";
}

TEST_F(ConfirmingTest, connection_for_wait_that_began_before_an_outage_is_not_used) {
  connect();
  const auto request = acquire(-1, with_replicas(1));
  reply_granted();
  ASSERT_TRUE(client_->begin_side_connect(0, now_));
  disconnect();
  advance(1'000 * kMs);
  connect();
  client_->on_side_connected(0, now_);
  EXPECT_TRUE(is_side_dropped_);
  advance(0);
  EXPECT_TRUE(side_sent_.empty());
  disconnect_side();
  advance(1'000 * kMs);
  side_is_back();
  confirmed_by(1);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(ConfirmingTest, held_lease_is_confirmed_again_after_a_reconnect) {
  const auto request = confirmed();
  disconnect();
  disconnect_side();
  connect();
  reply_count("extend", 1);
  advance(1'000 * kMs);
  side_is_back();
  ASSERT_EQ(side_sent_.size(), 2u);
  now_ += 1'000 * kMs;
  confirmed_by(1);
  EXPECT_EQ(state(request->lease), Lease::kHeld) << "it is held";
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "lock 'lock' is held, but 1 of 2 replicas confirmed within 1 s: replicas are asked "
            "again with each renewal");
  renew();
  ASSERT_EQ(side_sent_.size(), 2u) << "with the renewal";
  now_ += 1'000 * kMs;
  confirmed_by(1);
  EXPECT_EQ(warnings_.size(), 1u) << "one line for each outage";
  renew();
  confirmed_by(2);
  renew();
  EXPECT_TRUE(side_sent_.empty()) << "confirmed";
}

TEST_F(ConfirmingTest, cancel_releases_the_lock) {
  const auto request = confirming();
  EXPECT_EQ(client_->cancel(*request, now_), Status::kCancelled);
  reply_count("release", 1);
  side_extended();
  counted(2);
  EXPECT_EQ(request->status.load(), Status::kCancelled);
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(ConfirmingTest, end_of_the_wait_releases_the_lock) {
  const auto request = confirming(300);
  EXPECT_EQ(side_sent_[1][2], "300") << "WAIT is no longer than the rest of the wait";
  advance(301 * kMs);
  EXPECT_EQ(request->status.load(), Status::kNotReplicated);
  EXPECT_EQ(request->message, "lock 'lock': fewer than 2 replicas confirmed within the wait");
  reply_count("release", 1);
}

TEST_F(ConfirmingTest, shutdown_answers_the_caller_and_releases) {
  const auto request = confirming();
  client_->shut_down(now_);
  EXPECT_EQ(request->status.load(), Status::kClosed);
  EXPECT_EQ(next_script(), "release");
}

TEST_F(ConfirmingTest, refused_wait_fails_the_acquire) {
  struct Row {
    const char *answer;
    Status status;
    const char *says;
  };
  for (const Row &row : {
           Row{"ERR unknown command 'WAIT'", Status::kUnsupported,
               "refused WAIT, which min_replicas needs"},
           Row{"NOPERM this user has no permissions to run the 'wait' command", Status::kDenied,
               "NOPERM"},
       }) {
    client_ = make_client();
    const auto request = confirming();
    side_extended();
    side_reply(MadeReply::error(row.answer));
    EXPECT_EQ(request->status.load(), row.status) << row.answer;
    EXPECT_NE(request->message.find(row.says), std::string::npos) << request->message;
    reply_count("release", 1);
  }
}

TEST_F(ConfirmingTest, answer_of_a_replica_ends_the_connection) {
  const auto request = confirming();
  side_reply(MadeReply::error("READONLY You can't write against a read only replica."));
  EXPECT_TRUE(is_side_dropped_);
  EXPECT_EQ(request->status.load(), Status::kServer);
}

// With min-replicas-to-write the server itself says that too few are there.
TEST_F(ConfirmingTest, a_noreplicas_error_means_not_replicated) {
  const auto request = confirming();
  side_reply(MadeReply::error("NOREPLICAS Not enough good replicas to write."));
  EXPECT_EQ(request->status.load(), Status::kNotReplicated) << request->message;
}

TEST_F(ConfirmingTest, failed_connection_for_wait_is_named_in_the_error) {
  connect();
  const auto request = acquire(-1, with_replicas(1));
  reply_granted();
  ASSERT_TRUE(client_->begin_side_connect(0, now_));
  client_->on_side_connect_failed(0, failure(Status::kUnavailable, "max number of clients"), now_);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_NE(request->message.find("no connection for WAIT"), std::string::npos);
  reply_count("release", 1);
}

TEST_F(ConfirmingTest, extension_with_an_unknown_script_is_sent_as_text) {
  const auto request = confirming();
  side_reply(MadeReply::error("NOSCRIPT No matching script."));
  counted(2);
  EXPECT_EQ(request->status.load(), Status::kPending) << "nothing was written in front of it";
  advance(0);
  ASSERT_EQ(side_sent_.size(), 2u);
  EXPECT_EQ(script_of(side_sent_[0]), "extend text");
  confirmed_by(2);
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(ConfirmingTest, local_hand_off_of_a_confirmed_lease_needs_no_confirmation) {
  const auto first = confirmed();
  const auto second = acquire(-1, with_replicas(2));
  reply_queued();
  release(first->lease);
  EXPECT_EQ(second->status.load(), Status::kOk) << "the server and its replicas have the token";
}

TEST_F(ConfirmingTest, local_hand_off_of_an_unconfirmed_lease_is_confirmed) {
  connect();
  const auto first = held();
  const auto second = acquire(-1, with_replicas(2));
  reply_queued();
  release(first);
  EXPECT_EQ(second->status.load(), Status::kPending);
  connect_side();
  confirmed_by(2);
  EXPECT_EQ(second->status.load(), Status::kOk);
}

TEST_F(ConfirmingTest, upgrade_is_confirmed) {
  const auto lease = confirmed_reader();
  const auto request = upgrade(lease, 10'000);
  reply_granted("1700000000000064");
  EXPECT_EQ(request->status.load(), Status::kPending);
  advance(0);
  confirmed_by(1);
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(lease->mode.load(), protocol::Mode::kWrite);
}

TEST_F(ConfirmingTest, upgrade_confirmed_by_too_few_replicas_is_downgraded) {
  const auto lease = confirmed_reader();
  const auto request = upgrade(lease, 10'000);
  reply_granted("1700000000000064");
  advance(0);
  now_ += 1'000 * kMs;
  confirmed_by(0);
  EXPECT_EQ(request->status.load(), Status::kNotReplicated);
  EXPECT_EQ(lease->mode.load(), protocol::Mode::kRead);
  EXPECT_EQ(state(lease), Lease::kHeld);
  EXPECT_EQ(next_script(), "downgrade");
}

TEST_F(ConfirmingTest, unused_connection_is_closed) {
  const auto request = confirmed();
  release(request->lease);
  reply_count("release", 1);
  advance(59'000 * kMs);
  EXPECT_FALSE(is_side_dropped_);
  advance(2'000 * kMs);
  EXPECT_TRUE(is_side_dropped_);
}

TEST_F(ConfirmingTest, missing_answer_to_wait_ends_the_connection) {
  const auto request = confirming();
  side_extended();
  advance(2'999 * kMs);
  EXPECT_FALSE(is_side_dropped_);
  advance(2 * kMs);
  EXPECT_TRUE(is_side_dropped_);
  EXPECT_EQ(request->status.load(), Status::kPending);
}

// ---- a slot of a cluster that is being moved ----------------------------------------------------

class ConfirmingOnClusterTest : public ConfirmingTest {
 protected:
  ConfirmingOnClusterTest() {
    settings_.is_of_cluster = true;
    client_ = make_client();
  }
  std::string redirect(const char *word) const {
    const auto slot = protocol::slot_of(settings_.name_space + "lock");
    return std::string(word) + " " + std::to_string(slot) + " other:6379";
  }
};

TEST_F(ConfirmingOnClusterTest, extension_that_the_node_cannot_serve_is_repeated) {
  const auto request = confirming(-1, 1);
  for (const std::string &text : {std::string("TRYAGAIN Multiple keys"), redirect("ASK"),
                                  std::string("CLUSTERDOWN The cluster is down")}) {
    SCOPED_TRACE(text);
    side_reply(MadeReply::error(text));
    counted(1);
    EXPECT_EQ(request->status.load(), Status::kPending);
    EXPECT_TRUE(side_sent_.empty()) << "not at once";
    advance(150 * kMs);
    ASSERT_EQ(side_sent_.size(), 2u);
    EXPECT_EQ(script_of(side_sent_[0]), "extend");
  }
  confirmed_by(1);
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
}

TEST_F(ConfirmingOnClusterTest, extension_with_endless_redirects_ends_with_sync_timeout) {
  const auto request = confirming(-1, 1);
  for (int i = 0; i < 100 && !request->is_finished(); i++) {
    if (!side_sent_.empty()) {
      side_reply(MadeReply::error(redirect("ASK")));
      counted(1);
    }
    advance(20 * kMs);
  }
  EXPECT_EQ(request->status.load(), Status::kNotReplicated);
  EXPECT_EQ(request->message,
            "lock 'lock': replicas were not asked within 1 s, because the slot of the lock is "
            "being moved to another node of the cluster, or has no primary");
  reply_count("release", 1);
}

TEST_F(ConfirmingOnClusterTest, moved_lease_is_confirmed_by_replicas_of_the_new_node) {
  const auto request = confirming(-1, 1);
  const auto slot = protocol::slot_of(settings_.name_space + "lock");
  side_reply(MadeReply::error(redirect("MOVED")));
  counted(1);
  EXPECT_TRUE(side_sent_.empty());
  ASSERT_FALSE(client_->busy_slots().contains(slot));
  const std::array<uint8_t, 16> random{9};
  lock::Server &other = client_->add_server(settings_, random);
  client_->move({{slot, &other}}, now_);
  client_->resume({{slot, &other}}, now_);
  ASSERT_TRUE(client_->begin_connect(1, now_));
  client_->on_connected(1, {}, now_);
  ASSERT_TRUE(client_->begin_side_connect(1, now_));
  client_->on_side_connected(1, now_);
  client_->on_timer(now_);
  ASSERT_EQ(side_sent_.size(), 2u);
  client_->on_side_reply(
      1, MadeReply::list(MadeReply::integer(1), MadeReply::integer(server_ms())).get(), now_);
  client_->on_side_reply(1, MadeReply::integer(1).get(), now_);
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
  request->lease.reset();
}

}  // namespace redlatch
