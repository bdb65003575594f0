// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Opening: the connections to one server, until a service may use them: which one to dial, its
// handshake, and the time limits. With RESP3 one connection serves all; with RESP2 messages have a
// second one. Replies in, commands out; no socket, no clock.
//
//   dial kCommands, handshake --> [dial kMessages, handshake --> probe on kCommands] --> over
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "protocol/handshake.h"

namespace redlatch::protocol {

class Opening {
 public:
  enum class Wire : uint8_t { kCommands, kMessages };
  using Send = Handshake::Send;

  // `settings` and `channel` outlive the opening. `asks_identity`: for a node of a quorum.
  Opening(const Settings &settings, std::string_view channel, bool asks_identity, Nanos now)
      : settings_(settings),
        commands_(settings, channel, asks_identity),
        limit_(after(now, settings.connect_timeout)) {}

  bool is_over() const { return is_over_; }
  // The connection that is to be dialled, or on which replies are awaited.
  Wire wire() const { return wire_; }
  bool is_dialling() const { return is_dialling_; }
  // How many replies are to come on wire() before anything else is sent; 0 while it is dialled.
  size_t awaited_count() const { return is_dialling_ || is_over_ ? 0 : current().awaited_count(); }
  // Until when the dial has to succeed, or the replies have to come.
  Nanos limit() const { return limit_; }

  // The bytes that `send` takes go to wire(), as it is after the call.
  void on_dialled(const Send &send, Nanos now);
  // The next reply on a connection; pushes are not replies. With RESP2 messages look like replies:
  // unrequested replies, and replies on the other connection, are ignored.
  void on_reply(Wire from, const Reply &reply, const Send &send, Nanos now);

  // When it is over: whether the connections can be used.
  const Outcome &outcome() const { return current().outcome(); }
  const ServerFacts &facts() const { return commands_.facts(); }
  // When it is over: messages come on a connection of their own.
  bool has_messages() const { return messages_ && messages_->facts().is_push_trusted; }
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  const Handshake &current() const { return wire_ == Wire::kMessages ? *messages_ : commands_; }
  Handshake &current() { return wire_ == Wire::kMessages ? *messages_ : commands_; }
  void note_identity(bool was_asking, Nanos now);

  const Settings &settings_;
  Handshake commands_;
  std::optional<Handshake> messages_;
  Wire wire_ = Wire::kCommands;
  bool is_dialling_ = true;
  bool is_over_ = false;
  Nanos limit_;
  Nanos remaining_ = 0;  // of the limit, while the identity has one of its own
};

}  // namespace redlatch::protocol
