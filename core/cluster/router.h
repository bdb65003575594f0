// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Router: the nodes of a cluster that are in use, and which of them has a slot. When a slot moves,
// nothing about its locks is sent until no command about them is under way. Then they go to the new
// node.
//
// Node 0 is a Server that stands for no node and is never connected: the locks whose node is not
// known are at it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/settings.h"
#include "cluster/slot_map.h"
#include "lock/lock_client.h"
#include "timing/backoff.h"

namespace redlatch::cluster {

struct Node {
  Settings settings;
  uint16_t number = SlotMap::kNone;  // of the server in the map
  bool is_redrawn = false;           // its channel is to change
};

class Router {
 public:
  // All outlive it. The client has node 0, and no other.
  Router(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
         lock::Output &output, lock::LockClient &client);

  lock::LockClient &client() { return client_; }
  lock::Server &server(size_t node) { return client_.at(node); }
  lock::Server &unplaced() { return client_.at(0); }
  // Nodes, with node 0. None is removed.
  size_t count() const { return nodes_.size(); }
  SlotMap &map() { return map_; }
  uint64_t random() { return entropy_.next(); }
  // Those that may be asked for the map.
  std::vector<HostPort> servers() const;

  // The node to which the locks of the slot belong; it is made if it is new. 0: the server is not
  // known or not allowed, or there are too many nodes.
  size_t node_of(uint16_t slot, Nanos now) { return node_at(map_.owner(slot), now); }
  size_t node_at(uint16_t number, Nanos now);
  // The same of the nodes that are in use.
  size_t known_node_of(uint16_t slot) const;
  // Why a lock is at no node.
  std::string why_homeless();

  bool is_moving(uint16_t slot) const {
    return std::any_of(moves_.begin(), moves_.end(),
                       [slot](const Move &move) { return move.slot == slot; });
  }
  bool has_moves() const { return !moves_.empty(); }
  // A node has said that the server at `to` has the slot.
  void redirect(uint16_t slot, const HostPort &to, Nanos now);
  // The map was read: locks and channels whose slots it gives to other nodes are to change.
  void follow_map(Nanos now);
  void note_lost_channels();
  // Plans another channel for the node if another connection has taken its channel.
  void redraw_if_taken(size_t node) {
    if (server(node).channel.is_taken()) nodes_[node].is_redrawn = true;
  }
  void carry_out(Nanos now);
  Nanos next_due(Nanos now) const;

 private:
  // A slot on its way to the node that the map names, or to node 0.
  struct Move {
    uint16_t slot;
    Nanos not_before;
  };
  // Redirects of one slot in a row.
  struct Bounce {
    int count = 0;
    Nanos since = 0;
    timing::Backoff pause = timing::kServerRetry;
  };

  bool is_allowed(const HostPort &server) const { return settings_.cluster.allows(server.host); }
  void plan_move(uint16_t slot, Nanos not_before);
  void move_slots(Nanos now);
  std::string draw_cid(uint16_t number) const;
  void redraw(Nanos now);

  const Settings &settings_;
  lock::Output &output_;
  lock::LockClient &client_;
  std::array<uint8_t, 16> random_{};
  Entropy entropy_;
  std::deque<Node> nodes_;
  std::map<uint16_t, size_t> node_numbers_;  // by number of the server in the map
  SlotMap map_;
  std::vector<Move> moves_;
  std::map<uint16_t, Bounce> bounces_;
};

}  // namespace redlatch::cluster
