// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/link.h"

#include <cassert>

namespace redlatch::runtime {

SentinelLink::SentinelLink(const Settings &settings_, uint32_t first_key)
    : settings(settings_), watch(settings_) {
  sides.reserve(watch.size());
  for (size_t i = 0; i < watch.size(); i++) sides.emplace_back(first_key + i);
}

Link::Link(const Settings &settings_, size_t node_)
    : settings(settings_), node(node_), confirming(key_of(node_, kConfirming)) {
  if (settings.has_sentinels()) {
    sentinel = std::make_unique<SentinelLink>(settings, key_of(node, kWatch));
  }
  if (!settings.folder.empty()) attachment = std::make_unique<embedded::ServerAttachment>(settings);
}

void Link::connect(Connections &&opened) {
  assert(!is_connected && commands == nullptr && opened.commands != nullptr);
  commands = std::move(opened.commands);
  messages = std::move(opened.messages);
  is_connected = was_connected = true;
  is_login_refused = false;
  auths.clear();
}

void Link::drop() {
  if (!is_connected) return;
  assert(commands != nullptr);
  is_broken = true;
  commands->shut();
}

void Link::disconnect() {
  is_connected = false;
  is_broken = false;
  is_ready = false;
  outbox.clear();
  auths.clear();
  replies.clear();
  commands.reset();
  if (messages) messages->shut();
}

NodeStatus Link::status() const {
  NodeStatus status;
  status.address = settings.address();
  if (sentinel && is_usable()) {
    status.address = sentinel->address() + " (named by sentinel " +
                     sentinel->watch.opinion().sentinel.text() + ")";
  }
  status.role = facts.role;
  status.version = facts.version;
  if (facts.age.round_trip > 0) status.clock_difference = facts.age.clock;
  if (is_usable()) {
    status.state = facts.is_push_trusted ? NodeState::kUp : NodeState::kPolled;
    status.reason = facts.is_push_trusted ? "" : facts.why_not_trusted;
  } else if (!failure.ok()) {
    status.state = NodeState::kAway;
    status.reason = failure.message;
  } else if (was_connected) {
    status.state = NodeState::kAway;
    status.reason = "the connection has ended";
  }
  if (status.state != NodeState::kAway) status.findings = findings;
  if (sentinel) {
    const std::vector<Finding> &more = sentinel->findings;
    status.findings.insert(status.findings.end(), more.begin(), more.end());
  }
  return status;
}

}  // namespace redlatch::runtime
