// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Cluster: the nodes of a cluster. It knows which server has which slot, and what each server knows
// of that; it moves slots, key by key or in one step, and replaces primaries by their replicas.
//
// Servers 0 to n-1 are the first primaries of the shards, n to 2n-1 the first replicas.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/settings.h"
#include "cluster_rules.h"
#include "context.h"
#include "random.h"

namespace redlatch::sim {

HostPort node_address(size_t server);
size_t server_at(const HostPort &address);

class Cluster : public Journal, public Shards {
 public:
  Cluster(Context &context, ClusterRules &rules);

  void inject(Fault fault);
  void calm();
  // A primary.
  size_t any_primary() { return shards_[random_.below(shards_.size())].primary; }

  // Journal
  void wrote(size_t server, Effects effects) override;
  int64_t confirmed_count(size_t, uint64_t) const override { return 0; }
  // Shards
  std::optional<Value> refusal(size_t server, Argv keys, bool is_asking) override;
  std::optional<Value> refusal_of_channel(size_t server, std::string_view channel) override;
  Value describe(size_t server, std::string_view what) override;
  void published(size_t server, std::string_view channel, std::string_view message,
                 bool is_sharded) override;

 private:
  // A primary and its replica.
  struct Shard {
    size_t primary, replica;
    bool is_busy = false;   // a failover is under way
    int moves = 0;          // slots that go or come
    uint64_t number = 0;    // counts primaries: what comes from an earlier one is ignored
    bool is_synced = true;  // the replica
    Nanos last = 0;         // arrival of the last effects
    uint64_t applied = 0;   // writes of the primary
  };
  // What a server knows.
  struct View {
    std::vector<uint8_t> owner;                  // by slot: a server
    std::vector<uint32_t> version;               // by slot: of that knowledge
    std::map<uint16_t, size_t> leaving, coming;  // slots that move key by key: to, from
    bool is_down = false;
    Nanos stale_until = 0;  // it learns nothing until then
  };

  Server &server(size_t number) { return *context_.servers[number]; }
  size_t shard_of(size_t server) const { return server % shards_.size(); }
  Shard &shard_at(size_t server) { return shards_[shard_of(server)]; }
  bool is_ready(size_t primary);

  // Which server has the slot in truth.
  size_t owner_of(uint16_t slot) const { return shards_[owner_[slot]].primary; }
  void learn(size_t server, uint16_t slot, size_t owner, uint32_t version);
  void learn_all(size_t server);
  void catch_up(size_t server);
  void spread(uint16_t slot, size_t owner, uint32_t version);

  std::optional<uint16_t> any_slot();
  void move_slot(Fault fault);
  void jump(uint16_t slot, size_t from, size_t to);
  void begin_move(uint16_t slot, size_t from, size_t to);
  void move_key(uint16_t slot, size_t from, size_t to, Nanos pause);
  void carry(const std::string &key, size_t from, size_t to, bool is_relative);
  void end_move(uint16_t slot, size_t from, size_t to);
  void take_slot(size_t server, uint16_t slot, size_t owner, uint32_t version);
  std::vector<std::string> keys_in(uint16_t slot, size_t server);

  void fail_over();
  void check_handover(size_t shard, Nanos until);
  void crash();
  void promote(Shard &shard);
  void follow(Shard &shard);
  void synchronise(size_t shard, uint64_t number);
  void hold_back_map();
  void say_down();
  bool is_any_busy() const;
  Nanos between(int64_t least_ms, int64_t most_ms) {
    return random_.between(least_ms, most_ms) * kMs;
  }

  Context &context_;
  ClusterRules &rules_;
  Random random_;
  Nanos lag_max_ = 0;  // of a replica
  std::vector<Shard> shards_;
  std::vector<uint8_t> owner_;       // by slot: a shard
  std::vector<uint32_t> version_;    // by slot
  std::vector<View> views_;          // by server
  std::map<uint16_t, bool> moving_;  // slots on their way
};

}  // namespace redlatch::sim
