// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a session gives each answer to the command that it is for, and meets what every command may
// meet: no memory, a script that the server does not know, a replica, an end without answers.
#include "session/session.h"

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <string>
#include <vector>

#include "session/channel.h"
#include "session/node_clock.h"

namespace redlatch::session {
namespace {

constexpr auto kDigest = protocol::EvalMode::kDigest;
constexpr auto kText = protocol::EvalMode::kText;

struct Sent final : Transport {
  void send(size_t, std::span<const std::string_view>) override {
    if (is_full) throw std::bad_alloc();
    count++;
  }
  void drop_link(size_t) override { drops++; }

  bool is_full = false;
  int count = 0;
  int drops = 0;
};

struct Recorder final : CallKind {
  Recorder(std::string name_, std::vector<std::string> &all_, bool repeats)
      : name(std::move(name_)), all(all_), repeats_(repeats) {}
  void on_answer(const Call &, const Reply &reply, Nanos) const override {
    all.push_back(name + " answered " + std::string(reply.text()));
  }
  void on_unknown_script(const Call &, Nanos) const override { all.push_back(name + " unknown"); }
  void on_lost(const Call &, Nanos) const override {
    all.push_back(name + " lost");
    if (name == "b") throw std::bad_alloc();
  }
  void on_not_done(const Call &, Nanos) const override { all.push_back(name + " not done"); }
  bool is_repeated() const override { return repeats_; }

  std::string name;
  std::vector<std::string> &all;
  bool repeats_;
};

Reply reply_of(Reply::Kind kind, std::string_view text) {
  Reply reply;
  reply.kind = kind;
  reply.data = text.data();
  reply.size = text.size();
  return reply;
}
const Reply kOk = reply_of(Reply::Kind::kText, "OK");
const Reply kUnknown = reply_of(Reply::Kind::kError, "NOSCRIPT No matching script");
const Reply kReadOnly = reply_of(Reply::Kind::kError, "READONLY You can't write");

class SessionTest : public testing::Test {
 protected:
  SessionTest() { connect(); }

  void connect() {
    ASSERT_TRUE(session.begin_connect(now));
    session.on_connected();
  }
  void send(const CallKind &kind, protocol::EvalMode eval = kDigest) {
    protocol::Command command;
    command.add("PING");
    session.send(command, Call{&kind, eval, now, 0, {}});
  }
  void end() { session.on_disconnected(false, now); }

  Settings settings;
  Sent sent;
  Entropy entropy{1};
  Nanos now = 1'000 * kMs;
  std::vector<std::string> all;
  const Recorder a{"a", all, false}, b{"b", all, false}, c{"c", all, true};
  Session session{settings, sent, entropy, 0, Session::Connection::kCommands};
};

using Events = std::vector<std::string>;

TEST_F(SessionTest, answers_go_to_the_commands_in_their_order) {
  send(a);
  send(b);
  session.on_reply(kOk, now);
  session.on_reply(kOk, now);
  EXPECT_EQ(all, (Events{"a answered OK", "b answered OK"}));
  EXPECT_EQ(session.late_at(1), kNever);
  session.on_reply(kOk, now);
  EXPECT_EQ(sent.drops, 1) << "no command has asked for this answer";
  EXPECT_FALSE(session.is_up());
}

TEST_F(SessionTest, a_call_that_was_not_sent_awaits_no_answer) {
  send(a);
  sent.is_full = true;
  protocol::Command command;
  command.add("PING");
  EXPECT_FALSE(session.try_send(command, Call{&b, kDigest, now, 0, {}}));
  EXPECT_EQ(session.in_flight().size(), 1U);
  session.on_reply(kOk, now);
  EXPECT_EQ(all, (Events{"a answered OK"}));
}

TEST_F(SessionTest, unknown_script_is_reported_only_for_calls_by_digest) {
  send(a);
  send(b, kText);
  session.on_reply(kUnknown, now);
  session.on_reply(kUnknown, now);
  EXPECT_EQ(all, (Events{"a unknown", "b answered NOSCRIPT No matching script"}));
}

TEST_F(SessionTest, each_call_is_notified_of_the_end_even_if_another_one_throws) {
  for (const Recorder *call : {&a, &b, &c}) send(*call);
  EXPECT_EQ(session.late_at(5), now + 5);
  end();
  EXPECT_EQ(all, (Events{"a lost", "b lost", "c lost"}));
  EXPECT_TRUE(session.is_down());
  EXPECT_EQ(session.failure().status, Status::kUnavailable);
  EXPECT_GT(session.connect_at(), now);
  EXPECT_FALSE(session.begin_connect(now)) << "the pause";
  session.connect_soon(now);
  EXPECT_TRUE(session.begin_connect(now));
}

TEST_F(SessionTest, a_replica_is_disconnected_and_repeatable_calls_are_not_done) {
  EXPECT_FALSE(session.may_change_server());
  for (const Recorder *call : {&c, &a, &c}) send(*call);
  session.on_reply(kReadOnly, now);
  EXPECT_EQ(sent.drops, 1);
  EXPECT_TRUE(session.may_change_server());
  end();
  EXPECT_EQ(all, (Events{"c not done", "a lost", "c not done"}));
  // On the next connection nothing is known of a replica any more.
  now = session.connect_at();
  connect();
  send(c);
  end();
  EXPECT_EQ(all.back(), "c lost");
}

// A connection for WAIT: what could not be sent is not awaited, and its failures have no text.
TEST_F(SessionTest, a_connection_for_wait_is_a_session) {
  struct Side final : Transport {
    void send(size_t, std::span<const std::string_view>) override { ADD_FAILURE(); }
    void drop_link(size_t) override { ADD_FAILURE(); }
    void send_on_side(size_t, std::span<const std::string_view>) override {
      if (count++ > 0) throw std::bad_alloc();
    }
    void drop_side(size_t) override { drops++; }
    int count = 0;
    int drops = 0;
  } side;
  Session wait{settings, side, entropy, 0, Session::Connection::kWait};
  const std::string before = wait.failure().message;
  ASSERT_TRUE(wait.begin_connect(now));
  wait.on_connect_failed(failure(Status::kDenied, "no"), now);
  EXPECT_EQ(wait.failure().message, before);
  now = wait.connect_at();
  ASSERT_TRUE(wait.begin_connect(now));
  wait.on_connected();
  protocol::Command command;
  command.add("WAIT");
  wait.send(command, Call{&a, kText, now, 0, {}});
  EXPECT_THROW(wait.send(command, Call{&b, kText, now, 0, {}}), std::bad_alloc);
  wait.on_reply(kOk, now);
  EXPECT_EQ(all, (Events{"a answered OK"}));
  wait.drop();
  EXPECT_EQ(side.drops, 1);
  EXPECT_EQ(wait.connect_at(), kNever) << "the end is not reported yet";
}

TEST_F(SessionTest, a_redirect_in_a_cluster_is_handled_before_the_answer) {
  Settings node;
  node.is_of_cluster = true;
  Session member{node, sent, entropy, 0, Session::Connection::kCommands};
  ASSERT_TRUE(member.begin_connect(now));
  member.on_connected();
  struct Redirected final : CallKind {
    void on_answer(const Call &, const Reply &reply, Nanos) const override {
      EXPECT_FALSE(reply.is_error());
    }
    bool take_redirect(const Call &, const Reply &, Nanos) const override { return true; }
  } redirected;
  protocol::Command command;
  command.add("PING");
  for (int i = 0; i < 2; i++) member.send(command, Call{&redirected, kText, now, 0, {}});
  const Reply moved = reply_of(Reply::Kind::kError, "MOVED 1 b:6379");
  member.on_reply(moved, now);
  member.on_reply(kOk, now);
  EXPECT_TRUE(member.is_up());
  EXPECT_TRUE(member.in_flight().empty());
}

// Each connection to a replica would else be followed by the shortest pause.
TEST_F(SessionTest, answers_of_a_replica_do_not_reset_the_connection_pauses) {
  Nanos longest = 0;
  for (int i = 0; i < 4; i++) {
    send(a);
    session.on_reply(kOk, now);
    send(a);
    session.on_reply(kReadOnly, now);
    end();
    longest = session.connect_at() - now;
    now = session.connect_at();
    connect();
  }
  EXPECT_GT(longest, 2 * 10 * kMs);
}

TEST(NodeClockTest, a_new_nodes_clock_is_compared_once_both_clocks_are_known) {
  NodeClock source(true), clock(true);
  source.sample(0, 0, 1'000'000, 0);
  clock.note_arrivals(source);
  EXPECT_FALSE(clock.take_arrivals()) << "its own clock is not known";
  clock.sample(0, 0, 999'000, 0);
  EXPECT_TRUE(clock.take_arrivals());
  EXPECT_FALSE(clock.take_arrivals());
  EXPECT_NEAR(static_cast<double>(clock.behind()), 1e9, 1e6);
  EXPECT_TRUE(clock.take_warning());
  EXPECT_FALSE(clock.take_warning()) << "once for each connection";
  clock.forget();
  EXPECT_TRUE(clock.last()) << "for leases that move away";
  clock.note_arrivals(source);
  EXPECT_FALSE(clock.take_arrivals());
}

TEST(ChannelTest, a_taken_channel_is_replaced_at_most_four_times) {
  const std::array<uint8_t, 16> random{1};
  Channel channel("app:", random);
  Entropy entropy(1);
  ServerFacts facts;
  facts.is_push_trusted = false;
  facts.is_channel_taken = true;
  for (int i = 0; i < 4; i++) {
    ASSERT_TRUE(channel.leave_if_taken(facts));
    EXPECT_FALSE(channel.hears(channel.cid()));
    const std::string before = channel.cid();
    const std::string drawn = channel.draw(entropy);
    channel.change(drawn, channel.prefix() + drawn);
    EXPECT_NE(channel.cid(), before);
    EXPECT_TRUE(channel.take_change());
    EXPECT_FALSE(channel.take_change());
  }
  EXPECT_FALSE(channel.leave_if_taken(facts)) << "the count of a broken proxy is wrong for each";
  facts.is_push_trusted = true;
  channel.on_connected(facts, false);
  EXPECT_TRUE(channel.hears(channel.cid()));
  EXPECT_TRUE(channel.is_counted());
  channel.on_connected(facts, true);
  EXPECT_FALSE(channel.is_counted()) << "PUBLISH counts subscribers at its own node only";
}

}  // namespace
}  // namespace redlatch::session
