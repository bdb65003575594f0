// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Connections: the sockets of one server, opened and through their handshakes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "embedded/server_attachment.h"
#include "net/connection.h"
#include "protocol/slots.h"
#include "sentinel/discovery.h"

namespace redlatch::runtime {

struct Connections {
  std::unique_ptr<net::Connection> commands;
  // With RESP2 messages need a connection of their own; with RESP3 they come with the replies.
  std::unique_ptr<net::Connection> messages;
  std::vector<resp::ReplyPtr> pushes;  // that came on `commands` meanwhile
  ServerFacts facts;
};

// The known sentinels of a link, and the one that named the primary.
struct FoundPrimary {
  sentinel::Knowledge known;
  sentinel::Opinion opinion;
};

// Which node of a cluster serves which slot, and what the node that said so is.
struct FoundSlots {
  std::vector<HostPort> servers;  // to be asked
  std::vector<protocol::SlotRange> ranges;
  ServerFacts facts;
};

// Connects and performs the handshakes. Blocks: for each connection at most connect_timeout and one
// command timeout, and one more command timeout each for the identity and, with RESP2, for the
// probe; `wake_fd` ends it when it turns readable. After kDenied and kUnsupported another attempt
// is useless. `attachment`: of an embedded server, else NULL. `asks_identity`: for a node of a
// quorum; one that cannot be a node is asked nothing else. Throws std::bad_alloc.
Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::ServerAttachment *attachment, bool asks_identity, int wake_fd,
                         Connections &opened);

// As open_connections(), for the primary that sentinels name. To find it and to connect to it takes
// at most connect_timeout together.
Outcome open_primary(const Settings &settings, const std::string &channel, int wake_fd,
                     FoundPrimary &found, Connections &opened);

// Asks all sentinels, `others` beside those of the URL, for at most connect_timeout. Blocks. Throws
// std::bad_alloc.
std::vector<Finding> survey_sentinels(const Settings &settings, const std::vector<HostPort> &others,
                                      int wake_fd);

// Asks one of `found.servers` after the other, until one answers that is connected to most of the
// cluster. Takes at most connect_timeout for all of them.
Outcome read_slots(const Settings &settings, int wake_fd, FoundSlots &found);

// As open_connections(), for a connection at the side of one that is open: no messages come there.
// It does not start an embedded server. A replica is a failure.
Outcome open_side_connection(const Settings &settings, int wake_fd,
                             std::unique_ptr<net::Connection> &connection);

}  // namespace redlatch::runtime
