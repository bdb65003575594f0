// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SideAttempt: an attempt to connect at the side of a connection that is open: no messages come
// there. A replica is a failure.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/dialogue.h"
#include "protocol/handshake.h"

namespace redlatch::driver {

class SideAttempt final : public Dialogue {
 public:
  // `settings` outlive it.
  SideAttempt(const Settings &settings, Nanos now)
      : settings_(settings),
        handshake_(protocol::Handshake::for_side(settings)),
        limit_(after(now, settings.connect_timeout)) {}

  bool is_over() const override { return outcome_.has_value(); }
  const Outcome &outcome() const override { return *outcome_; }
  bool is_dialling() const override { return is_dialling_ && !is_over(); }
  const Settings &target() const override { return settings_; }
  size_t awaited_count() const override { return is_over() ? 0 : handshake_.awaited_count(); }
  Nanos limit() const override { return limit_; }
  bool uses(Wire) const override { return is_over() ? outcome_->ok() : !is_dialling_; }
  const char *check() const override { return handshake_.check(); }

  void on_dialled(const Send &send, Nanos now) override;
  void on_failed(const Outcome &why, Nanos) override { outcome_ = why; }

 private:
  void take(const Reply &reply, const Send &send, Nanos now) override;
  const Settings &settings_;
  protocol::Handshake handshake_;
  Nanos limit_;
  bool is_dialling_ = true;
  std::optional<Outcome> outcome_;
};

}  // namespace redlatch::driver
