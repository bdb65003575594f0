// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/connections.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/password.h"
#include "host/clock.h"
#include "protocol/cluster_info.h"
#include "protocol/opening.h"
#include "resp/command_writer.h"
#include "sentinel/survey.h"

namespace redlatch::runtime {

namespace {

using protocol::Opening;

Outcome dial(const Settings &settings, embedded::ServerAttachment *attachment, Nanos limit,
             int wake_fd, std::unique_ptr<net::Connection> &connection) {
  connection = std::make_unique<net::Connection>();
  if (attachment != nullptr) return attachment->dial(*connection, limit, wake_fd);
  return connection->dial(settings, limit, wake_fd);
}

// Dials the sentinel that `asker`, a discovery or a survey, has chosen, and asks it.
template <class Asker>
void ask_sentinel(Asker &asker, int wake_fd) {
  net::Connection connection;
  auto outcome = connection.dial(asker.sentinel(), asker.limit(), wake_fd);
  if (!outcome.ok()) return asker.on_failed(outcome, boot_now());
  std::string bytes;
  const WipeAtEnd wipe(bytes);  // it may hold the password
  std::vector<resp::ReplyPtr> replies;
  asker.on_dialled([&bytes](auto argv) { resp::append_command(bytes, argv); });
  outcome = connection.exchange(bytes, asker.awaited_count(), asker.limit(), wake_fd, replies);
  if (!outcome.ok()) return asker.on_failed(outcome, boot_now());
  const Nanos now = boot_now();
  for (const resp::ReplyPtr &reply : replies) {
    if (asker.awaited_count() > 0) asker.on_reply(*reply, now);
  }
}

}  // namespace

Outcome open_primary(const Settings &settings, const std::string &channel, int wake_fd,
                     FoundPrimary &found, Connections &opened) {
  using Stage = sentinel::Discovery::Stage;
  sentinel::Discovery discovery(settings, std::move(found.known), boot_now());
  while (!discovery.is_over()) {
    if (discovery.stage() != Stage::kNamed) {
      ask_sentinel(discovery, wake_fd);
      continue;
    }
    Settings primary = settings.of_primary(discovery.primary());
    primary.connect_timeout = std::max<Nanos>(discovery.limit() - boot_now(), kMs);
    opened = {};
    const auto outcome = open_connections(primary, channel, nullptr, false, wake_fd, opened);
    outcome.ok() ? discovery.on_confirmed() : discovery.on_refuted(outcome, boot_now());
  }
  found.known = discovery.knowledge();
  found.opinion = discovery.opinion();
  return discovery.outcome();
}

std::vector<Finding> survey_sentinels(const Settings &settings, const std::vector<HostPort> &others,
                                      int wake_fd) {
  const Nanos now = boot_now();
  sentinel::Survey survey(settings, others, now, after(now, settings.connect_timeout));
  while (!survey.is_over()) ask_sentinel(survey, wake_fd);
  return survey.findings();
}

Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::ServerAttachment *attachment, bool asks_identity, int wake_fd,
                         Connections &opened) {
  Opening opening(settings, channel, asks_identity, boot_now());
  std::string bytes;
  const WipeAtEnd wipe(bytes);  // it may hold the password
  const auto send = [&bytes](auto argv) { resp::append_command(bytes, argv); };
  std::vector<resp::ReplyPtr> replies;
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
    bytes.clear();
    if (!outcome.ok()) return outcome;
    const Nanos now = boot_now();
    for (const resp::ReplyPtr &reply : replies) opening.on_reply(wire, *reply, send, now);
  }
  if (!opening.has_messages()) opened.messages.reset();
  opened.facts = opening.facts();
  return opening.outcome();
}

namespace {

// The answers of one server. `limit` is for all of them.
Outcome ask_slots(const Settings &settings, Nanos limit, int wake_fd, FoundSlots &found) {
  net::Connection connection;
  auto outcome = connection.dial(settings, limit, wake_fd);
  if (!outcome.ok()) return outcome;
  auto handshake = protocol::Handshake::for_slots(settings);
  std::string bytes;
  const WipeAtEnd wipe(bytes);  // it may hold the password
  const auto send = [&bytes](auto argv) { resp::append_command(bytes, argv); };
  std::vector<resp::ReplyPtr> replies;
  handshake.start(send);
  while (handshake.stage() != protocol::Handshake::Stage::kOver) {
    outcome = connection.exchange(bytes, handshake.awaited_count(), limit, wake_fd, replies);
    bytes.clear();
    if (!outcome.ok()) return outcome;
    for (const resp::ReplyPtr &reply : replies) handshake.on_reply(*reply, send, boot_now());
  }
  if (!handshake.outcome().ok()) return handshake.outcome();
  found.facts = handshake.facts();
  protocol::ask_slots(send);
  outcome = connection.exchange(bytes, protocol::kSlotQuestions, limit, wake_fd, replies);
  if (!outcome.ok()) return outcome;
  const HostPort asked{settings.host, settings.port};
  return protocol::read_cluster(*replies[0], *replies[1], asked, found.ranges);
}

}  // namespace

Outcome read_slots(const Settings &settings, int wake_fd, FoundSlots &found) {
  const Nanos end = after(boot_now(), settings.connect_timeout);
  Outcome failure;
  for (size_t i = 0; i < found.servers.size(); i++) {
    const Nanos now = boot_now();
    const auto shares = static_cast<Nanos>(found.servers.size() - i);
    const Nanos limit = now + std::max<Nanos>((end - now) / shares, kMs);
    const auto outcome = ask_slots(settings.of_node(found.servers[i]), limit, wake_fd, found);
    if (outcome.ok()) return outcome;
    // A final reason is reported, whatever the other servers are.
    const bool may_pass =
        outcome.status == Status::kUnavailable || outcome.status == Status::kServer;
    if (failure.ok() || !may_pass) failure = outcome;
  }
  return failure;
}

Outcome open_side_connection(const Settings &settings, int wake_fd,
                             std::unique_ptr<net::Connection> &connection) {
  auto outcome =
      dial(settings, nullptr, after(boot_now(), settings.connect_timeout), wake_fd, connection);
  if (!outcome.ok()) return outcome;
  const Nanos limit = after(boot_now(), settings.command_timeout);
  auto handshake = protocol::Handshake::for_side(settings);
  std::string bytes;
  const WipeAtEnd wipe(bytes);  // it may hold the password
  const auto send = [&bytes](auto argv) { resp::append_command(bytes, argv); };
  std::vector<resp::ReplyPtr> replies;
  handshake.start(send);
  while (handshake.stage() != protocol::Handshake::Stage::kOver) {
    outcome = connection->exchange(bytes, handshake.awaited_count(), limit, wake_fd, replies);
    bytes.clear();
    if (!outcome.ok()) return outcome;
    for (const resp::ReplyPtr &reply : replies) handshake.on_reply(*reply, send, boot_now());
  }
  if (handshake.outcome().ok() && handshake.facts().role == NodeRole::kReplica) {
    return failure(Status::kServer, settings.address() + " is a replica");
  }
  return handshake.outcome();
}

}  // namespace redlatch::runtime
