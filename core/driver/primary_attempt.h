// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// PrimaryAttempt: an attempt to connect to the primary that sentinels name. It asks them, and a
// server that turns out not to be the primary is left for the next one that is named. To find it
// and to reach it takes at most connect_timeout together.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/dialogue.h"
#include "driver/server_attempt.h"
#include "sentinel/discovery.h"

namespace redlatch::driver {

class PrimaryAttempt final : public Dialogue {
 public:
  // `settings` and `channel` outlive it. `known`: of the sentinels.
  PrimaryAttempt(const Settings &settings, std::string_view channel, sentinel::Knowledge known,
                 Nanos now);

  bool is_over() const override { return discovery_.is_over(); }
  const Outcome &outcome() const override { return discovery_.outcome(); }
  Wire wire() const override { return server_ ? server_->wire() : kSentinel; }
  bool is_dialling() const override;
  const Settings &target() const override { return server_ ? primary_ : discovery_.sentinel(); }
  size_t awaited_count() const override;
  Nanos limit() const override { return server_ ? server_->limit() : discovery_.limit(); }
  bool uses(Wire wire) const override;
  const char *check() const override;

  void on_dialled(const Send &send, Nanos now) override;
  void on_failed(const Outcome &why, Nanos now) override;

  // When it is over, once.
  sentinel::Knowledge take_knowledge() noexcept { return discovery_.take_knowledge(); }
  sentinel::Opinion take_opinion() noexcept { return discovery_.take_opinion(); }
  // .. and ok.
  const ServerFacts &facts() const { return server_->facts(); }

 private:
  void take(const Reply &reply, const Send &send, Nanos now) override;
  void continue_at(Nanos now);

  const Settings &settings_;
  const std::string_view channel_;
  sentinel::Discovery discovery_;
  Settings primary_;                     // the server that is named
  std::optional<ServerAttempt> server_;  // while a server is named, and at the end
};

}  // namespace redlatch::driver
