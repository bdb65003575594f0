// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ServerAttempt: an attempt to connect to one server, until a service may use the connections.
// Each dial takes at most connect_timeout, and its handshake one command timeout; one more each for
// the identity and, with RESP2, for the probe. After kDenied and kUnsupported another attempt is
// useless.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/dialogue.h"
#include "protocol/opening.h"

namespace redlatch::driver {

class ServerAttempt final : public Dialogue {
 public:
  // `settings` and `channel` outlive it. `asks_identity`: for a node of a quorum; one that cannot
  // be a node is asked nothing else.
  ServerAttempt(const Settings &settings, std::string_view channel, bool asks_identity, Nanos now)
      : settings_(settings), opening_(settings, channel, asks_identity, now) {}

  bool is_over() const override { return failure_ || opening_.is_over(); }
  const Outcome &outcome() const override { return failure_ ? *failure_ : opening_.outcome(); }
  Wire wire() const override { return of(opening_.wire()); }
  bool is_dialling() const override { return !failure_ && opening_.is_dialling(); }
  const Settings &target() const override { return settings_; }
  size_t awaited_count() const override { return failure_ ? 0 : opening_.awaited_count(); }
  Nanos limit() const override { return opening_.limit(); }
  // A second connection for messages replaces the first one, which is subscribed.
  bool uses(Wire wire) const override;
  const char *check() const override { return opening_.check(); }

  void on_dialled(const Send &send, Nanos now) override { opening_.on_dialled(send, now); }
  void on_failed(const Outcome &why, Nanos now) override;

  // When it is over.
  const ServerFacts &facts() const { return opening_.facts(); }

 private:
  void take(const Reply &reply, const Send &send, Nanos now) override;
  static Wire of(protocol::Opening::Wire wire) {
    return wire == protocol::Opening::Wire::kMessages ? kMessages : kCommands;
  }

  const Settings &settings_;
  protocol::Opening opening_;
  std::optional<Outcome> failure_;  // of a connection
};

}  // namespace redlatch::driver
