// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeConnection: the connection of a client to one of its nodes, without the sockets: its state,
// the login of its server, and the events of the service for attempts and input. The host sends
// commands in the order in which they were appended, and gives it replies and messages.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "driver/authentication.h"
#include "driver/log.h"
#include "driver/login.h"
#include "driver/node_attempt.h"
#include "driver/node_record.h"
#include "lock/service.h"

namespace redlatch::driver {

class NodeConnection {
 public:
  // The number of a login that the server has refused; 0: none.
  using Refused = uint64_t;

  // `settings` and `log` outlive it.
  NodeConnection(const Settings &settings, size_t node, Log &log)
      : settings_(settings), node_(node), log_(log), record_(settings, log) {}

  // Between make() and end().
  bool is_made() const { return state_ != State::kNone; }
  // .. and dropped: the host must end it.
  bool is_broken() const { return state_ == State::kBroken; }
  bool is_usable() const { return state_ == State::kUsable; }

  // ---- attempts
  // Called while none is under way. @return true if one has begun: it ends with on_attempt_over(),
  // or with on_connect_failed() of the service if the host cannot start it. `follower`: if
  // sentinels name its server, else nullptr. After news of another primary it begins without a
  // pause.
  [[nodiscard]] bool begin_attempt(lock::LockService &service, PrimaryFollower *follower,
                                   Nanos now);
  // One has succeeded, with this login: commands may be appended, and messages may come.
  void make(const ServerFacts &facts, uint64_t login) noexcept;
  // One is concluded, and make() was called if it has connected. `is_only`: as in NodeRecord.
  // Throws std::bad_alloc, and then the connection is to be dropped; of slots, what was planned is
  // done with the next event, or they are read again.
  void on_attempt_over(lock::LockService &service, const NodeAttempt &attempt, bool is_only,
                       Nanos now);

  // ---- output
  // A command was appended, also AUTH.
  void on_append() { auth_.on_append(); }
  // Append AUTH, if the server has an older login. Throws std::bad_alloc, and then the connection
  // is unusable. @return whether it did.
  bool authenticate(const Login &newest, const Authentication::Send &send);
  // The number of the last login that the server was sent.
  uint64_t login() const { return auth_.login(); }
  bool awaits_auth() const { return auth_.is_awaited(); }

  // ---- input. All of these throw std::bad_alloc, and then the connection is to be dropped.
  // The next reply answers an AUTH, which is no command of the service.
  bool is_auth_next() const { return auth_.is_next(); }
  // A reply, or a message between the replies.
  Refused take(lock::LockService &service, const Reply &arrived, Nanos now);
  // A message. With RESP2 replies on the connection for messages look like messages: they are
  // ignored.
  void take_message(lock::LockService &service, const Reply &message, Nanos now) const;
  // A reply to an AUTH, also on the connection at the side. A refusal ends nothing: the server
  // continues with the user that it knows. The first of several is logged.
  Refused note_auth(uint64_t login, const Reply &reply);

  // ---- the end
  // The connection is unusable from now on. Does nothing unless is_made().
  void drop() {
    if (is_made()) state_ = State::kBroken;
  }
  void end();

  const NodeRecord &record() const { return record_; }
  NodeRecord &record() { return record_; }

 private:
  enum class State : uint8_t { kNone, kUsable, kBroken };

  const Settings &settings_;
  const size_t node_;
  Log &log_;
  State state_ = State::kNone;
  NodeRecord record_;
  Authentication auth_;
  bool is_refused_ = false;  // its last AUTH
};

}  // namespace redlatch::driver
