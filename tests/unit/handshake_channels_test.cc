// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the handshake chooses the kind of channel that all clients of the server choose, and trusts
// messages only after a probe.
#include "handshake_world.h"

namespace redlatch::protocol {
namespace {

class ChannelsTest : public HandshakeWorld {};

TEST_F(ChannelsTest, a_refused_subscription_means_polling) {
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

TEST_F(ChannelsTest, a_redirected_subscription_names_the_node_that_has_the_channel) {
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

// A node that cannot reach the sharded channel of a waiter notifies it by the plain one.
TEST_F(ChannelsTest, a_client_of_a_cluster_also_subscribes_to_the_plain_channel) {
  Handshake alone(settings_, "c", false);
  run(alone);
  EXPECT_EQ(count_of("SUBSCRIBE c"), 0U);
  settings_.is_of_cluster = true;
  for (const bool is_refused : {false, true}) {
    if (is_refused) refuse("SUBSCRIBE", "NOPERM this user has no permissions");
    said_.clear();
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_TRUE(handshake.facts().is_push_trusted) << "the waiter hears by its next poll";
    EXPECT_EQ(count_of("SSUBSCRIBE c"), 1U);
    EXPECT_EQ(count_of("SUBSCRIBE c"), 1U);
    EXPECT_EQ(count_of("EVAL"), 1U);
  }
  refuse("SSUBSCRIBE ", "MOVED 7 there:7001");
  said_.clear();
  Handshake moved(settings_, "c", false);
  run(moved);
  EXPECT_EQ(count_of("SUBSCRIBE c"), 0U) << "its channel is drawn anew";
}

TEST_F(ChannelsTest, a_proxy_that_counts_receivers_wrongly_is_not_trusted) {
  for (const auto &[own, unused] : {std::pair{0, 0}, {1, 1}, {-1, -1}, {2, 0}}) {
    on("EVAL", [own = own, unused = unused] {
      return MadeReply::list(MadeReply::integer(own), MadeReply::integer(unused));
    });
    Handshake handshake(settings_, "c", false);
    run(handshake);
    expect_end(handshake, Status::kOk, "");
    EXPECT_FALSE(handshake.facts().is_push_trusted);
    EXPECT_EQ(handshake.facts().is_channel_taken, own == 2);
    const std::string why = own < 0 ? "refused SPUBLISH" : "received by " + std::to_string(own);
    EXPECT_NE(handshake.facts().why_not_trusted.find(why), std::string::npos);
  }
  refuse("EVAL", "BUSY Redis is busy running a script");
  Handshake busy(settings_, "c", false);
  run(busy);
  expect_end(busy, Status::kServer, "refused a script: BUSY");
}

// ---- which kind of channel ---------------------------------------------------------------------

TEST_F(ChannelsTest, a_server_of_any_version_may_lack_sharded_channels) {
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

TEST_F(ChannelsTest, the_rights_of_a_user_do_not_change_the_kind_of_channel) {
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

TEST_F(ChannelsTest, a_server_without_any_channels_is_polled) {
  for (const char *name : {"SSUBSCRIBE", "SPUBLISH", "SUBSCRIBE"}) refuse(name, kUnknown);
  on("SSUBSCRIBE ", [] { return MadeReply::error(kUnknown); });
  Handshake handshake(settings_, "c", false);
  run(handshake);
  expect_end(handshake, Status::kOk, "");
  EXPECT_FALSE(handshake.facts().is_push_trusted);
  EXPECT_FALSE(handshake.facts().is_sharded);
  EXPECT_EQ(count_of("SPUBLISH"), 1U) << "asked once";
}

TEST_F(ChannelsTest, a_probe_whose_key_is_refused_is_sent_without_a_key) {
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

TEST_F(ChannelsTest, unexpected_replies_change_nothing) {
  Handshake handshake(settings_, "c", false);
  run(handshake);
  handshake.on_reply(MadeReply::error("ERR late").get(), send(), now_);
  expect_end(handshake, Status::kOk, "");
}

}  // namespace
}  // namespace redlatch::protocol
