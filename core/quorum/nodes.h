// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Nodes: the servers of a quorum, each with its lock client, and which of them may vote now.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/node_status.h"
#include "base/random.h"
#include "base/settings.h"
#include "base/status.h"
#include "lock/lock_client.h"
#include "quorum/node_eligibility.h"
#include "quorum/words.h"

namespace redlatch::quorum {

// One server, and its last reports.
struct Node {
  Node(lock::Output &output, size_t index_, const Settings &settings_,
       std::span<const uint8_t, 16> random, uint64_t seed)
      : index(index_), settings(settings_), client(settings_, random, seed, output, index_) {}

  const size_t index;
  const Settings &settings;
  lock::LockClient client;
  std::shared_ptr<lock::Request> connection;  // the request to connect, until it ends
  Nanos last_reply_at = 0;
  std::string trouble;  // why it did not vote when it was last asked
};

class Nodes {
 public:
  // Settings and output outlive it.
  Nodes(std::span<const Settings> nodes, const QuorumSettings &settings,
        std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output);

  size_t size() const { return nodes_.size(); }
  Node &operator[](size_t node) { return nodes_[node]; }
  const Node &operator[](size_t node) const { return nodes_[node]; }
  auto begin() { return nodes_.begin(); }
  auto end() { return nodes_.end(); }
  auto begin() const { return nodes_.begin(); }
  auto end() const { return nodes_.end(); }

  const QuorumSettings &settings() const { return settings_; }
  NodeEligibility &eligibility() { return eligibility_; }
  const NodeEligibility &eligibility() const { return eligibility_; }
  size_t majority() const { return majority_; }
  uint64_t random() { return entropy_.next(); }
  // How long one of them is waited for.
  Nanos limit(Nanos ttl) const;
  // Higher than every number of a node's client, which takes some of its own for a new channel.
  uint64_t next_rid();
  // `count` of all nodes, for a message.
  NodeCount counted(size_t count) const { return {count, size()}; }

  bool can_vote(size_t node, Nanos now) const {
    return nodes_[node].client.first_server().session.is_up() && eligibility_.may_vote(node, now);
  }
  Outcome why_no_vote(size_t node, Nanos now) const;
  // True if a majority can vote.
  bool are_enough(Nanos now) const;
  // Start connecting a node that is not connected.
  void keep_connected(size_t node, Nanos now) noexcept;
  void keep_all_connected(Nanos now) noexcept;
  // .. without a pause if a majority is neither connected nor about to be.
  void connect_majority(Nanos now);
  // Adds why nodes have no vote.
  void describe(std::span<NodeStatus> statuses, Nanos now) const;

 private:
  bool is_away(const Node &node) const {
    return !node.client.first_server().session.is_up() && eligibility_.refusal_of(node.index).ok();
  }

  const QuorumSettings &settings_;
  Entropy entropy_;
  std::deque<Node> nodes_;
  const size_t majority_;
  NodeEligibility eligibility_;
  uint64_t last_rid_ = 0;
};

}  // namespace redlatch::quorum
