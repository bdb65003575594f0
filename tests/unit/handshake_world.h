// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// HandshakeWorld: a handshake with a server made of rules, one for each command, that the tests
// change; check() after every step.
#pragma once

#include "protocol/handshake.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lock_client_world.h"
#include "protocol/scripts.h"

namespace redlatch::protocol {

using Stage = Handshake::Stage;

inline constexpr Nanos kSecond = 1000 * kMs;
inline constexpr const char *kInfo =
    "# Server\r\nredis_version:7.4.1\r\nredis_mode:standalone\r\n"
    "run_id:abc\r\nuptime_in_seconds:77\r\n";

// The reply to a command without its arguments.
inline constexpr const char *kArity = "ERR wrong number of arguments for 'x' command";
inline constexpr const char *kUnknown = "ERR unknown command 'x', with args beginning with: ";

inline MadeReply hello_of(const std::string &server, const std::string &version) {
  return MadeReply::list(MadeReply::text("server"), MadeReply::text(server),
                         MadeReply::text("version"), MadeReply::text(version));
}

class HandshakeWorld : public ::testing::Test {
 protected:
  HandshakeWorld() {
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

}  // namespace redlatch::protocol
