// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Session: the connection to one server, without I/O: its state, the calls under way in the order
// of their answers, when to connect, and why it is down. It handles what is common to all calls: an
// unexpected answer, NOSCRIPT, a replica, a lost connection. Their kinds do the rest.
//
//   kDown --begin_connect--> kConnecting --on_connected--> kUp
//   kConnecting, kUp --drop--> kBroken
//   all --on_connect_failed, on_disconnected--> kDown
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <set>

#include "base/checked.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "protocol/command.h"
#include "session/call.h"
#include "session/message_check.h"
#include "session/transport.h"
#include "timing/backoff.h"

namespace redlatch::session {

class Session {
 public:
  // kBroken: given up, and not yet reported as disconnected.
  enum class State : uint8_t { kDown, kConnecting, kUp, kBroken };
  // kWait: the second connection, for WAIT. It has no text of its failures.
  enum class Connection : uint8_t { kCommands, kWait };

  // Settings, transport and entropy outlive the session.
  Session(const Settings &settings, Transport &transport, Entropy &entropy, size_t node,
          Connection connection);

  bool is_down() const { return state_ == State::kDown; }
  bool is_up() const { return state_ == State::kUp; }
  // The reason why it is down, or was last.
  const Outcome &failure() const { return failure_; }
  // The failure of a call whose answer was lost. Its text needs no memory.
  const Outcome &lost() const { return lost_; }

  // ---- the connection
  // @return true to connect now; then one of the next two follows.
  [[nodiscard]] bool begin_connect(Nanos now);
  void on_connected() {
    assert(state_ == State::kConnecting || is_down());
    state_ = State::kUp;
  }
  void on_connect_failed(const Outcome &why, Nanos now);
  // Notifies the calls under way. `skips_pause`: connect again at once.
  void on_disconnected(bool skips_pause, Nanos now) noexcept;
  void drop();
  // A connection that is down need not wait for its next attempt.
  void connect_soon(Nanos now);
  // When to connect, if it is wanted; kNever while it is not down.
  Nanos connect_at() const { return is_down() ? connect_at_ : kNever; }
  bool is_connecting() const { return state_ == State::kConnecting; }
  // For a session that never connects, while something else is tried.
  void set_trying(bool is_on) { state_ = is_on ? State::kConnecting : State::kDown; }
  // The next connection may lead to another server, which has other data.
  bool may_change_server() const { return may_change_server_; }

  // ---- messages, when they have a connection of their own: it may die silently
  void open_messages(Nanos now);
  void on_messages_heard(Nanos now) { messages_.give(&MessageCheck::on_heard, now); }
  // A waiter relies on them.
  void on_waiting() { messages_.give(&MessageCheck::on_waiting); }
  // A poll has found a grant that was made `age` ago.
  void on_late_grant(Nanos age, Nanos now);
  void check_messages(bool is_waiting, Nanos now);

  // ---- calls
  // Throws std::bad_alloc, and then nothing was sent.
  void send(protocol::Command &command, Call call);
  [[nodiscard]] bool try_send(protocol::Command &command, Call call) noexcept;
  void on_reply(const Reply &reply, Nanos now);
  // Gives an answer to its call. NOSCRIPT to EVAL, which has the text of the script, is a refusal.
  static void deliver(const Call &call, const Reply &reply, Nanos now);
  const std::deque<Call> &in_flight() const { return in_flight_; }
  // False if as many as allowed are under way.
  bool has_room() const { return in_flight_.size() < kMaxInFlight; }
  // Adds the slots of a cluster that calls under way are about. Throws std::bad_alloc.
  void add_slots(std::set<uint16_t> &slots) const;
  // When an answer is late, or check_messages() is due.
  Nanos due() const { return std::min(late_at(settings_.command_timeout), messages_->due()); }
  // When the oldest answer is late by `limit`.
  Nanos late_at(Nanos limit) const;
  // When to repeat a call that the server cannot carry out now: a little later each time.
  Nanos next_retry(Nanos now) { return now + repetition_.next(entropy_.next()); }

 private:
  void leave_replica(Nanos now);
  void follow(MessageCheck::Command command, std::string_view why);

  const Settings &settings_;
  Transport &transport_;
  Entropy &entropy_;
  const size_t node_;
  const Connection connection_;

  State state_ = State::kDown;
  Checked<MessageCheck> messages_;
  std::deque<Call> in_flight_;
  Nanos connect_at_ = 0;
  timing::Backoff reconnect_ = timing::kReconnect;
  timing::Backoff repetition_ = timing::kServerRetry;
  Nanos keeps_pauses_until_ = 0;  // reconnect_ is not reset before: the server was a replica
  bool may_change_server_;
  bool is_at_replica_ = false;  // this connection, which is left for that
  Outcome failure_;
  const Outcome lost_;  // made early: it must not fail for want of memory
};

}  // namespace redlatch::session
