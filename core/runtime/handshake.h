// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What is said on a fresh connection before it is used: protocol, user, database, scripts, channel.
#pragma once

#include <memory>
#include <string>

#include "base/settings.h"
#include "base/status.h"
#include "embedded/membership.h"
#include "lock/service.h"
#include "net/connection.h"

namespace redlatch::runtime {

// To one server, ready to be used.
struct Connections {
  std::unique_ptr<net::Connection> commands;
  // With RESP2 messages need a connection of their own; with RESP3 they come with the replies.
  std::unique_ptr<net::Connection> messages;
  lock::ServerFacts facts;
};

// Connect and say what has to be said. Each connection has one connect limit and one command time
// limit; `wake_fd` ends it when it turns readable. kDenied and kUnsupported will not pass by trying
// again; the others may. `membership`: of an embedded server, else NULL. Throws std::bad_alloc.
// `asks_identity`: a node of a quorum is asked who it is; one that cannot be a node, nothing else.
Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::Membership *membership, bool asks_identity, int wake_fd,
                         Connections &opened);

}  // namespace redlatch::runtime
