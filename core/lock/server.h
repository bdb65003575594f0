// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Server: one server, without I/O: the connection to it, and what is known of it and asked there.
// Each lock names the server that it is at, and what is sent about the lock goes there.
#pragma once

#include <cstddef>
#include <span>

#include "base/random.h"
#include "base/settings.h"
#include "lock/confirmations.h"
#include "lock/lock_state.h"
#include "lock/service.h"
#include "operate/health.h"
#include "operate/names.h"
#include "protocol/command.h"
#include "session/channel.h"
#include "session/node_clock.h"
#include "session/session.h"

namespace redlatch::lock {

struct Server {
  struct Owners {
    Confirmations::Owner &confirmations;
    operate::Names::Owner &names;
    operate::Health::Owner &health;
  };

  // `random` makes the channel. Settings, output, entropy and owners outlive it. The output knows
  // it by the number `node`.
  Server(const Settings &settings, std::span<const uint8_t, 16> random, Entropy &entropy,
         Output &output, size_t node, const Owners &owners);
  Server(const Server &) = delete;
  Server &operator=(const Server &) = delete;

  const Settings &settings;
  const size_t node;
  session::Session session;
  session::Channel channel;
  session::NodeClock clock;
  protocol::ServerFeatures features;
  operate::Names names;
  operate::Health health;
  Confirmations confirmations;
  Throttle throttle;
  bool is_tracking = false;  // CLIENT TRACKING was sent on this connection
  EndedPlaces ended_places;
  Nanos resend_at = kNever;     // when to send the postponed ones of its requests again
  bool is_wanted = false;       // the connection, for a delegated command
  size_t lock_count = 0;        // names that are at it
  size_t waiting_count = 0;     // .. their records that are asking, queued, or waiting to upgrade
  size_t recallable_count = 0;  // .. those that have a lock and answer a recall
  size_t request_count = 0;     // of Requests

  // True if something needs the connection.
  bool has_work() const { return lock_count > 0 || request_count > 0 || is_wanted; }
  // A message may come: for a waiter, or a recall.
  bool expects_push() const { return waiting_count > 0 || recallable_count > 0; }
  // True if an attempt to connect is under way, or is due.
  bool is_connecting(Nanos now) const {
    return session.is_connecting() || (has_work() && session.connect_at() <= now);
  }
};

}  // namespace redlatch::lock
