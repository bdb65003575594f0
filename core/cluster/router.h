// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Router: the nodes of a cluster that are in use, each with its lock client, and which of them has
// the locks of a slot. When a slot moves, the old client stops sending, and when no command about
// its locks is under way, the new client takes them over.
//
// Node 0 is not a server: its client, the unrouted one, has the locks whose node is not known, and
// never connects.
#pragma once

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
#include "base/text.h"
#include "cluster/slot_map.h"
#include "lock/lock_client.h"
#include "timing/backoff.h"

namespace redlatch::cluster {

struct Node {
  Node(lock::Output &output, size_t index, Settings &&settings_,
       std::span<const uint8_t, 16> random, uint64_t seed)
      : settings(std::move(settings_)), client(settings, random, seed, output, index) {}

  const Settings settings;
  lock::LockClient client;
  uint16_t number = SlotMap::kNone;  // of the server in the map
  bool is_redrawn = false;           // its channel is to change
};

class Router {
 public:
  // Settings and output outlive it.
  Router(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
         lock::Output &output);
  // Before the first call.
  void adopt(lock::LockClient &from, Nanos now);

  // None goes, and each keeps its number.
  std::deque<Node> &nodes() { return nodes_; }
  const std::deque<Node> &nodes() const { return nodes_; }
  lock::LockClient &client(size_t node) { return nodes_[node].client; }
  lock::LockClient &unrouted() { return nodes_.front().client; }
  SlotMap &map() { return map_; }
  uint64_t random() { return entropy_.next(); }
  // Those that may be asked for the map.
  std::vector<HostPort> servers() const;

  // The node to which the locks of the slot belong; it is made if it is new. 0: the server is not
  // known or not allowed, or there are too many nodes.
  size_t node_of(uint16_t slot, Nanos now) { return node_at(map_.owner(slot), now); }
  size_t node_at(uint16_t number, Nanos now);
  // Where they are now.
  size_t home_of(uint16_t slot) const;
  // Why an unrouted lock has no node.
  std::string why_homeless() const;
  std::string not_allowed(const HostPort &server) const {
    return ": cluster_hosts must name all nodes of the cluster (got a node at " +
           quoted(server.host) + ")";
  }

  bool is_moving(uint16_t slot) const { return move_of(slot) != nullptr; }
  bool has_moves() const { return !moves_.empty(); }
  // `node` has said that the server at `to` has the slot.
  void redirect(size_t node, uint16_t slot, const HostPort &to, Nanos now);
  // The map was read: locks and channels whose slots it gives to other nodes are to change.
  void follow_map(Nanos now);
  void note_lost_channels();
  // Plans another channel for the node if another connection has taken its channel.
  void redraw_if_taken(size_t node) {
    if (client(node).is_channel_taken()) nodes_[node].is_redrawn = true;
  }
  void carry_out(Nanos now);
  Nanos next_due(Nanos now) const;

 private:
  // A slot on its way to the node that the map names, or to the unrouted client.
  struct Move {
    uint16_t slot;
    size_t from;
    Nanos not_before;
  };
  // Redirects of one slot in a row.
  struct Bounce {
    int count = 0;
    Nanos since = 0;
    timing::Backoff pause = timing::kServerRetry;
  };

  bool is_allowed(const HostPort &server) const { return settings_.cluster.allows(server.host); }
  size_t known_node_of(uint16_t slot) const;
  const Move *move_of(uint16_t slot) const;
  void plan_move(uint16_t slot, size_t from, Nanos not_before);
  bool carry_out(Move &move, Nanos now);
  std::string draw_cid(uint16_t number) const;
  void redraw(Nanos now);

  const Settings &settings_;
  lock::Output &output_;
  std::array<uint8_t, 16> random_{};
  Entropy entropy_;
  uint64_t last_id_ = 0;  // of the tokens of all clients
  std::deque<Node> nodes_;
  std::map<uint16_t, size_t> node_numbers_;  // by number of the server in the map
  SlotMap map_;
  std::vector<Move> moves_;
  std::map<uint16_t, Bounce> bounces_;
};

}  // namespace redlatch::cluster
