// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the handshake says what each kind of server understands, ends with the reason that a user
// can act upon, and never quotes a secret. Method: a server made of rules, one for each command,
// that the tests change; check() after every step.
#include "protocol/handshake.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lock_client_world.h"
#include "protocol/scripts.h"

namespace redlatch::protocol {
namespace {

using Stage = Handshake::Stage;

constexpr Nanos kSecond = 1000 * kMs;
constexpr const char *kInfo =
    "# Server\r\nredis_version:7.4.1\r\nredis_mode:standalone\r\n"
    "run_id:abc\r\nuptime_in_seconds:77\r\n";

// The reply to a command without its arguments.
constexpr const char *kArity = "ERR wrong number of arguments for 'x' command";
constexpr const char *kUnknown = "ERR unknown command 'x', with args beginning with: ";

MadeReply hello_of(const std::string &server, const std::string &version) {
  return MadeReply::list(MadeReply::text("server"), MadeReply::text(server),
                         MadeReply::text("version"), MadeReply::text(version));
}

class HandshakeTest : public ::testing::Test {
 protected:
  HandshakeTest() {
    settings_.host = "db";
    on("HELLO 3", [] { return hello_of("redis", "7.4.1"); });
    on("HELLO", [] { return hello_of("redis", "7.4.1"); });
    on("INFO server", [] { return MadeReply::text(kInfo); });
    on("INFO replication", [] { return MadeReply::text("role:master\r\n"); });
    on("TIME", [] { return MadeReply::list(MadeReply::text("1000"), MadeReply::text("500000")); });
    on("EVAL", [] { return MadeReply::list(MadeReply::integer(1), MadeReply::integer(0)); });
    for (const char *known : {"SSUBSCRIBE", "SPUBLISH"}) refuse(known, kArity);
    for (const char *known : {"AUTH", "SELECT", "SCRIPT LOAD"}) {
      on(known, [] { return MadeReply::text("OK"); });
    }
  }

  // Of all commands that begin with `words`; the longest such rule counts.
  void on(const std::string &words, std::function<MadeReply()> reply) {
    rules_[words] = std::move(reply);
  }
  void refuse(const std::string &words, const std::string &error) {
    std::erase_if(rules_, [&](const auto &rule) { return rule.first.starts_with(words); });
    on(words, [error] { return MadeReply::error(error); });
  }

  // Runs `handshake` until it ends or waits for the other connection. Subscriptions are confirmed
  // by a push, which the handshake does not see, or by a reply if `replies_to_subscription`.
  void run(Handshake &handshake, bool replies_to_subscription = false) {
    sent_.clear();
    handshake.start(send());
    answer(handshake, replies_to_subscription);
  }
  void answer(Handshake &handshake, bool replies_to_subscription = false) {
    while (handshake.awaited_count() > 0) {
      ASSERT_STREQ(handshake.check(), nullptr);
      ASSERT_FALSE(sent_.empty()) << "a reply is awaited, and nothing was sent";
      const std::string command = sent_.front();
      sent_.erase(sent_.begin());
      said_.push_back(command);
      now_ += kMs;
      const bool is_subscription = command.find("SUBSCRIBE ") != std::string::npos;
      const std::string kind = command.starts_with("SS") ? "SSUBSCRIBE " : "SUBSCRIBE";
      if (is_subscription && !rules_.contains(kind)) {
        if (replies_to_subscription) handshake.on_reply(reply_to("HELLO").get(), send(), now_);
        continue;
      }
      handshake.on_reply(reply_to(is_subscription ? kind : command).get(), send(), now_);
    }
    EXPECT_STREQ(handshake.check(), nullptr);
  }

  Handshake::Send send() {
    return [this](std::span<const std::string_view> argv) {
      std::string words;
      for (const auto word : argv) words += (words.empty() ? "" : " ") + std::string(word);
      sent_.push_back(words.substr(0, 80));
    };
  }
  MadeReply reply_to(const std::string &command) const {
    const std::pair<const std::string, std::function<MadeReply()>> *best = nullptr;
    for (const auto &rule : rules_) {
      if (command.starts_with(rule.first)) best = &rule;  // the map is sorted: the longest is last
    }
    return best != nullptr ? best->second() : MadeReply::error("ERR unknown command 'x'");
  }
  size_t count_of(const std::string &words) const {
    size_t count = 0;
    for (const std::string &said : said_) count += said.starts_with(words);
    return count;
  }
  static void expect_end(const Handshake &handshake, Status status, const std::string &words) {
    EXPECT_EQ(handshake.stage(), Stage::kOver);
    EXPECT_EQ(handshake.outcome().status, status);
    EXPECT_NE(handshake.outcome().message.find(words), std::string::npos)
        << handshake.outcome().message;
    EXPECT_EQ(handshake.outcome().message.find("sesame"), std::string::npos);
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  std::map<std::string, std::function<MadeReply()>> rules_;
  std::vector<std::string> sent_;  // not yet answered
  std::vector<std::string> said_;
};

TEST_F(HandshakeTest, a_usual_server) {
  Handshake handshake(settings_, "app:rl1:me", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_EQ(said_.front(), "HELLO 3 SETNAME redlatch");
  EXPECT_EQ(count_of("SCRIPT LOAD"), kScriptCount);
  EXPECT_EQ(count_of("SSUBSCRIBE app:rl1:me"), 1U);
  EXPECT_EQ(count_of("SPUBLISH"), 0U) << "nothing is asked of a server that works";
  EXPECT_EQ(count_of("SELECT"), 0U);
  EXPECT_EQ(count_of("INFO"), 0U);
  EXPECT_TRUE(handshake.facts().is_push_trusted);
  EXPECT_TRUE(handshake.facts().is_sharded);
  EXPECT_TRUE(handshake.facts().can_track);
}

TEST_F(HandshakeTest, user_password_and_database_are_given) {
  settings_.user = "app";
  settings_.password = "sesame";
  settings_.database = 7;
  settings_.client_name.clear();
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_EQ(said_.at(0), "HELLO 3 AUTH app sesame");
  EXPECT_EQ(said_.at(1), "SELECT 7");

  settings_.user.clear();
  said_.clear();
  Handshake without_user(settings_, "c", false);
  run(without_user);
  EXPECT_EQ(said_.at(0), "HELLO 3 AUTH default sesame");
}

TEST_F(HandshakeTest, an_old_server_has_plain_channels_or_is_refused) {
  on("HELLO 3", [] { return hello_of("redis", "6.2.0"); });
  Handshake handshake(settings_, "c", false);
  run(handshake);
  EXPECT_EQ(count_of("SUBSCRIBE c"), 1U);
  EXPECT_FALSE(handshake.facts().is_sharded);

  for (const auto &[server, version] :
       {std::pair{"redis", "6.0.9"}, {"valkey", "7.0.0"}, {"redis", "x"}, {"redis", ""}}) {
    on("HELLO 3", [server = server, version = version] { return hello_of(server, version); });
    Handshake old(settings_, "c", false);
    run(old);
    expect_end(old, Status::kUnsupported, "Redis 6.2, Valkey 7.2 or newer is needed");
  }
}

TEST_F(HandshakeTest, a_refused_connection_says_why) {
  settings_.password = "sesame";
  refuse("HELLO 3", "WRONGPASS invalid username-password pair or user is disabled.");
  Handshake wrong(settings_, "c", false);
  run(wrong);
  expect_end(wrong, Status::kDenied, "redis://db:6379 refused the connection: WRONGPASS");

  refuse("HELLO 3", "LOADING Redis is loading the dataset in memory");
  Handshake loading(settings_, "c", false);
  run(loading);
  expect_end(loading, Status::kServer, "LOADING");
}

TEST_F(HandshakeTest, a_password_is_never_quoted) {
  settings_.password = "sesame";
  refuse("HELLO", "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'sesame'");
  refuse("AUTH", "ERR unknown command 'AUTH', with args beginning with: 'sesame'");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kServer, "refused the password: ERR unknown command");
}

TEST_F(HandshakeTest, a_password_that_a_server_quotes_is_not_shown) {
  settings_.password = "sesame";
  const std::string quoted = "ERR Protocol error: 'HELLO 3 AUTH default sesame' (sesame)";
  refuse("HELLO", "ERR unknown command 'HELLO'");
  for (const std::string &text : {quoted, "ERR " + std::string(293, 'x') + " sesame"}) {
    refuse("AUTH", text);
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kServer, "refused the password: ERR ");
    EXPECT_EQ(handshake.outcome().message.find("ses"), std::string::npos);
  }
  refuse("HELLO", quoted);
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kServer, "'HELLO 3 AUTH default ***' (***)");
}

TEST_F(HandshakeTest, a_database_that_is_missing_stays_missing) {
  settings_.database = 99;
  refuse("SELECT", "ERR DB index is out of range");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kUnsupported, "refused SELECT 99: ERR DB index");
  refuse("SELECT", "LOADING Redis is loading the dataset in memory");
  Handshake later(settings_, "c", false);
  run(later);
  expect_end(later, Status::kServer, "LOADING");
}

// ---- RESP2 -------------------------------------------------------------------------------------

TEST_F(HandshakeTest, with_resp2_messages_have_a_connection_of_their_own) {
  refuse("HELLO 3", "NOPROTO unsupported protocol version");
  on("HELLO 2", [] { return hello_of("redis", "7.4.1"); });
  Handshake commands(settings_, "c", false);
  run(commands);
  ASSERT_EQ(commands.stage(), Stage::kMessages);
  EXPECT_EQ(count_of("SSUBSCRIBE"), 0U);
  said_.clear();
  auto messages = Handshake::for_messages(commands);
  run(messages, true);
  expect_end(messages, Status::kOk, "");
  EXPECT_EQ(said_, (std::vector<std::string>{"HELLO 3 SETNAME redlatch", "HELLO 2 SETNAME redlatch",
                                             "SSUBSCRIBE c"}));
  commands.on_messages(messages, send(), now_);
  EXPECT_EQ(commands.stage(), Stage::kProbe);
  answer(commands);
  expect_end(commands, Status::kOk, "");
  EXPECT_TRUE(commands.facts().is_push_trusted);
  EXPECT_FALSE(commands.facts().can_track);
}

TEST_F(HandshakeTest, with_resp2_a_redirected_subscription_names_the_node_that_has_the_channel) {
  settings_.is_of_cluster = true;
  settings_.protocol = 2;
  refuse("SSUBSCRIBE ", "MOVED 7 there:7001");
  Handshake commands(settings_, "c", false);
  run(commands);
  ASSERT_EQ(commands.stage(), Stage::kMessages);
  auto messages = Handshake::for_messages(commands);
  run(messages, true);
  commands.on_messages(messages, send(), now_);
  answer(commands);
  expect_end(commands, Status::kOk, "");
  EXPECT_FALSE(commands.facts().is_push_trusted);
  ASSERT_TRUE(commands.facts().channel_owner);
  EXPECT_EQ(commands.facts().channel_owner->host, "there");
}

TEST_F(HandshakeTest, without_hello_the_version_is_asked_for) {
  settings_.password = "sesame";
  settings_.user = "app";
  refuse("HELLO", "ERR unknown command 'HELLO'");
  on("INFO server", [] { return MadeReply::text("valkey_version:8.0.1\r\n"); });
  Handshake handshake(settings_, "c", false);
  run(handshake);
  ASSERT_EQ(handshake.stage(), Stage::kMessages);
  EXPECT_EQ(count_of("HELLO"), 2U);
  EXPECT_EQ(count_of("AUTH app sesame"), 1U);
  EXPECT_TRUE(handshake.facts().is_sharded);
  on("INFO server", [] { return MadeReply::text("valkey_version:7.0.1\r\n"); });
  Handshake old(settings_, "c", false);
  run(old);
  expect_end(old, Status::kUnsupported, "'valkey' version '7.0.1'");
}

TEST_F(HandshakeTest, hello_may_be_refused_in_any_words) {
  for (const char *words :
       {"ERR Unknown command 'HELLO'", "ERR unsupported command", "ERR syntax error",
        "invalid request", "ERR command is not supported"}) {
    SCOPED_TRACE(words);
    said_.clear();
    refuse("HELLO", words);
    on("INFO server", [] { return MadeReply::text("redis_version:7.0.15\r\n"); });
    Handshake handshake(settings_, "c", false);
    run(handshake);
    EXPECT_EQ(handshake.stage(), Stage::kMessages);
    EXPECT_TRUE(handshake.facts().is_sharded);
  }
  for (const char *reason : {"ERR max number of clients reached", "BUSY Redis is busy"}) {
    refuse("HELLO", reason);
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kServer, reason);
  }
}

TEST_F(HandshakeTest, without_hello_a_node_of_a_cluster_is_recognised) {
  refuse("HELLO", "ERR unknown command 'HELLO'");
  on("INFO server",
     [] { return MadeReply::text("redis_version:7.0.15\r\nredis_mode:cluster\r\n"); });
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_EQ(handshake.facts().role, NodeRole::kClusterMember);
}

TEST_F(HandshakeTest, a_hidden_version_needs_the_word_of_the_user) {
  refuse("HELLO", "ERR unknown command 'HELLO'");
  refuse("INFO", "ERR unknown command 'INFO'");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kUnsupported, "set protocol=2");
  settings_.protocol = 2;
  said_.clear();
  Handshake vouched(settings_, "c", false);
  run(vouched);
  EXPECT_EQ(vouched.stage(), Stage::kMessages);
  EXPECT_EQ(said_.front(), "HELLO 2 SETNAME redlatch");
  EXPECT_TRUE(vouched.facts().is_sharded) << "those that know the version may have chosen these";
}

TEST_F(HandshakeTest, a_missing_password_is_named) {
  refuse("HELLO", "NOAUTH HELLO must be called with the client already authenticated");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kDenied, "it asks for a password (NOAUTH)");

  // Valkey says so of commands that it does not know.
  settings_.password = "sesame";
  refuse("AUTH", "WRONGPASS invalid username-password pair");
  Handshake wrong(settings_, "c", false);
  run(wrong);
  expect_end(wrong, Status::kDenied, "refused the password: WRONGPASS");
}

// ---- identity ----------------------------------------------------------------------------------

TEST_F(HandshakeTest, a_node_is_asked_for_its_identity) {
  Handshake handshake(settings_, "c", true);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  const ServerFacts &facts = handshake.facts();
  EXPECT_EQ(facts.run_id, "abc");
  EXPECT_EQ(facts.age.uptime_s, 77);
  EXPECT_EQ(facts.age.round_trip, 3 * kMs);
  EXPECT_EQ(facts.age.clock, 1000 * kSecond + 500 * kMs - facts.age.asked_at - 3 * kMs / 2);
  EXPECT_FALSE(facts.is_replica);
  EXPECT_TRUE(facts.why_unknown.ok());
  EXPECT_EQ(count_of("SSUBSCRIBE"), 1U);
}

TEST_F(HandshakeTest, a_node_of_a_cluster_is_found_by_its_greeting) {
  const auto greet = [] {
    return MadeReply::list(MadeReply::text("version"), MadeReply::text("7.4.1"),
                           MadeReply::text("mode"), MadeReply::text("cluster"));
  };
  on("HELLO", greet);
  on("HELLO 3", greet);
  Handshake found(settings_, "c", false);
  run(found);
  expect_end(found, Status::kOk, "");
  EXPECT_EQ(found.facts().role, NodeRole::kClusterMember);
  EXPECT_EQ(count_of("SCRIPT LOAD") + count_of("SSUBSCRIBE"), 0U);

  settings_.database = 3;
  Handshake refused(settings_, "c", false);
  run(refused);
  expect_end(refused, Status::kUnsupported, "db must be 0 (got 3)");

  settings_.database = 0;
  settings_.is_of_cluster = true;
  Handshake known(settings_, "c", false);
  run(known);
  EXPECT_EQ(count_of("SCRIPT LOAD"), kScriptCount) << "its client is that of the cluster already";
}

TEST_F(HandshakeTest, a_replica_and_a_member_of_a_cluster_are_known) {
  on("INFO replication", [] { return MadeReply::text("role:slave\r\n"); });
  Handshake replica(settings_, "c", true);
  run(replica);
  EXPECT_TRUE(replica.facts().is_replica);

  on("INFO server", [] { return MadeReply::text(std::string(kInfo) + "redis_mode:cluster\r\n"); });
  on("INFO server", [] {
    return MadeReply::text("redis_mode:cluster\r\nrun_id:abc\r\nuptime_in_seconds:77\r\n");
  });
  said_.clear();
  Handshake member(settings_, "c", true);
  run(member);
  expect_end(member, Status::kOk, "");
  EXPECT_TRUE(member.facts().is_cluster_member);
  EXPECT_EQ(count_of("SSUBSCRIBE"), 0U) << "it cannot be a node, and is asked nothing else";
}

MadeReply hello_as(const std::string &key, const std::string &value) {
  return MadeReply::list(MadeReply::text("server"), MadeReply::text("redis"),
                         MadeReply::text("version"), MadeReply::text("7.4.1"), MadeReply::text(key),
                         MadeReply::text(value));
}

TEST_F(HandshakeTest, a_replica_is_no_server_for_locks) {
  on("HELLO 3", [] { return hello_as("role", "replica"); });
  Handshake bare(settings_, "c", false);
  run(bare);
  expect_end(bare, Status::kServer, "redis://db:6379 is a replica and READONLY: locks need its");
  Handshake node(settings_, "c", true);
  run(node);
  expect_end(node, Status::kOk, "");
}

TEST_F(HandshakeTest, a_sentinel_is_no_server_for_locks) {
  const std::string hint = "is a sentinel: the URL must be redis-sentinel://db:6379/NAME/0";
  on("HELLO 3", [] { return hello_as("mode", "sentinel"); });
  for (const bool is_of_quorum : {false, true}) {
    Handshake handshake(settings_, "c", is_of_quorum);
    run(handshake);
    expect_end(handshake, Status::kInvalid, hint);
  }
  refuse("HELLO", "ERR unknown command 'HELLO'");
  on("INFO server", [] { return MadeReply::text("redis_version:7.4.1\r\nredis_mode:sentinel"); });
  Handshake old(settings_, "c", false);
  run(old);
  expect_end(old, Status::kInvalid, hint);
}

TEST_F(HandshakeTest, a_primary_that_sentinels_named_has_to_confirm_it) {
  Settings named = settings_.of_primary({"db", "6379"});
  Handshake by_info(named, "c", false);
  run(by_info);
  expect_end(by_info, Status::kOk, "");
  EXPECT_EQ(by_info.facts().role, NodeRole::kPrimary);
  EXPECT_GT(by_info.facts().age.round_trip, 0) << "its clock is measured";

  on("INFO replication", [] { return MadeReply::text("role:slave\r\n"); });
  Handshake replica(named, "c", false);
  run(replica);
  expect_end(replica, Status::kServer, "is a replica");

  refuse("INFO replication", "NOPERM this user has no permissions to run the 'info' command");
  Handshake silent(named, "c", false);
  run(silent);
  expect_end(silent, Status::kServer, "does not say that it is a primary");

  on("HELLO 3", [] { return hello_as("role", "master"); });
  Handshake by_hello(named, "c", false);
  run(by_hello);
  expect_end(by_hello, Status::kOk, "");
}

TEST_F(HandshakeTest, an_identity_that_is_refused_or_unclear_has_its_reason) {
  refuse("INFO replication", "NOPERM this user has no permissions to run the 'info' command");
  Handshake denied(settings_, "c", true);
  run(denied);
  expect_end(denied, Status::kOk, "");
  EXPECT_EQ(denied.facts().why_unknown.status, Status::kDenied);
  EXPECT_TRUE(denied.facts().run_id.empty());

  refuse("INFO replication", "LOADING Redis is loading the dataset in memory");
  Handshake loading(settings_, "c", true);
  run(loading);
  expect_end(loading, Status::kServer, "redis://db:6379: LOADING");

  on("INFO replication", [] { return MadeReply::text("role:master\r\n"); });
  for (const char *info : {"", "run_id:abc\r\n", "run_id:abc\r\nuptime_in_seconds:-1\r\n",
                           "uptime_in_seconds:7\r\n"}) {
    on("INFO server", [info] { return MadeReply::text(info); });
    Handshake unclear(settings_, "c", true);
    run(unclear);
    expect_end(unclear, Status::kOk, "");
    EXPECT_EQ(unclear.facts().why_unknown.status, Status::kUnsupported) << info;
  }
  on("INFO server", [] { return MadeReply::text(kInfo); });
  for (const char *micros : {"-1", "1000000", "x", ""}) {
    on("TIME",
       [micros] { return MadeReply::list(MadeReply::text("1000"), MadeReply::text(micros)); });
    Handshake unclear(settings_, "c", true);
    run(unclear);
    EXPECT_EQ(unclear.facts().why_unknown.status, Status::kUnsupported) << micros;
  }
}

// ---- messages ----------------------------------------------------------------------------------

TEST_F(HandshakeTest, a_refused_subscription_means_polling) {
  refuse("SSUBSCRIBE ", "NOPERM this user has no permissions to access one of the channels");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_FALSE(handshake.facts().is_push_trusted);
  EXPECT_NE(handshake.facts().why_not_trusted.find("refused the subscription: NOPERM"),
            std::string::npos);
  EXPECT_EQ(count_of("HELLO"), 2U) << "the reply to the last command was read";
  EXPECT_EQ(count_of("EVAL"), 0U);

  refuse("SSUBSCRIBE ", "LOADING Redis is loading the dataset in memory");
  Handshake loading(settings_, "c", false);
  run(loading);
  expect_end(loading, Status::kServer, "refused the subscription: LOADING");
}

TEST_F(HandshakeTest, a_redirected_subscription_names_the_node_that_has_the_channel) {
  settings_.is_of_cluster = true;
  settings_.host = "here";
  for (const auto &[redirect, host] :
       {std::pair{"MOVED 7 there:7001", "there"}, {"MOVED 7 :7001", "here"}}) {
    refuse("SSUBSCRIBE ", redirect);
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_FALSE(handshake.facts().is_push_trusted);
    ASSERT_TRUE(handshake.facts().channel_owner) << redirect;
    EXPECT_EQ(handshake.facts().channel_owner->host, host);
    EXPECT_EQ(handshake.facts().channel_owner->port, "7001");
  }
  refuse("SSUBSCRIBE ", "NOPERM this user has no permissions to access one of the channels");
  Handshake denied(settings_, "c", false);
  run(denied);
  EXPECT_FALSE(denied.facts().channel_owner);
}

TEST_F(HandshakeTest, a_proxy_that_counts_receivers_wrongly_is_not_trusted) {
  for (const auto &[own, unused] : {std::pair{0, 0}, {1, 1}, {-1, -1}, {2, 0}}) {
    on("EVAL", [own = own, unused = unused] {
      return MadeReply::list(MadeReply::integer(own), MadeReply::integer(unused));
    });
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_FALSE(handshake.facts().is_push_trusted);
    const std::string why = own < 0 ? "refused SPUBLISH" : "received by " + std::to_string(own);
    EXPECT_NE(handshake.facts().why_not_trusted.find(why), std::string::npos);
  }
  refuse("EVAL", "BUSY Redis is busy running a script");
  Handshake busy(settings_, "c", false);
  run(busy);
  expect_end(busy, Status::kServer, "refused a script: BUSY");
}

// ---- which kind of channel ---------------------------------------------------------------------

TEST_F(HandshakeTest, a_server_without_sharded_channels_gets_plain_ones_whatever_its_version) {
  struct Case {
    const char *lacks;
    bool refuses_subscription;
    int64_t counted;
  };
  for (const Case &server : {Case{"SSUBSCRIBE", true, -1}, {"SPUBLISH", false, -1}}) {
    said_.clear();
    refuse("SSUBSCRIBE", kArity);
    refuse("SPUBLISH", kArity);
    refuse(server.lacks, kUnknown);
    if (server.refuses_subscription) on("SSUBSCRIBE ", [] { return MadeReply::error(kUnknown); });
    int probe_count = server.refuses_subscription ? 1 : 0;
    on("EVAL", [&probe_count, &server] {
      const int64_t own = probe_count++ == 0 ? server.counted : 1;
      return MadeReply::list(MadeReply::integer(own), MadeReply::integer(own == 1 ? 0 : own));
    });
    Handshake handshake(settings_, "c", true);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_TRUE(handshake.facts().is_push_trusted) << handshake.facts().why_not_trusted;
    EXPECT_FALSE(handshake.facts().is_sharded);
    EXPECT_EQ(count_of("SUBSCRIBE c"), 1U) << server.lacks;
    EXPECT_EQ(count_of("SCRIPT LOAD"), 2 * kScriptCount) << "those that publish to plain channels";
    EXPECT_EQ(count_of("TIME"), 1U) << "the identity is asked for once";
  }
}

TEST_F(HandshakeTest, the_kind_of_channel_depends_on_the_server_and_not_on_the_user) {
  for (const char *answer : {kArity, "NOPERM this user has no permissions to run the command"}) {
    on("SSUBSCRIBE ", [] { return MadeReply::error("NOPERM no permissions for the channel"); });
    on("SSUBSCRIBE", [answer] { return MadeReply::error(answer); });
    on("SPUBLISH", [answer] { return MadeReply::error(answer); });
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_TRUE(handshake.facts().is_sharded) << "others may use sharded channels: " << answer;
    EXPECT_FALSE(handshake.facts().is_push_trusted);
    EXPECT_EQ(count_of("SUBSCRIBE"), 0U);
  }
  on("SPUBLISH", [] { return MadeReply::error("BUSY Redis is busy running a script"); });
  Handshake busy(settings_, "c", false);
  run(busy);
  expect_end(busy, Status::kServer, "refused a question about channels: BUSY");
}

TEST_F(HandshakeTest, a_server_without_any_channels_is_polled) {
  for (const char *name : {"SSUBSCRIBE", "SPUBLISH", "SUBSCRIBE"}) refuse(name, kUnknown);
  on("SSUBSCRIBE ", [] { return MadeReply::error(kUnknown); });
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_FALSE(handshake.facts().is_push_trusted);
  EXPECT_FALSE(handshake.facts().is_sharded);
  EXPECT_EQ(count_of("SPUBLISH"), 1U) << "asked once";
}

TEST_F(HandshakeTest, a_probe_goes_without_a_key_that_is_out_of_reach) {
  for (const char *refusal : {"NOPERM this user has no permissions to access one of the keys",
                              "ASK 7 10.0.0.1:6379", "MOVED 7 10.0.0.1:6379"}) {
    bool is_first = true;
    on("EVAL", [refusal, &is_first] {
      if (std::exchange(is_first, false)) return MadeReply::error(refusal);
      return MadeReply::list(MadeReply::integer(1), MadeReply::integer(0));
    });
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_TRUE(handshake.facts().is_push_trusted) << refusal;
  }
  said_.clear();
  refuse("EVAL", "ERR scripts without keys are refused");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  EXPECT_EQ(count_of("EVAL"), 1U);
  EXPECT_NE(handshake.facts().why_not_trusted.find("refused the script that counts receivers: ERR"),
            std::string::npos);
}

TEST_F(HandshakeTest, replies_that_were_not_asked_for_change_nothing) {
  Handshake handshake(settings_, "c", false);
  run(handshake);
  handshake.on_reply(MadeReply::error("ERR late").get(), send(), now_);
  expect_end(handshake, Status::kOk, "");
}

}  // namespace
}  // namespace redlatch::protocol
