// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SlotReading: asks one server after the other which node of a cluster serves which slot, until one
// answers that is connected to most of the cluster. Takes at most connect_timeout for all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/dialogue.h"
#include "protocol/handshake.h"
#include "protocol/slots.h"

namespace redlatch::driver {

class SlotReading final : public Dialogue {
 public:
  // `settings`, those of the cluster, outlive it.
  SlotReading(const Settings &settings, std::vector<HostPort> servers, Nanos now);

  bool is_over() const override { return stage_ == Stage::kOver; }
  const Outcome &outcome() const override { return outcome_; }
  bool is_dialling() const override { return stage_ == Stage::kDialling; }
  const Settings &target() const override { return target_; }
  size_t awaited_count() const override;
  Nanos limit() const override { return limit_; }
  bool uses(Wire) const override { return stage_ == Stage::kGreeting || stage_ == Stage::kAsking; }
  const char *check() const override;

  void on_dialled(const Send &send, Nanos now) override;
  void on_failed(const Outcome &why, Nanos now) override;

  // When it is over and ok.
  const std::vector<protocol::SlotRange> &ranges() const { return ranges_; }
  // Those of the last server that answered.
  const ServerFacts &facts() const { return facts_; }

 private:
  void take(const Reply &reply, const Send &send, Nanos now) override;
  enum class Stage : uint8_t {
    kDialling,
    kGreeting,  // the handshake
    kAsking,    // the answers to the questions are awaited
    kOver,
  };

  void dial_next(Nanos now);

  const Settings &settings_;
  const std::vector<HostPort> servers_;
  const Nanos end_;  // of all of it
  Stage stage_ = Stage::kOver;
  size_t turn_ = 0;  // of the servers
  Settings target_;
  Nanos limit_ = 0;
  std::optional<protocol::Handshake> handshake_;
  size_t answer_count_ = 0;
  bool is_cut_off_ = false;
  ServerFacts facts_;
  std::vector<protocol::SlotRange> ranges_;
  Outcome outcome_;
};

}  // namespace redlatch::driver
