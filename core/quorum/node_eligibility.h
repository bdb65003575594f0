// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeEligibility: which nodes of a quorum may vote, why the others may not, and the order in which
// clients queue at them. Reports of connections and the time go in; it knows no client.
//
// A refused node (a replica, a member of a cluster, a duplicate) is disconnected and has no vote.
// With a guard, a node that restarted less than that ago has none either.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::quorum {

class NodeEligibility {
 public:
  // `settings` outlive it.
  NodeEligibility(std::span<const Settings> nodes, const QuorumSettings &settings);

  // The node is connected. @return true if it restarted since its last connection and a guard is
  // set: it may have forgotten its votes.
  [[nodiscard]] bool note_restart(size_t node, const ServerFacts &facts, Nanos now);
  // Validate the connected node. @return whether its refusal is a new one, or is gone.
  [[nodiscard]] bool on_connected(size_t node, const ServerFacts &facts);
  void on_connect_failed(size_t node, const Outcome &why);
  // A connected node has refused a write as a replica. @return as on_connected().
  [[nodiscard]] bool on_replica(size_t node);
  // An attempt to connect could not be started.
  void on_no_attempt(size_t node) noexcept { nodes_[node].was_tried = true; }
  // The node is about to be connected. A fault that would end an acquire is checked again.
  void on_connecting(size_t node) noexcept;

  // True if an attempt to connect to the node has ended.
  bool was_tried(size_t node) const { return nodes_[node].was_tried; }
  // Why the server cannot be a node of a quorum; ok: it can, as far as is known.
  const Outcome &refusal_of(size_t node) const { return nodes_[node].refusal; }
  bool is_replica(size_t node) const { return nodes_[node].is_replica(); }
  // True if the node may vote while it is connected.
  bool may_vote(size_t node, Nanos now) const {
    return nodes_[node].refusal.ok() && nodes_[node].votes_at <= now;
  }
  Outcome why_no_vote(size_t node, Nanos now) const;
  // The fault for which no acquire can succeed, or ok.
  Outcome fatal_fault() const;
  bool is_guarded() const { return settings_.restart_guard > 0 && !settings_.is_durable; }

  // The nodes in the order in which every client queues at them for `name`.
  std::vector<size_t> order_of(std::string_view name) const;

 private:
  struct Node {
    explicit Node(const Settings &settings_) : settings(settings_) {}

    bool is_replica() const { return !refusal.ok() && facts.is_replica; }

    const Settings &settings;
    bool was_tried = false;   // an attempt to connect has ended
    bool was_good = false;    // .. and one found nothing wrong
    Outcome refusal;          // why it cannot be a node; ok: it can
    ServerFacts facts;        // of the last connection
    std::string run_id;       // the last known one
    bool is_aged = false;     // facts.age is known
    Nanos guarded_until = 0;  // after a restart since its first connection
    Nanos votes_at = 0;       // from then on it is old enough
  };

  bool set_refusal(Node &node, Outcome why);
  Outcome validate_node(const Node &node) const;
  const Node *find_duplicate(const Node &node) const;
  void note_ages();
  bool is_mistake(const Node &node, size_t replica_count) const;
  size_t minority() const;

  const QuorumSettings &settings_;
  std::vector<Node> nodes_;
};

}  // namespace redlatch::quorum
