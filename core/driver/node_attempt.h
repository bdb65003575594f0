// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeAttempt: an attempt of a client to connect to one of its nodes, or to read the slots of its
// cluster. It chooses the dialogue, begins another one with the next password, and reports the
// result. Its host holds the dialogue, in a thread that may block or event by event.
//
//   login() says when: kDialling --> begin(), the dialogue, end() --> .. --> kOver
//   conclude(), and then NodeConnection::on_attempt_over() or become_cluster()
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/dialogue.h"
#include "driver/login_attempt.h"
#include "driver/primary_attempt.h"
#include "driver/primary_follower.h"
#include "driver/server_attempt.h"
#include "driver/slot_reading.h"
#include "lock/service.h"
#include "protocol/slots.h"
#include "sentinel/discovery.h"

namespace redlatch::driver {

class NodeAttempt {
 public:
  enum class Result : uint8_t {
    kFailed,
    kConnected,  // the connections of the dialogue are those to the node: NodeConnection::make()
    kSlots,      // the slots were read
    kCluster,    // the only server is a node of a cluster: become_cluster()
  };

  // `settings`: of the node. `follower`: if sentinels name its server, else nullptr; outlives the
  // attempt. Throws std::bad_alloc.
  NodeAttempt(const Settings &settings, const lock::LockService &service, size_t node,
              PrimaryFollower *follower);
  NodeAttempt(const NodeAttempt &) = delete;
  NodeAttempt &operator=(const NodeAttempt &) = delete;

  LoginAttempt &login() { return login_; }
  // The channel that the connection is subscribed to.
  const std::string &channel() const { return channel_; }

  // ---- the dialogue. Another thread may hold it, until the attempt is over
  // login() is at kDialling, and no dialogue is held. Throws std::bad_alloc.
  Dialogue &begin(Nanos now);
  // Between begin() and end(), else nullptr.
  Dialogue *dialogue() { return held_; }
  // The dialogue is over.
  void end(Nanos now);

  // ---- login() is over, or the attempt is ended before
  // The host has no memory, or cannot use the connections.
  void fail(Outcome &&why) noexcept;
  // Notifies the follower. Called once.
  Result conclude() noexcept;
  // It has connected. Notifies the follower, which logs a new primary. Throws std::bad_alloc.
  void note_success() const;
  // After conclude().
  const Outcome &outcome() const { return outcome_; }
  // .. if it is ok.
  const ServerFacts &facts() const;
  // .. and the slots of a cluster were read.
  bool has_slots() const { return slots_.has_value(); }
  std::span<const protocol::SlotRange> slots() const { return slots_->ranges(); }

 private:
  Dialogue &make(Nanos now);

  LoginAttempt login_;
  PrimaryFollower *const follower_;
  const bool reads_slots_;
  std::vector<HostPort> servers_;  // that are asked for the slots
  std::string channel_;
  bool needs_identity_ = false;
  sentinel::Knowledge known_;  // of the sentinels
  // One kind of dialogue: the last one.
  std::optional<ServerAttempt> server_;
  std::optional<PrimaryAttempt> primary_;
  std::optional<SlotReading> slots_;
  Dialogue *held_ = nullptr;
  Outcome outcome_;
};

}  // namespace redlatch::driver
