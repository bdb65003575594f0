// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/connections.h"

#include <cstring>
#include <vector>

#include "protocol/opening.h"

namespace redlatch::runtime {

namespace {

using protocol::Opening;

Outcome dial(const Settings &settings, embedded::ServerAttachment *attachment, Nanos limit,
             int wake_fd, std::unique_ptr<net::Connection> &connection) {
  connection = std::make_unique<net::Connection>();
  if (attachment != nullptr) return attachment->dial(*connection, limit, wake_fd);
  return connection->dial(settings, limit, wake_fd);
}

}  // namespace

Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::ServerAttachment *attachment, bool asks_identity, int wake_fd,
                         Connections &opened) {
  Opening opening(settings, channel, asks_identity, boot_now());
  std::string bytes;
  const auto send = [&bytes](auto argv) { net::append_command(bytes, argv); };
  std::vector<net::ReplyPtr> replies;
  while (!opening.is_over()) {
    const Opening::Wire wire = opening.wire();
    auto &connection = wire == Opening::Wire::kMessages ? opened.messages : opened.commands;
    if (opening.is_dialling()) {
      auto outcome = dial(settings, attachment, opening.limit(), wake_fd, connection);
      if (!outcome.ok()) return outcome;
      opening.on_dialled(send, boot_now());
    }
    const auto outcome =
        connection->exchange(bytes, opening.awaited_count(), opening.limit(), wake_fd, replies);
    explicit_bzero(bytes.data(), bytes.size());  // it may hold the password
    bytes.clear();
    if (!outcome.ok()) return outcome;
    const Nanos now = boot_now();
    for (const net::ReplyPtr &reply : replies) opening.on_reply(wire, *reply, send, now);
  }
  if (!opening.has_messages()) opened.messages.reset();
  opened.facts = opening.facts();
  return opening.outcome();
}

}  // namespace redlatch::runtime
