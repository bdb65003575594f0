// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelWatch: one connection to a sentinel, which reports when another server becomes the
// primary. Once it is subscribed it asks for the address, because a switch before that sent it no
// message. Events in, commands and values out; no socket, no clock.
//
//   kHello --> kSubscribing --> kAsking --> kWatching
//      \____________\______________\____________\--> kOver
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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
  // The next reply or push. @return what the sentinel says now, if that is news: a switch (which
  // has no epoch) or the answer to the question for the address.
  std::optional<Opinion> on_reply(const Reply &reply, const Send &send, Nanos now);
  // A sentinel that has sent nothing for a while is asked for a sign of life, and is given up if
  // none comes.
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
  std::optional<Opinion> on_answer(const Reply &reply);
  std::optional<Opinion> read_switch(const std::string &text) const;
  void end(Outcome why);

  const Settings settings_;
  const std::string primary_name_;
  Stage stage_ = Stage::kHello;
  Opinion answer_;
  int answer_count_ = 0;  // of the questions of kAsking
  bool is_pinged_ = false;
  Nanos due_ = kNever;
  Outcome outcome_;
};

// True if `opinion` means that the client must leave the server it knows as the primary. A switch
// counts at once; an address that was asked for, only from a later epoch.
bool has_moved(const Opinion &opinion, const HostPort &primary, int64_t epoch);

}  // namespace redlatch::sentinel
