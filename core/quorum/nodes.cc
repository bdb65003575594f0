// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/nodes.h"

#include <algorithm>
#include <new>

#include "timing/quorum.h"

namespace redlatch::quorum {

namespace {

// A message that begins with the address, without it: that is a field of its own.
std::string_view without_address(std::string_view message, std::string_view address) {
  if (!message.starts_with(address)) return message;
  message.remove_prefix(address.size());
  message.remove_prefix(std::min(message.find_first_not_of(": "), message.size()));
  return message;
}

}  // namespace

Nodes::Nodes(std::span<const Settings> nodes, const QuorumSettings &settings,
             std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output)
    : settings_(settings),
      entropy_(seed),
      majority_(timing::majority_of(nodes.size())),
      eligibility_(nodes, settings) {
  for (size_t i = 0; i < nodes.size(); i++) {
    nodes_.emplace_back(output, i, nodes[i], random, entropy_.next());
  }
}

Nanos Nodes::limit(Nanos ttl) const {
  return settings_.node_timeout > 0 ? settings_.node_timeout : timing::node_limit(ttl);
}

uint64_t Nodes::next_rid() {
  for (const Node &node : nodes_)
    last_rid_ = std::max(last_rid_, node.client.locks().last_number());
  return ++last_rid_;
}

Outcome Nodes::why_no_vote(size_t node, Nanos now) const {
  return is_away(nodes_[node]) ? nodes_[node].client.first_server().session.failure()
                               : eligibility_.why_no_vote(node, now);
}

bool Nodes::are_enough(Nanos now) const {
  const auto count = std::count_if(nodes_.begin(), nodes_.end(),
                                   [&](const Node &node) { return can_vote(node.index, now); });
  return static_cast<size_t>(count) >= majority_;
}

void Nodes::keep_connected(size_t index, Nanos now) noexcept {
  Node &node = nodes_[index];
  if (node.client.first_server().session.is_up() && eligibility_.refusal_of(index).ok()) return;
  eligibility_.on_connecting(index);
  if (node.client.first_server().session.is_up())
    return;  // its link is dropped first, then connected again
  if (node.connection && !node.connection->is_finished()) return;
  try {
    const auto connection = std::make_shared<lock::Request>(lock::Request::Op::kConnect);
    node.client.start(connection, now);
    node.connection = connection;
  } catch (const std::bad_alloc &) {
    eligibility_.on_no_attempt(index);  // the next round tries again
  }
}

void Nodes::keep_all_connected(Nanos now) noexcept {
  for (size_t i = 0; i < nodes_.size(); i++) keep_connected(i, now);
}

void Nodes::connect_majority(Nanos now) {
  keep_all_connected(now);
  const auto there = std::count_if(nodes_.begin(), nodes_.end(), [&](const Node &node) {
    return node.client.first_server().session.is_up() ||
           node.client.first_server().is_connecting(now);
  });
  if (static_cast<size_t>(there) >= majority_) return;
  for (Node &node : nodes_) {
    if (!node.client.first_server().session.is_up()) node.client.connect_soon(node.index, now);
  }
}

void Nodes::describe(std::span<NodeStatus> statuses, Nanos now) const {
  for (const Node &node : nodes_) {
    NodeStatus &status = statuses[node.index];
    const Outcome why = why_no_vote(node.index, now);
    if (why.ok() && node.trouble.empty()) continue;
    const bool is_gone = !why.ok() && is_away(node);
    if (is_gone && status.state == NodeState::kUnknown) continue;
    status.state = is_gone ? NodeState::kAway : NodeState::kNoVote;
    status.reason = why.ok() ? node.trouble : without_address(why.message, status.address);
  }
}

}  // namespace redlatch::quorum
