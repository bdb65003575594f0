// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeAttempt: an attempt of a client to connect to one of its nodes, or to read the slots of its
// cluster: which dialogue that takes, with which passwords, and what the client has then. Its host
// holds the dialogue, in a thread that may block or event by event.
//
//   login() says when: kDialling --> begin(), the dialogue, end() --> .. --> kOver
//   conclude(), and then NodeConnection::on_attempt_over() or become_cluster()
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
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
  const LoginAttempt &login() const { return login_; }
  // The channel that the connection is subscribed to.
  const std::string &channel() const { return channel_; }

  // ---- the dialogue. Another thread may hold it, until the attempt is over
  // login() is at kDialling, and no dialogue is held. Throws std::bad_alloc.
  Dialogue &begin(Nanos now);
  // Between begin() and end(), else nullptr.
  Dialogue *dialogue() { return is_held_ ? dialogue_.get() : nullptr; }
  // The dialogue is over.
  void end(Nanos now);

  // ---- login() is over, or the attempt is ended before
  // The host has no memory, or cannot use the connections.
  void fail(Outcome &&why) noexcept;
  // Tells the follower.
  Result conclude() noexcept;
  // After conclude().
  const Outcome &outcome() const { return outcome_; }
  // .. if it is ok.
  const ServerFacts &facts() const;
  // .. and the slots of a cluster were read.
  bool has_slots() const { return slots_ != nullptr; }
  std::span<const protocol::SlotRange> slots() const { return slots_->ranges(); }

 private:
  void make(Nanos now);

  LoginAttempt login_;
  PrimaryFollower *const follower_;
  const bool reads_slots_;
  std::vector<HostPort> servers_;  // that are asked for the slots
  std::string channel_;
  bool needs_identity_ = false;
  sentinel::Knowledge known_;  // of the sentinels
  sentinel::Opinion opinion_;  // which of them has named the primary
  // The last dialogue, and one of its kinds.
  std::unique_ptr<Dialogue> dialogue_;
  ServerAttempt *server_ = nullptr;
  PrimaryAttempt *primary_ = nullptr;
  SlotReading *slots_ = nullptr;
  bool is_held_ = false;
  bool has_failed_ = false;
  Outcome outcome_;
};

}  // namespace redlatch::driver
