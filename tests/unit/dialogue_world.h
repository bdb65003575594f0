// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// DialogueWorld: a host of dialogues without I/O, and what servers reply.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/dialogue.h"
#include "lock_client_world.h"
#include "protocol/scripts.h"

namespace redlatch::driver {

inline constexpr Nanos kSecond = 1000 * kMs;
inline const HostPort kA{"a", "1"}, kB{"b", "2"}, kC{"c", "3"};

inline MadeReply text(const char *value) { return MadeReply::text(value); }
inline MadeReply hello(const char *mode = "standalone") {
  return MadeReply::list(text("server"), text("redis"), text("version"), text("7.4.1"),
                         text("mode"), text(mode));
}
inline MadeReply no_resp3() { return MadeReply::error("NOPROTO unsupported protocol version"); }
inline MadeReply denied() { return MadeReply::error("WRONGPASS invalid username-password pair"); }
inline MadeReply info(const char *role) {
  return text(
      role[0] == 'm'
          ? "redis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:77\r\nrole:master\r\n"
          : "redis_mode:standalone\r\nrun_id:abc\r\nuptime_in_seconds:77\r\nrole:slave\r\n");
}
inline MadeReply counts() { return MadeReply::list(MadeReply::integer(1), MadeReply::integer(0)); }
inline MadeReply address(const HostPort &of) {
  return MadeReply::list(MadeReply::text(of.host), MadeReply::text(of.port));
}

class DialogueWorld {
 public:
  using Wire = Dialogue::Wire;

  DialogueWorld() {
    settings_.host = "db";
    settings_.connect_timeout = 3 * kSecond;
    settings_.command_timeout = 2 * kSecond;
  }

  void dialled(Dialogue &dialogue) {
    ASSERT_TRUE(dialogue.is_dialling());
    ASSERT_FALSE(dialogue.uses(dialogue.wire())) << "it is closed before it is dialled";
    dialled_.push_back(dialogue.target().host);
    dialogue.on_dialled(send(), now_ += kMs);
    look(dialogue);
    ASSERT_TRUE(dialogue.uses(dialogue.wire()));
    ASSERT_GT(dialogue.awaited_count(), 0U);
  }
  void reply(Dialogue &dialogue, const MadeReply &reply) {
    dialogue.on_reply(dialogue.wire(), reply.get(), send(), now_ += kMs);
    look(dialogue);
  }
  void fails(Dialogue &dialogue, const Outcome &why) {
    dialogue.on_failed(why, now_ += kMs);
    look(dialogue);
  }
  void load_scripts(Dialogue &dialogue) {
    for (size_t i = 0; i < protocol::kScriptCount; i++) reply(dialogue, text("OK"));
  }
  // A server with RESP2 answers all that is asked.
  void open(Dialogue &dialogue) {
    dialled(dialogue);
    reply(dialogue, no_resp3());
    reply(dialogue, hello());
    load_scripts(dialogue);
    dialled(dialogue);
    reply(dialogue, no_resp3());
    reply(dialogue, hello());
    reply(dialogue, text("OK"));
    reply(dialogue, counts());
  }
  // A node of a cluster answers.
  void tell_slots(Dialogue &dialogue, const char *state = "cluster_state:ok\r\n") {
    dialled(dialogue);
    reply(dialogue, hello("cluster"));
    EXPECT_EQ(dialogue.awaited_count(), 2U);
    reply(dialogue, text(state));
    reply(dialogue,
          MadeReply::list(MadeReply::list(MadeReply::integer(0), MadeReply::integer(16383),
                                          MadeReply::list(text("a"), MadeReply::integer(1)))));
  }
  // A sentinel names `primary`.
  void name_primary(Dialogue &dialogue, const HostPort &primary) {
    ASSERT_EQ(dialogue.wire(), Dialogue::kSentinel);
    dialled(dialogue);
    reply(dialogue, hello("sentinel"));
    reply(dialogue, address(primary));
    reply(dialogue, MadeReply::list());
    reply(dialogue, MadeReply::list(text("config-epoch"), text("3")));
  }
  // A server says its role.
  void greet_primary(Dialogue &dialogue, const char *role) {
    ASSERT_EQ(dialogue.wire(), Dialogue::kCommands);
    EXPECT_FALSE(dialogue.uses(Dialogue::kSentinel));
    dialled(dialogue);
    reply(dialogue, hello());
    load_scripts(dialogue);
    reply(dialogue, info(role));
    reply(dialogue, info(role));
    reply(dialogue, MadeReply::list(text("1000"), text("500000")));
  }
  void look(const Dialogue &dialogue) {
    ASSERT_STREQ(dialogue.check(), nullptr);
    ASSERT_FALSE(dialogue.is_over() && dialogue.is_dialling());
    ASSERT_TRUE(dialogue.is_over() || dialogue.is_dialling() || dialogue.awaited_count() > 0);
  }
  static void expect_end(const Dialogue &dialogue, Status status, const std::string &words) {
    ASSERT_TRUE(dialogue.is_over());
    EXPECT_EQ(dialogue.awaited_count(), 0U);
    EXPECT_EQ(dialogue.outcome().status, status);
    EXPECT_NE(dialogue.outcome().message.find(words), std::string::npos)
        << dialogue.outcome().message;
  }
  Dialogue::Send send() {
    return [this](std::span<const std::string_view> argv) { sent_.emplace_back(argv[0]); };
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  std::vector<std::string> sent_, dialled_;
};

}  // namespace redlatch::driver
