// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/server.h"

namespace redlatch::lock {

Server::Server(const Settings &settings_, std::span<const uint8_t, 16> random, Entropy &entropy,
               Output &output, size_t node_, const Owners &owners)
    : settings(settings_),
      node(node_),
      session(settings, output, entropy, node, session::Session::Connection::kCommands),
      channel(settings.name_space, random),
      clock(settings.is_of_cluster),
      names(settings, session, channel, owners.names),
      health(settings, session, channel, node, owners.health),
      confirmations(settings, output, entropy, session, node, owners.confirmations) {
  features.prefix = channel.prefix();
  features.is_cluster = settings.is_of_cluster;
}

}  // namespace redlatch::lock
