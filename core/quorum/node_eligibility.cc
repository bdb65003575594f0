// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "quorum/node_eligibility.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/dial_failure.h"
#include "quorum/words.h"
#include "timing/quorum.h"

namespace redlatch::quorum {

NodeEligibility::NodeEligibility(std::span<const Settings> nodes, const QuorumSettings &settings)
    : settings_(settings), nodes_(nodes.begin(), nodes.end()) {
  assert(!nodes_.empty() && nodes_.size() <= kMaxNodes);
}

size_t NodeEligibility::minority() const {
  return nodes_.size() - timing::majority_of(nodes_.size());
}

// ---- connections -------------------------------------------------------------------------------

bool NodeEligibility::note_restart(size_t index, const ServerFacts &facts, Nanos now) {
  Node &node = nodes_[index];
  const bool is_known = !node.run_id.empty() && !facts.run_id.empty();
  if (!is_known || facts.run_id == node.run_id || !is_guarded()) return false;
  // Its uptime may be wrong (a clock that was wrong when it started); our clock is not.
  node.guarded_until = now + settings_.restart_guard;
  return true;
}

bool NodeEligibility::on_connected(size_t index, const ServerFacts &facts) {
  Node &node = nodes_[index];
  node.facts = facts;
  if (!facts.run_id.empty()) node.run_id = facts.run_id;
  node.is_aged = !facts.run_id.empty();
  node.was_tried = true;
  note_ages();  // before the refusal: without memory, the next connection reports it
  const bool is_news = set_refusal(node, validate_node(node));
  node.was_good = node.was_good || node.refusal.ok();
  return is_news;
}

void NodeEligibility::on_connect_failed(size_t index, const Outcome &why) {
  Node &node = nodes_[index];
  node.was_tried = true;
  node.refusal = may_pass(why.status) ? Outcome{} : why;
  node.facts.is_replica = false;  // as far as is known
}

bool NodeEligibility::on_replica(size_t index) {
  nodes_[index].facts.is_replica = true;
  return set_refusal(nodes_[index], validate_node(nodes_[index]));
}

void NodeEligibility::on_connecting(size_t index) noexcept {
  Node &node = nodes_[index];
  const auto replica_count = std::count_if(nodes_.begin(), nodes_.end(),
                                           [](const Node &other) { return other.is_replica(); });
  const bool are_too_many = static_cast<size_t>(replica_count) > minority();
  if (node.is_replica() ? are_too_many : is_mistake(node, 0)) node.was_tried = false;
}

bool NodeEligibility::set_refusal(Node &node, Outcome why) {
  const bool is_news = why.message != node.refusal.message;
  node.refusal = std::move(why);
  return is_news;
}

// ---- which nodes may vote ----------------------------------------------------------------------

// The clock of one node may change how far the clocks of the others are trusted.
void NodeEligibility::note_ages() {
  for (Node &node : nodes_) {
    if (!is_guarded() || !node.is_aged) {
      node.votes_at = 0;
      continue;
    }
    std::vector<ServerAge> others;  // may throw: before votes_at, which a guard relies on
    for (const Node &other : nodes_) {
      if (&other != &node && other.is_aged) others.push_back(other.facts.age);
    }
    const Nanos distance = timing::clock_doubt(node.facts.age, others, minority());
    node.votes_at = std::max(node.guarded_until,
                             timing::votes_from(node.facts.age, distance, settings_.restart_guard));
  }
}

// Another node that is the same server.
const NodeEligibility::Node *NodeEligibility::find_duplicate(const Node &node) const {
  if (node.facts.run_id.empty()) return nullptr;
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node &other) {
    return &other != &node && other.refusal.ok() && other.run_id == node.facts.run_id;
  });
  return found == nodes_.end() ? nullptr : &*found;
}

// Why the connected `node` cannot be a node of a quorum; ok: it can.
Outcome NodeEligibility::validate_node(const Node &node) const {
  if (const Node *duplicate = find_duplicate(node); duplicate != nullptr) {
    return failure(Status::kInvalid,
                   words::same_server(node.settings, duplicate->settings, node.facts.run_id));
  }
  if (node.facts.is_replica) {
    return failure(Status::kUnsupported, words::is_replica(node.settings));
  }
  if (node.facts.is_cluster_member) {
    return failure(Status::kUnsupported, words::is_cluster_member(node.settings));
  }
  if (is_guarded() && node.facts.run_id.empty()) {
    const Outcome &why = node.facts.why_unknown;
    return failure(why.status, words::has_unknown_age(node.settings, why.message));
  }
  return {};
}

Outcome NodeEligibility::why_no_vote(size_t index, Nanos now) const {
  const Node &node = nodes_[index];
  if (!node.refusal.ok()) return node.refusal;
  if (node.votes_at <= now) return {};
  const int64_t wait_s = (node.votes_at - now + 999 * kMs) / (1000 * kMs);
  return failure(Status::kUnavailable, words::started_lately(node.settings, wait_s));
}

// True for a fault of a node that never was good: an error in the list of servers. A node that was
// good before has failed, as nodes do; so has a replica, which may be promoted, while the others
// are enough.
bool NodeEligibility::is_mistake(const Node &node, size_t replica_count) const {
  if (node.refusal.ok() || node.was_good) return false;
  return !node.is_replica() || replica_count > minority();
}

Outcome NodeEligibility::fatal_fault() const {
  const auto is_tried_replica = [](const Node &node) {
    return node.was_tried && node.is_replica();
  };
  const auto replica_count =
      static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), is_tried_replica));
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const Node &node) {
    return node.was_tried && is_mistake(node, replica_count);
  });
  if (found == nodes_.end()) return {};
  if (!found->is_replica()) return found->refusal;
  std::string addresses;
  for (const Node &node : nodes_) {
    if (!is_tried_replica(node)) continue;
    words::add_address(addresses, node.settings);
  }
  return failure(found->refusal.status,
                 words::too_many_replicas({replica_count, nodes_.size()}, addresses,
                                          timing::majority_of(nodes_.size())));
}

std::vector<size_t> NodeEligibility::order_of(std::string_view name) const {
  const std::string key = nodes_.front().settings.name_space + std::string(name);
  std::vector<uint64_t> ranks;
  for (const Node &node : nodes_) {
    const std::string id = node.run_id.empty() ? node.settings.address() : node.run_id;
    ranks.push_back(timing::rank_of_node(id, key));
  }
  std::vector<size_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return ranks[a] != ranks[b] ? ranks[a] > ranks[b] : a < b; });
  return order;
}

}  // namespace redlatch::quorum
