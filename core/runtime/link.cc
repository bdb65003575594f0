// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/link.h"

#include <cassert>

namespace redlatch::runtime {

SentinelLink::SentinelLink(const Settings &settings, driver::Log &log, uint32_t first_key)
    : follower(settings, log) {
  const size_t count = follower.watch().size();
  sides.reserve(count);
  for (size_t i = 0; i < count; i++) sides.emplace_back(first_key + i);
}

Attempt::Attempt(Connecting &in_, Link &link_, const lock::LockService &service)
    : in(in_),
      link(link_),
      machine(link_.settings, service, link_.node,
              link_.sentinel ? &link_.sentinel->follower : nullptr) {}

Link::Link(const Settings &settings_, size_t node_, driver::Log &log)
    : settings(settings_),
      node(node_),
      confirming(key_of(node_, kConfirming)),
      connection(settings_, node_, log) {
  if (settings.has_sentinels()) {
    sentinel = std::make_unique<SentinelLink>(settings, log, key_of(node, kWatch));
  }
  if (!settings.folder.empty()) attachment = std::make_unique<embedded::ServerAttachment>(settings);
}

void Link::connect(Attempt &ended) {
  assert(commands == nullptr && ended.connections.commands != nullptr);
  commands = std::move(ended.connections.commands);
  messages = std::move(ended.connections.messages);
  connection.make(ended.machine.facts(), ended.machine.login().login().number);
}

void Link::drop() {
  if (!connection.is_made()) return;
  assert(commands != nullptr);
  connection.drop();
  commands->shut();
}

void Link::disconnect() {
  connection.end();
  is_ready = false;
  outbox.clear();
  replies.clear();
  commands.reset();
  if (messages) messages->shut();
}

NodeStatus Link::status() const {
  NodeStatus status = connection.record().status(is_usable());
  if (!sentinel) return status;
  if (is_usable()) status.address = sentinel->follower.described();
  const std::vector<Finding> &more = sentinel->findings;
  status.findings.insert(status.findings.end(), more.begin(), more.end());
  return status;
}

}  // namespace redlatch::runtime
