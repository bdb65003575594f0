// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: the nodes, and which of them may vote.
#include <algorithm>
#include <numeric>
#include <utility>

#include "protocol/answer.h"
#include "quorum/quorum_client.h"

namespace redlatch::quorum {

namespace {

std::string seconds(Nanos duration) {
  return std::to_string((duration + 999 * kMs) / (1000 * kMs));
}

}  // namespace

// ---- reports of the engines --------------------------------------------------------------------

void QuorumClient::send(size_t node, std::span<const std::string_view> argv) {
  output_.send(node, argv);
}

void QuorumClient::finished(lock::Request &request) {
  if (request.op != lock::Request::Op::kConnect) {
    mark(static_cast<NodeRequest &>(request).operation);
  }
}

void QuorumClient::lease_ended(lock::Lease &lease) {
  mark(static_cast<NodeLease &>(lease).operation);
}

void QuorumClient::lease_moved(lock::Lease &lease) {
  mark(static_cast<NodeLease &>(lease).operation);
}

void QuorumClient::drop_link(size_t node) { output_.drop_link(node); }

// ---- events of a connection --------------------------------------------------------------------

bool QuorumClient::begin_connect(size_t node, Nanos now) {
  return nodes_[node]->engine.begin_connect(node, now);
}

void QuorumClient::on_connected(size_t index, const ServerFacts &facts, Nanos now) {
  Node &node = *nodes_[index];
  const bool is_known = !node.run_id.empty() && !facts.run_id.empty();
  const bool has_restarted = is_known && facts.run_id != node.run_id;
  if (has_restarted && is_guarded()) {
    // Its uptime may be wrong (a clock that was wrong when it started); our clock is not.
    node.guarded_until = now + settings_.restart_guard;
    withdraw_votes(node, failure(Status::kUnavailable, node.settings.address() + " has restarted"),
                   now);
  }
  node.facts = facts;
  if (!facts.run_id.empty()) node.run_id = facts.run_id;
  node.is_aged = !facts.run_id.empty();
  node.was_tried = true;
  node.trouble.clear();
  node.last_reply_at = now;
  node.engine.on_connected(index, facts, now);
  set_refusal(node, validate_node(node), now);
  node.was_good = node.was_good || node.refusal.ok();
  note_ages();
  mark_waiting(node);
  settle(now);
}

void QuorumClient::on_connect_failed(size_t index, const Outcome &why, Nanos now) {
  Node &node = *nodes_[index];
  const bool may_pass = why.status == Status::kUnavailable || why.status == Status::kServer;
  node.was_tried = true;
  node.engine.on_connect_failed(index, why, now);  // first: what follows may fail
  node.refusal = may_pass ? Outcome{} : why;
  node.facts.is_replica = false;  // as far as is known
  mark_waiting(node);
  settle(now);
}

void QuorumClient::on_disconnected(size_t index, Nanos now) noexcept {
  nodes_[index]->engine.on_disconnected(index, now);
  mark_waiting(*nodes_[index]);
  settle(now);
}

void QuorumClient::on_reply(size_t index, const Reply &reply, Nanos now) {
  Node &node = *nodes_[index];
  node.last_reply_at = now;
  node.engine.on_reply(index, reply, now);
  if (protocol::is_of_replica(reply)) {
    node.facts.is_replica = true;
    set_refusal(node, validate_node(node), now);
  }
  settle(now);
}

void QuorumClient::on_push(size_t index, std::string_view message, Nanos now) {
  nodes_[index]->last_reply_at = now;
  nodes_[index]->engine.on_push(index, message, now);
  settle(now);
}

void QuorumClient::on_invalidated(size_t index, std::string_view key, Nanos now) {
  nodes_[index]->engine.on_invalidated(index, key, now);
  settle(now);
}

void QuorumClient::on_all_invalidated(size_t index, Nanos now) {
  nodes_[index]->engine.on_all_invalidated(index, now);
  settle(now);
}

// ---- who may vote ------------------------------------------------------------------------------

// A refused node is disconnected; the next request for votes tries it again, because the cause may
// be gone.
void QuorumClient::set_refusal(Node &node, Outcome why, Nanos now) {
  const bool is_news = why.message != node.refusal.message;
  node.refusal = std::move(why);
  if (is_news) output_.node_validated(node.index, node.refusal);
  if (node.refusal.ok()) return;
  output_.drop_link(node.index);
  // The data of its primary replaces its grants.
  if (node.is_replica()) withdraw_votes(node, node.refusal, now);
}

// The node may grant a forgotten lock to other clients. After a restart they do not ask it before
// the guard has passed, and by then every lease that counted its vote has ended.
void QuorumClient::withdraw_votes(const Node &node, const Outcome &why, Nanos now) {
  for (const auto &[id, operation] : operations_) {
    if (!operation->is_acquire) continue;
    auto &acquire = static_cast<QuorumAcquire &>(*operation);
    const auto state = acquire.votes[node.index].state;
    const bool is_open = state == Vote::State::kAsked || state == Vote::State::kRaising;
    if (state != Vote::State::kYes && !is_open) continue;
    mark_unavailable(acquire, node.index, why, now);
    mark(&acquire);
  }
}

// The clock of one node may change how far the clocks of the others are trusted.
void QuorumClient::note_ages() {
  for (const auto &node : nodes_) {
    node->votes_at = 0;
    if (!is_guarded() || !node->is_aged) continue;
    std::vector<ServerAge> others;
    for (const auto &other : nodes_) {
      if (other != node && other->is_aged) others.push_back(other->facts.age);
    }
    const Nanos distance = timing::clock_doubt(node->facts.age, others, nodes_.size() - majority_);
    node->votes_at = std::max(node->guarded_until, timing::votes_from(node->facts.age, distance,
                                                                      settings_.restart_guard));
  }
}

// Another node that is the same server.
const QuorumClient::Node *QuorumClient::find_duplicate(const Node &node) const {
  if (node.facts.run_id.empty()) return nullptr;
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto &other) {
    return other.get() != &node && other->refusal.ok() && other->run_id == node.facts.run_id;
  });
  return found == nodes_.end() ? nullptr : found->get();
}

// Why the connected `node` cannot be a node of a quorum; ok: it can.
Outcome QuorumClient::validate_node(const Node &node) const {
  const std::string address = node.settings.address();
  if (const Node *duplicate = find_duplicate(node); duplicate != nullptr) {
    return failure(Status::kInvalid, address + " and " + duplicate->settings.address() +
                                         " are the same server (run_id " +
                                         node.facts.run_id.substr(0, 8) +
                                         "..): nodes must be independent");
  }
  if (node.facts.is_replica) {
    return failure(Status::kUnsupported,
                   address + " is a replica, which has no vote: nodes must be primaries");
  }
  if (node.facts.is_cluster_member) {
    return failure(Status::kUnsupported,
                   address + " is a member of a cluster: nodes must be independent");
  }
  if (is_guarded() && node.facts.run_id.empty()) {
    return failure(node.facts.why_unknown.status,
                   address + " does not say when it started (" + node.facts.why_unknown.message +
                       "): allow INFO and TIME, or switch the guard off with restart_guard=off, "
                       "which is safe only if no node ever restarts without its data");
  }
  return {};
}

Outcome QuorumClient::why_no_vote(const Node &node, Nanos now) const {
  if (!node.engine.is_up()) {
    return node.refusal.ok() ? node.engine.link_failure() : node.refusal;
  }
  if (!node.refusal.ok()) return node.refusal;
  if (node.votes_at <= now) return {};
  return failure(Status::kUnavailable, node.settings.address() +
                                           " has started lately: it may vote in " +
                                           seconds(node.votes_at - now) + " s (restart_guard)");
}

size_t QuorumClient::voter_count(Nanos now) const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(),
                                           [&](const auto &node) { return can_vote(*node, now); }));
}

// Start connecting a node that is not connected. A fault that would end an acquire is checked
// again.
void QuorumClient::keep_connected(Node &node, Nanos now) noexcept {
  if (node.engine.is_up() && node.refusal.ok()) return;
  const auto replica_count = std::count_if(nodes_.begin(), nodes_.end(),
                                           [](const auto &other) { return other->is_replica(); });
  const bool is_too_many = static_cast<size_t>(replica_count) > nodes_.size() - majority_;
  if (node.is_replica() ? is_too_many : is_mistake(node, 0)) node.was_tried = false;
  if (node.engine.is_up()) return;  // its link is dropped first, then connected again
  if (node.connection && !node.connection->is_finished()) return;
  try {
    const auto connection = std::make_shared<lock::Request>(lock::Request::Op::kConnect);
    node.engine.start(connection, now);
    node.connection = connection;
  } catch (const std::bad_alloc &) {
    node.was_tried = true;  // in vain; the next round tries again
  }
}

void QuorumClient::connect_now(Nanos now) {
  for (const auto &node : nodes_) {
    if (!node->engine.is_up()) node->engine.connect_soon(now);
  }
}

// True for a fault of a node that never was good: an error in the list of servers. A node that was
// good before has failed, as nodes do; so has a replica, which may be promoted, while the others
// are enough.
bool QuorumClient::is_mistake(const Node &node, size_t replica_count) const {
  if (node.refusal.ok() || node.was_good) return false;
  return !node.is_replica() || replica_count > nodes_.size() - majority_;
}

Outcome QuorumClient::refusal() const {
  const auto replica_count = std::count_if(nodes_.begin(), nodes_.end(), [](const auto &node) {
    return node->was_tried && node->is_replica();
  });
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [&](const auto &node) {
    return node->was_tried && is_mistake(*node, static_cast<size_t>(replica_count));
  });
  if (found == nodes_.end()) return {};
  const Outcome &wrong = (*found)->refusal;
  if (!(*found)->is_replica()) return wrong;
  std::string names;
  for (const auto &node : nodes_) {
    if (!node->was_tried || !node->is_replica()) continue;
    names += (names.empty() ? "" : ", ") + node->settings.address();
  }
  return failure(wrong.status, of_nodes(static_cast<size_t>(replica_count)) + " are replicas (" +
                                   names + "): at least " + std::to_string(majority_) +
                                   " must be independent primaries");
}

// The nodes in the order in which every client queues at them for `name`.
std::vector<size_t> QuorumClient::order_of(std::string_view name) const {
  const std::string key = nodes_.front()->settings.name_space + std::string(name);
  std::vector<uint64_t> ranks;
  for (const auto &node : nodes_) {
    const std::string id = node->run_id.empty() ? node->settings.address() : node->run_id;
    ranks.push_back(timing::rank_of_node(id, key));
  }
  std::vector<size_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return ranks[a] != ranks[b] ? ranks[a] > ranks[b] : a < b; });
  return order;
}

std::string QuorumClient::describe(Nanos now) const {
  std::string lines;
  for (const auto &node : nodes_) {
    const Outcome why = why_no_vote(*node, now);
    if (!lines.empty()) lines += '\n';
    const std::string address = node->settings.address();
    if (!why.ok()) {
      lines += why.message;
    } else {
      lines += address + ": " + (node->trouble.empty() ? "votes" : "refused: " + node->trouble);
    }
  }
  return lines;
}

}  // namespace redlatch::quorum
