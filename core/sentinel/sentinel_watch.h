// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelWatch: one connection to a sentinel, which reports when another server becomes the
// primary. It asks for epoch and address once it is subscribed, because a switch before that sent
// it no message; after each message, because messages have no epoch; and when nothing was heard for
// 3 s. Events in, commands and values out; no socket, no clock.
//
//   kHello --> kSubscribing --> kAsking <--> kWatching
//      \____________\______________\____________\--> kOver
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "sentinel/conversation.h"

namespace redlatch::sentinel {

class SentinelWatch {
 public:
  enum class Stage : uint8_t { kHello, kSubscribing, kAsking, kWatching, kOver };

  // `sentinel`: the settings of the sentinel.
  SentinelWatch(const Settings &sentinel, std::string primary_name);

  void start(const Send &send, Nanos now);
  // The next reply or push. @return what the sentinel says: that another server has become, or is
  // about to become, the primary (without an epoch), or its answer (with one).
  std::optional<Opinion> on_reply(const Reply &reply, const Send &send, Nanos now);
  // A sentinel that has sent nothing for 3 s is asked, and is given up if it does not answer.
  void on_timer(const Send &send, Nanos now);
  Nanos next_due() const { return due_; }

  Stage stage() const { return stage_; }
  bool is_over() const { return stage_ == Stage::kOver; }
  bool is_subscribed() const { return stage_ == Stage::kAsking || stage_ == Stage::kWatching; }
  HostPort sentinel() const { return {settings_.host, settings_.port}; }
  // When it is over: why.
  const Outcome &outcome() const { return outcome_; }
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  std::optional<Opinion> on_push(const Reply &reply, const Send &send);
  std::optional<Opinion> on_answer(const Reply &reply, const Send &send);
  std::optional<Opinion> read_message(std::string_view channel, std::string_view text) const;
  void ask_again(const Send &send);
  void end(Outcome why);

  Settings settings_;
  std::string primary_name_;
  Stage stage_ = Stage::kHello;
  size_t subscribed_count_ = 0;  // of the channels, or refused
  Opinion answer_;
  int answer_count_ = 0;      // of the questions of kAsking
  bool must_repeat_ = false;  // a message came after the questions: their answers may be older
  Nanos due_ = kNever;
  Outcome outcome_;
};

}  // namespace redlatch::sentinel
