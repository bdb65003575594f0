// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SlotReader: what core/runtime does when a client of a cluster wants to know which node has which
// slot: it asks one server after the other, by the product's own handshake and questions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/settings.h"
#include "base/status.h"
#include "context.h"
#include "network.h"
#include "protocol/cluster_info.h"
#include "protocol/handshake.h"

namespace redlatch::sim {

class Client;

class SlotReader final : public ClientEnd {
 public:
  // `settings` outlive it.
  SlotReader(Client &client, Context &context, const Settings &settings)
      : client_(client), context_(context), settings_(settings) {}

  // Client::on_slots() or Client::on_no_slots() follows.
  void begin(std::vector<HostPort> servers);
  bool is_reading() const { return is_reading_; }
  uint64_t link() const { return link_; }  // 0: none
  void hang_up(Network::Ending ending);    // also when the process has ended

  // ClientEnd
  void received(uint64_t id, Messages messages) override;
  void closed(uint64_t id) override;

 private:
  void next();
  void dialled();
  template <class Event>
  void step(const Event &event);
  void ask();
  void take(const Message &message);
  void fail(const Outcome &why);

  Client &client_;
  Context &context_;
  const Settings &settings_;
  bool is_reading_ = false;
  std::vector<HostPort> servers_;
  size_t next_ = 0;  // of the servers
  Nanos end_ = 0;
  Settings server_settings_;  // of the one that is asked
  std::optional<protocol::Handshake> handshake_;
  std::vector<Value> answers_;
  Outcome failure_;
  uint64_t link_ = 0;
  uint64_t attempt_ = 0;  // counts servers that were asked
};

}  // namespace redlatch::sim
