// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: people read names: of the holder in refusals and timeouts, of all clients in inspections;
// and a client that gets its locks at once sends no command for it.
#include <gtest/gtest.h>

#include "lock_client_world.h"

namespace redlatch {

class NamingTest : public LockClientWorld {
 protected:
  static constexpr const char *kOther = "aaaaaaaaaaaaaaaaaaaaaA";

  NamingTest() {
    settings_.holder = "here/1";
    client_ = make_client();
    names_[std::string("rl1:") + kOther] = "1 web-1/4711";
  }
  size_t count(std::string_view command) const {
    size_t found = 0;
    for (const auto &words : name_commands_) found += words[0] == command ? 1 : 0;
    return found;
  }
  void reply_shared(const std::string &reader) {
    const bool is_try = argument(2).empty();
    ASSERT_EQ(next_script(), "acquire");
    reply(MadeReply::list(
        MadeReply::integer(0), MadeReply::integer(30'000), MadeReply::integer(server_ms()),
        MadeReply::text(is_try ? "" : "1700000000000001"), MadeReply::integer(is_try ? -1 : 0),
        MadeReply::text("12345678"), MadeReply::text(std::string(protocol::kShared)),
        MadeReply::text("string"), MadeReply::integer(0), MadeReply::text(reader)));
  }
  std::string token_of(const RequestPtr &request) const { return request->lease->token; }
  RequestPtr inspect() {
    auto request = std::make_shared<Request>(Request::What::ask<operate::Inspect>());
    request->name = "lock";
    client_->start(request, now_);
    return request;
  }
  MadeReply busy() const {
    return MadeReply::list(MadeReply::integer(0), MadeReply::integer(900),
                           MadeReply::integer(server_ms()), MadeReply::text(""),
                           MadeReply::integer(-1), MadeReply::text("12345678"),
                           MadeReply::text(std::string(kOther) + "0000000001"),
                           MadeReply::text("string"), MadeReply::integer(0));
  }
  // The names that it makes the client ask for are not answered yet.
  void reply_without_names(const MadeReply &made) {
    sent_.pop_front();
    client_->on_reply(0, made.get(), now_);
  }
  MadeReply info(const std::string &value) const {
    const std::string waiter = std::string(kOther) + "0000000007x030000000000060000";
    return MadeReply::list(
        MadeReply::integer(server_ms()), MadeReply::text("string"), MadeReply::text(value),
        MadeReply::integer(1'000), MadeReply::text(std::string(kFence)), MadeReply::integer(1),
        MadeReply::list(MadeReply::text(waiter), MadeReply::text("1700000000000001")),
        MadeReply::list(), MadeReply::integer(0), MadeReply::list(), MadeReply::integer(0));
  }
};

TEST_F(NamingTest, short_hold_writes_no_name) {
  connect();
  for (int i = 0; i < 100; i++) {
    const auto request = acquire();
    reply_granted();
    advance(20 * kMs);
    release(request->lease);
    reply_count("release", 1);
    advance(20 * kMs);
  }
  EXPECT_EQ(name_commands_.size(), 0u);
}

TEST_F(NamingTest, longer_hold_writes_the_name_with_an_expiry_and_renews_it) {
  connect();
  const auto request = acquire();
  reply_granted();
  advance(499 * kMs);
  EXPECT_EQ(count("SET"), 0u);
  advance(1 * kMs);
  ASSERT_EQ(count("SET"), 1u);
  const std::vector<std::string> expected = {"SET", client_->channel(0), "1 here/1", "PX", "60000"};
  EXPECT_EQ(name_commands_[0], expected);
  for (int i = 0; i < 45; i++) {
    advance(1'000 * kMs);
    if (next_script() == "extend") reply_count("extend", 1);
  }
  EXPECT_EQ(count("SET"), 3u) << "each 20 s";
}

TEST_F(NamingTest, waiter_writes_its_name_at_once_and_only_once) {
  connect();
  const auto request = acquire();
  reply_queued();
  advance(0);
  EXPECT_EQ(count("SET"), 1u);
  const auto other = acquire(-1, {}, "other");
  reply_queued();
  advance(1'000 * kMs);
  EXPECT_EQ(count("SET"), 1u);
}

TEST_F(NamingTest, refused_name_is_not_written_again_on_this_connection) {
  connect();
  const auto request = acquire();
  reply_queued();
  client_->on_timer(now_);
  ASSERT_EQ(asked_names_.size(), 1u);
  asked_names_.clear();
  client_->on_reply(0, MadeReply::error("NOPERM no right to run SET").get(), now_);
  advance(25'000 * kMs);
  EXPECT_EQ(count("SET"), 0u);
}

TEST_F(NamingTest, shutdown_deletes_the_name) {
  connect();
  const auto request = acquire();
  reply_queued();
  advance(0);
  client_->shut_down(now_);
  ASSERT_EQ(asked_names_.size(), 1u);
  EXPECT_EQ(asked_names_[0].words, (std::vector<std::string>{"DEL", client_->channel(0)}));
}

TEST_F(NamingTest, refused_try_names_the_holder) {
  connect();
  const auto request = acquire(0);
  reply_queued();
  EXPECT_EQ(request->status.load(), Status::kBusy);
  EXPECT_NE(request->message.find("holder: web-1/4711"), std::string::npos) << request->message;
  const auto again = acquire(0);
  reply_queued();
  EXPECT_NE(again->message.find("holder: web-1/4711"), std::string::npos) << again->message;
  ASSERT_EQ(count("GETRANGE"), 1u) << "known for a while";
  const std::vector<std::string> expected = {"GETRANGE", std::string("rl1:") + kOther, "0", "257"};
  EXPECT_EQ(name_commands_[0], expected) << "however long a hostile value is";
  EXPECT_EQ(client_->in_flight_count(0), 0u);
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(NamingTest, refused_try_is_busy_even_if_the_holders_name_never_arrives) {
  connect();
  const auto request = acquire(0);
  ASSERT_EQ(next_script(), "acquire");
  reply_without_names(busy());
  EXPECT_EQ(request->status.load(), Status::kPending);
  disconnect();
  EXPECT_EQ(request->status.load(), Status::kBusy) << request->message;
  EXPECT_TRUE(client_->is_idle());
}

TEST_F(NamingTest, late_name_does_not_change_a_cancelled_try) {
  connect();
  const auto request = acquire(0);
  reply_without_names(busy());
  EXPECT_EQ(client_->cancel(*request, now_), Status::kCancelled);
  replied_count_++;
  answer_names();
  EXPECT_EQ(request->status.load(), Status::kCancelled);
}

TEST_F(NamingTest, wait_that_times_out_names_the_holder) {
  connect();
  const auto request = acquire(1'000);
  reply_queued();
  advance(500 * kMs);
  EXPECT_EQ(count("GETRANGE"), 0u);
  reply_queued();  // who has it now
  EXPECT_EQ(count("GETRANGE"), 1u);
  advance(500 * kMs);
  EXPECT_EQ(request->status.load(), Status::kTimeout);
  EXPECT_NE(request->message.find("holder: web-1/4711"), std::string::npos) << request->message;
}

TEST_F(NamingTest, timeout_behind_readers_says_that_readers_hold_the_lock) {
  connect();
  const auto request = acquire(1'000);
  reply_queued(30'000, 0, std::string(protocol::kShared));
  advance(500 * kMs);
  reply_queued(30'000, 0, std::string(protocol::kShared));
  advance(500 * kMs);
  EXPECT_EQ(request->message, "lock 'lock' was not granted within 1 s: held by readers");
}

TEST_F(NamingTest, timeout_and_busy_name_a_single_reader) {
  const std::string reader = std::string(kOther) + "0000000001";
  connect();
  const auto request = acquire(1'000);
  reply_shared(reader);
  advance(500 * kMs);
  reply_shared(reader);
  advance(500 * kMs);
  EXPECT_EQ(request->message,
            "lock 'lock' was not granted within 1 s: held by readers; holder: web-1/4711");
  reply_count("cancel", 0);
  const auto again = acquire(0);
  reply_shared(reader);
  EXPECT_EQ(again->message,
            "lock 'lock' is busy: held by readers, its lease ends in 30000 ms; holder: web-1/4711");
}

TEST_F(NamingTest, timeout_behind_another_format_names_the_format) {
  connect();
  const auto request = acquire(1'000);
  reply_queued(30'000, 0, "", "hash");
  advance(300 * kMs);
  while (next_script() == "acquire") {
    reply_queued(30'000, 0, "", "hash");
    advance(300 * kMs);
  }
  EXPECT_EQ(request->message,
            "lock 'lock' was not granted within 1 s: its key is a hash: a lock of another format");
}

TEST_F(NamingTest, timeout_behind_this_client_says_so) {
  connect();
  const auto first = acquire();
  reply_granted();
  const std::string token = token_of(first);
  lock::AcquireOptions options;
  options.max_local_handoffs = 0;
  const auto second = acquire(1'000, std::move(options));
  reply_queued(30'000, 0, token);
  advance(500 * kMs);
  reply_queued(30'000, 0, token);
  advance(500 * kMs);
  EXPECT_NE(second->message.find("holder: this client"), std::string::npos) << second->message;
}

TEST_F(NamingTest, thread_that_reads_and_wants_to_write_waits_for_itself) {
  constexpr uint64_t kThread = 5;
  lock::AcquireOptions reading;
  reading.mode = protocol::Mode::kRead;
  connect();
  const auto reader = acquire(1'000, reading);
  reader->lease->starter = kThread;
  reply_granted();
  const auto again = acquire(1'000, reading);
  again->waiter.number = kThread;
  EXPECT_FALSE(client_->waits_for_itself(*again));
  reply_granted();
  const auto one_try = acquire(0);
  one_try->waiter.number = kThread;
  EXPECT_FALSE(client_->waits_for_itself(*one_try));
  reply_queued(30'000, 0, std::string(protocol::kShared));
  const auto other = acquire(1'000);
  other->waiter.number = kThread + 1;
  EXPECT_FALSE(client_->waits_for_itself(*other));
  other->waiter.number = kThread;
  EXPECT_TRUE(client_->waits_for_itself(*other)) << "before any answer";
  reply_queued(30'000, 0, std::string(protocol::kShared));
  advance(500 * kMs);
  reply_queued(30'000, 0, std::string(protocol::kShared));
  advance(500 * kMs);
  EXPECT_EQ(other->message,
            "lock 'lock' was not granted within 1 s: held by readers; holder: the thread that "
            "waits");
}

TEST_F(NamingTest, inspection_names_holder_and_waiters) {
  connect();
  const auto request = inspect();
  ASSERT_EQ(next_script(), "inspect");
  reply(info(std::string(kOther) + "0000000001"));
  ASSERT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->as<operate::Inspect>().info.who, "web-1/4711");
  ASSERT_EQ(request->as<operate::Inspect>().info.waiters.size(), 1u);
  EXPECT_EQ(request->as<operate::Inspect>().info.waiters[0].who, "web-1/4711");
  EXPECT_EQ(count("GETRANGE"), 1u) << "one for each client";
}

TEST_F(NamingTest, inspection_succeeds_without_names_if_the_connection_ends) {
  connect();
  const auto request = inspect();
  reply_without_names(info(std::string(kOther) + "0000000001"));
  EXPECT_EQ(request->status.load(), Status::kPending);
  disconnect();
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(request->as<operate::Inspect>().info.waiters.size(), 1u);
}

TEST_F(NamingTest, text_that_is_no_name_is_not_shown) {
  names_[std::string("rl1:") + kOther] = "anything else";
  connect();
  const auto request = acquire(0);
  reply_queued();
  EXPECT_EQ(request->status.load(), Status::kBusy);
  EXPECT_EQ(request->message.find("holder"), std::string::npos) << request->message;
}

}  // namespace redlatch
