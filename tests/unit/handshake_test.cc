// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the handshake says what each kind of server understands, ends with the reason that a user
// can act upon, and never quotes a secret.
#include "handshake_world.h"

namespace redlatch::protocol {
namespace {

class HandshakeTest : public HandshakeWorld {};

TEST_F(HandshakeTest, a_current_server_needs_no_additional_questions) {
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

TEST_F(HandshakeTest, the_error_of_a_refused_connection_has_the_reason) {
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

TEST_F(HandshakeTest, the_error_does_not_quote_arguments_of_an_unknown_command) {
  settings_.password = "sesame";
  refuse("HELLO", "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'sesame'");
  refuse("AUTH", "ERR unknown command 'AUTH', with args beginning with: 'sesame'");
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kServer, "refused the password: ERR unknown command");
}

TEST_F(HandshakeTest, a_password_quoted_by_the_server_is_masked) {
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

TEST_F(HandshakeTest, a_database_that_does_not_exist_is_a_permanent_error) {
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

TEST_F(HandshakeTest, resp2_messages_have_their_own_connection) {
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

TEST_F(HandshakeTest, a_server_without_hello_is_asked_for_its_version) {
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
  for (const char *reason : {"ERR max number of clients reached", "BUSY Redis is busy",
                             "ERR Connection refused", "no upstream host"}) {
    refuse("HELLO", reason);
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kServer, reason);
  }
}

TEST_F(HandshakeTest, a_cluster_node_without_hello_is_recognised) {
  refuse("HELLO", "ERR unknown command 'HELLO'");
  on("INFO server",
     [] { return MadeReply::text("redis_version:7.0.15\r\nredis_mode:cluster\r\n"); });
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_EQ(handshake.facts().role, NodeRole::kClusterMember);
}

TEST_F(HandshakeTest, a_server_that_hides_its_version_needs_protocol_2) {
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

TEST_F(HandshakeTest, a_missing_or_wrong_password_is_denied) {
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

TEST_F(HandshakeTest, a_redlock_node_is_asked_for_its_identity) {
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

TEST_F(HandshakeTest, hello_shows_that_a_server_is_a_cluster_node) {
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

TEST_F(HandshakeTest, replicas_and_cluster_nodes_are_recognised) {
  on("INFO replication", [] { return MadeReply::text("role:slave\r\n"); });
  Handshake replica(settings_, "c", true);
  run(replica);
  EXPECT_TRUE(replica.facts().is_replica);

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

TEST_F(HandshakeTest, a_replica_is_refused) {
  on("HELLO 3", [] { return hello_as("role", "replica"); });
  Handshake bare(settings_, "c", false);
  run(bare);
  expect_end(bare, Status::kServer, "redis://db:6379 is a replica and READONLY: locks need its");
  Handshake node(settings_, "c", true);
  run(node);
  expect_end(node, Status::kOk, "");
}

TEST_F(HandshakeTest, a_sentinel_is_refused) {
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

TEST_F(HandshakeTest, a_primary_named_by_sentinels_must_confirm_its_role) {
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

TEST_F(HandshakeTest, a_refused_or_unclear_identity_has_a_reason) {
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

}  // namespace
}  // namespace redlatch::protocol
