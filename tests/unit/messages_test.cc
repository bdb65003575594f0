// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: each message of a server becomes one event of the service, and what is no message none.
// Method: replies made by hand; a service that notes its events.
#include "driver/messages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lock_client_world.h"

namespace redlatch::driver {
namespace {

class NotedEvents final : public lock::LockService {
 public:
  std::vector<std::string> events;

  void on_push(size_t, std::string_view message, Nanos) override {
    events.push_back("push " + std::string(message));
  }
  void on_invalidated(size_t, std::optional<std::string_view> key, Nanos) override {
    events.push_back("changed " + std::string(key.value_or("all")));
  }
  void on_unsubscribed(size_t, Nanos) override { events.emplace_back("unsubscribed"); }

  const std::string &channel(size_t) const override { return channel_; }
  void start(const std::shared_ptr<lock::Request> &, Nanos) override {}
  Status cancel(lock::Request &, Nanos) override { return Status::kOk; }
  void release_async(lock::Lease &, Nanos) override {}
  void shut_down(Nanos) override {}
  void give_up() override {}
  size_t drained_count() const override { return 0; }
  bool begin_connect(size_t, Nanos) override { return false; }
  void on_connected(size_t, const ServerFacts &, Nanos) override {}
  void on_connect_failed(size_t, const Outcome &, Nanos) override {}
  void on_disconnected(size_t, Nanos) noexcept override {}
  void on_reply(size_t, const Reply &, Nanos) override { events.emplace_back("reply"); }
  void check_later(size_t, Nanos) override {}
  void on_timer(Nanos) override {}
  Nanos next_due() const override { return kNever; }
  size_t in_flight_count(size_t) const override { return 0; }
  bool expects_push() const override { return false; }
  bool is_outstanding() const override { return false; }
  bool waits_for_itself(const lock::Request &) const override { return false; }

 private:
  std::string channel_;
};

std::vector<std::string> events_of(const MadeReply &message, bool is_sharded) {
  NotedEvents service;
  take_message(service, 0, is_sharded, message.get(), 1);
  return service.events;
}

MadeReply text(const std::string &words) { return MadeReply::text(words); }

TEST(MessagesTest, a_grant_comes_by_the_channel_that_is_counted) {
  const std::vector<std::string> grant{"push g1"};
  EXPECT_EQ(events_of(MadeReply::list(text("smessage"), text("c"), text("g1")), true), grant);
  EXPECT_EQ(events_of(MadeReply::list(text("message"), text("c"), text("g1")), false), grant);
  EXPECT_TRUE(events_of(MadeReply::list(text("message"), text("c"), text("g1")), true).empty())
      << "no server counts the receivers of the plain channel beside a sharded one";
  EXPECT_EQ(events_of(MadeReply::list(text("message"), text("c"), text("n1")), true),
            std::vector<std::string>{"push n1"})
      << "a notice grants nothing";
}

TEST(MessagesTest, each_changed_key_is_an_event_and_no_list_stands_for_all) {
  EXPECT_EQ(
      events_of(MadeReply::list(text("invalidate"), MadeReply::list(text("a"), text("b"))), false),
      (std::vector<std::string>{"changed a", "changed b"}));
  EXPECT_EQ(
      events_of(MadeReply::list(text("invalidate"), MadeReply::text("", Reply::Kind::kNil)), false),
      std::vector<std::string>{"changed all"});
}

TEST(MessagesTest, the_end_of_a_subscription_is_an_event) {
  EXPECT_EQ(
      events_of(MadeReply::list(text("sunsubscribe"), text("c"), MadeReply::integer(0)), true),
      std::vector<std::string>{"unsubscribed"});
}

TEST(MessagesTest, what_is_no_message_is_ignored) {
  EXPECT_TRUE(events_of(MadeReply::list(text("pong"), text("")), false).empty());
  EXPECT_TRUE(events_of(text("PONG"), false).empty());
  EXPECT_TRUE(events_of(MadeReply::list(text("subscribe"), text("c"), MadeReply::integer(1)), false)
                  .empty());
  EXPECT_TRUE(events_of(MadeReply::list(), false).empty());
}

}  // namespace
}  // namespace redlatch::driver
