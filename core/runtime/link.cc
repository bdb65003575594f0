// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/link.h"

#include "base/password.h"

namespace redlatch::runtime {

Link::Link(const Settings &settings_, size_t node_)
    : settings(settings_), node(node_), confirming(key_of(node_, kConfirming)) {
  if (settings.has_sentinels()) {
    sentinel = std::make_unique<SentinelLink>(settings, key_of(node, kWatch));
  }
  if (!settings.folder.empty()) attachment = std::make_unique<embedded::ServerAttachment>(settings);
}

void Link::connect(Connections &&opened) {
  commands = std::move(opened.commands);
  messages = std::move(opened.messages);
  is_connected = was_connected = true;
  is_login_refused = false;
  auths.clear();
}

void Link::drop() {
  if (!is_connected) return;
  is_broken = true;
  commands->shut();
}

void Link::disconnect() {
  is_connected = false;
  is_broken = false;
  is_write_blocked = false;
  is_ready = false;
  wipe(sending);  // AUTH may be in both
  wipe(out);
  has_secret = is_sending_secret = false;
  auths.clear();
  out_count = 0;
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

void Link::append(std::span<const std::string_view> argv) {
  net::append_command(out, argv);
  out_count++;
  auths.on_append();
}

void Link::send() {
  if (!is_sending) return;
  const auto sent = commands->send(sending);
  const size_t count = sent.value_or(sending.size());
  is_sending_secret ? drop_front(sending, count) : void(sending.erase(0, count));
  has_send_failed = !sent;
}

}  // namespace redlatch::runtime
