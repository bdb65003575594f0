// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the service gets the events of attempts and of input, one for each message of a server;
// other replies are ignored. Method: replies made by hand; a service that notes its events.
#include "driver/node_connection.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dialogue_world.h"
#include "lock_client_world.h"
#include "noted_events.h"

namespace redlatch::driver {
namespace {

class NodeConnectionTest : public testing::Test {
 protected:
  Settings settings = settings_of_h();
  NotedLines log;
  NotedEvents service;
  NodeConnection connection{settings, 0, log};
  std::vector<std::string> sent;
  DialogueWorld world;

  void fails(const std::string &why) {
    NodeAttempt attempt(settings, service, 0, nullptr);
    attempt.fail(failure(Status::kUnavailable, why));
    ASSERT_EQ(attempt.conclude(), NodeAttempt::Result::kFailed);
    connection.on_attempt_over(service, attempt, true, 0);
  }
  void connects() {
    NodeAttempt attempt(settings, service, 0, nullptr);
    attempt.login().on_read({}, 0);
    attempt.login().on_given({});
    world.open(attempt.begin(0));
    attempt.end(0);
    ASSERT_EQ(attempt.conclude(), NodeAttempt::Result::kConnected);
    connection.make(attempt.facts(), 0);
    connection.on_attempt_over(service, attempt, true, 0);
  }
  const Authentication::Send send = [this](std::span<const std::string_view> argv) {
    sent.emplace_back(argv.back());
    connection.on_append();
  };
};

std::vector<std::string> events_of(const MadeReply &message, bool is_sharded) {
  const Settings settings = settings_of_h();
  NotedLines log;
  NotedEvents service;
  NodeConnection connection(settings, 0, log);
  ServerFacts facts;
  facts.is_sharded = is_sharded;
  connection.make(facts, 0);
  connection.take_message(service, message.get(), 1);
  return service.events;
}

MadeReply text(const std::string &words) { return MadeReply::text(words); }

TEST(NodeConnectionMessagesTest, a_grant_comes_by_the_channel_that_is_counted) {
  const std::vector<std::string> grant{"push g1"};
  EXPECT_EQ(events_of(MadeReply::list(text("smessage"), text("c"), text("g1")), true), grant);
  EXPECT_EQ(events_of(MadeReply::list(text("message"), text("c"), text("g1")), false), grant);
  EXPECT_TRUE(events_of(MadeReply::list(text("message"), text("c"), text("g1")), true).empty())
      << "no server counts the receivers of the plain channel beside a sharded one";
  EXPECT_EQ(events_of(MadeReply::list(text("message"), text("c"), text("n1")), true),
            std::vector<std::string>{"push n1"})
      << "a notice grants nothing";
}

TEST(NodeConnectionMessagesTest, each_changed_key_is_an_event_and_no_list_stands_for_all) {
  EXPECT_EQ(
      events_of(MadeReply::list(text("invalidate"), MadeReply::list(text("a"), text("b"))), false),
      (std::vector<std::string>{"changed a", "changed b"}));
  EXPECT_EQ(
      events_of(MadeReply::list(text("invalidate"), MadeReply::text("", Reply::Kind::kNil)), false),
      std::vector<std::string>{"changed all"});
}

TEST(NodeConnectionMessagesTest, the_end_of_a_subscription_is_an_event) {
  EXPECT_EQ(
      events_of(MadeReply::list(text("sunsubscribe"), text("c"), MadeReply::integer(0)), true),
      std::vector<std::string>{"unsubscribed"});
}

TEST(NodeConnectionMessagesTest, what_is_no_message_is_ignored) {
  EXPECT_TRUE(events_of(MadeReply::list(text("pong"), text("")), false).empty());
  EXPECT_TRUE(events_of(text("PONG"), false).empty());
  EXPECT_TRUE(events_of(MadeReply::list(text("subscribe"), text("c"), MadeReply::integer(1)), false)
                  .empty());
  EXPECT_TRUE(events_of(MadeReply::list(), false).empty());
}

// ---- attempts ----------------------------------------------------------------------------------

TEST_F(NodeConnectionTest, an_outage_is_one_line_and_its_end_another) {
  fails("h:1 refused");
  fails("h:1 refused");
  EXPECT_FALSE(connection.is_made());
  connects();
  EXPECT_TRUE(connection.is_usable());
  EXPECT_EQ(service.events, (std::vector<std::string>{"failed: h:1 refused", "failed: h:1 refused",
                                                      "connected", "to be checked"}));
  EXPECT_EQ(log.lines, (std::vector<std::string>{"h:1 refused", "connected to redis://h:1 again"}));
}

TEST_F(NodeConnectionTest, what_the_service_has_dropped_at_once_is_no_success) {
  fails("h:1 refused");
  service.to_drop = &connection;
  connects();
  EXPECT_TRUE(connection.is_broken());
  EXPECT_EQ(log.lines, std::vector<std::string>{"h:1 refused"});
  EXPECT_EQ(service.events.back(), "connected");
  connection.end();
  EXPECT_FALSE(connection.is_made());
  connection.drop();
  EXPECT_FALSE(connection.is_broken()) << "there is nothing to drop";
}

TEST_F(NodeConnectionTest, a_server_of_a_folder_is_not_checked_nor_one_whose_check_is_off) {
  settings.folder = "/f";
  connects();
  connection.end();
  settings = settings_of_h();
  settings.is_health_checked = false;
  connects();
  EXPECT_EQ(service.events, (std::vector<std::string>{"connected", "connected"}));
}

TEST_F(NodeConnectionTest, slots_that_cannot_be_read_are_an_outage) {
  settings.cluster.addresses = {{"h", "1"}};
  fails("no node");
  fails("no node");
  NodeAttempt attempt(settings, service, 0, nullptr);
  attempt.login().on_read({}, 0);
  attempt.login().on_given({});
  world.tell_slots(attempt.begin(0));
  attempt.end(0);
  ASSERT_EQ(attempt.conclude(), NodeAttempt::Result::kSlots);
  connection.on_attempt_over(service, attempt, true, 0);
  EXPECT_FALSE(connection.is_made());
  EXPECT_EQ(service.events,
            (std::vector<std::string>{"failed: no node", "failed: no node", "slots: 1"}));
  EXPECT_EQ(log.lines,
            (std::vector<std::string>{"no node", "connected to redis+cluster://h:1 again"}));
}

// ---- logins ------------------------------------------------------------------------------------

TEST_F(NodeConnectionTest, the_service_gets_no_reply_to_an_auth) {
  connection.make({}, 1);
  EXPECT_FALSE(connection.authenticate({1, "", "same"}, send));
  connection.on_append();
  EXPECT_TRUE(connection.authenticate({2, "", "new"}, send));
  connection.on_append();
  EXPECT_EQ(sent, std::vector<std::string>{"new"});
  const MadeReply ok = text("OK");
  EXPECT_EQ(connection.take(service, ok.get(), 0), 0u);
  EXPECT_TRUE(connection.awaits_auth() && connection.is_auth_next());
  EXPECT_EQ(connection.take(service, ok.get(), 0), 0u);
  EXPECT_FALSE(connection.awaits_auth());
  EXPECT_EQ(connection.take(service, ok.get(), 0), 0u);
  EXPECT_EQ(service.events, (std::vector<std::string>{"reply", "reply"}));
}

TEST_F(NodeConnectionTest, a_message_between_replies_is_none_of_them) {
  const MadeReply grant = MadeReply::list(text("message"), text("c"), text("g1"));
  Reply push = grant.get();
  push.kind = Reply::Kind::kPush;
  connection.make({}, 1);
  (void)connection.authenticate({2, "", "new"}, send);
  EXPECT_EQ(connection.take(service, push, 0), 0u);
  EXPECT_EQ(connection.take(service, MadeReply::error("WRONGPASS").get(), 0), 2u);
  EXPECT_EQ(service.events, std::vector<std::string>{"push g1"});
}

TEST_F(NodeConnectionTest, the_first_of_several_refusals_is_logged_without_what_is_quoted) {
  const std::vector<std::string> known{
      "redis://h:1 refused the new credentials (WRONGPASS); the connection stays as it was"};
  const std::vector<std::string> unknown{
      "redis://h:1 refused the new credentials (an error); the connection stays as it was"};
  const MadeReply wrong = MadeReply::text("WRONGPASS invalid 'canary'", Reply::Kind::kError);
  const MadeReply quoted = MadeReply::text("canary is no password", Reply::Kind::kError);
  connection.make({}, 1);
  (void)connection.authenticate({2, "", "canary"}, send);
  EXPECT_EQ(connection.take(service, wrong.get(), 0), 2u);
  EXPECT_TRUE(connection.is_usable()) << "a refusal ends nothing";
  EXPECT_EQ(log.lines, known);
  EXPECT_EQ(connection.note_auth(3, wrong.get()), 3u);
  EXPECT_EQ(log.lines, known);
  EXPECT_EQ(connection.note_auth(4, text("OK").get()), 0u);
  log.lines.clear();
  EXPECT_EQ(connection.note_auth(5, quoted.get()), 5u);
  EXPECT_EQ(log.lines, unknown);
  connection.end();
  connection.make({}, 5);
  EXPECT_EQ(connection.note_auth(6, wrong.get()), 6u);
  EXPECT_EQ(log.lines.size(), 2u) << "of another connection";
}

TEST_F(NodeConnectionTest, an_auth_without_an_answer_is_forgotten_with_its_connection) {
  connection.make({}, 1);
  (void)connection.authenticate({2, "", "new"}, send);
  connection.drop();
  EXPECT_FALSE(connection.authenticate({3, "", "newer"}, send)) << "it is of no use";
  connection.end();
  connection.make({}, 2);
  connection.on_append();
  EXPECT_EQ(connection.take(service, text("OK").get(), 0), 0u);
  EXPECT_EQ(service.events, std::vector<std::string>{"reply"});
}

}  // namespace
}  // namespace redlatch::driver
