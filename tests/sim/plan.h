// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Plan: the parameters of one run. They follow from the seed, and are printed when a run fails.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "protocol/scripts.h"

namespace redlatch::sim {

// Of every lock key, and of the channels of clients.
inline constexpr std::string_view kNamespace = "app:";
inline constexpr std::string_view kChannelPrefix = "app:rl1:";

// The kinds of faults. Each is on or off for a whole run; --shrink turns them off one by one.
enum class Fault : uint8_t {
  kSpike,          // a message takes up to seconds
  kStall,          // one direction of a connection delivers nothing for a while
  kCut,            // a connection ends; some commands in flight are still executed
  kLateCopy,       // kCut, and these are executed seconds later, after those of new connections
  kHalfOpen,       // kCut, and the server still counts the connection as a receiver for a while
  kDuplicatePush,  // a message arrives twice
  kLatePush,       // messages have a connection of their own, and may be late
  kPause,          // a client is paused
  kCrash,          // a client's process ends, and its kernel closes the connections
  kHostGone,       // a client's host ends, and the server notices it late
  kServerPause,    // the server is paused
  kServerCrash,    // the server restarts with its data
  kServerLoss,     // the server restarts without its data, after the longest lease
  kServerAmnesia,  // the server restarts without its data, at once: holders may not be alone
  kScriptFlush,    // the server forgets the scripts
  kMemory,         // the server has no memory to write
  kNoPublish,      // the server refuses PUBLISH
  kReplica,        // the server is a replica, and refuses writes
  kClockBack,      // the server's clock is stepped back
  kClockForward,   // the server's clock is stepped forward: holders may not be alone
  kClockRate,      // clocks run at different rates
  kPollOnly,       // pushes are not trusted by some clients
  kCancel,         // callers stop waiting
  kMaxHold,        // callers set max_hold
  kForeign,        // clients of another library use the same key
  kForce,          // a caller releases by force: the holder may not be alone
  kAttach,         // a lease is handed to another client
  kForge,          // another user publishes grants that no script made
  // Faults of several servers.
  kPartition,  // a client and some nodes do not reach each other
  kOneWay,     // the same, in one direction
  kMinority,   // less than half of the nodes do not answer
  kMajority,   // more than half of the nodes do not answer
  kForget,     // nodes lose all keys, or one key, without a restart
  // Faults of a primary with replicas and sentinels.
  kFailover,      // a replica that has everything becomes the primary, as an operator wants it
  kPrimaryCrash,  // the primary ends, and a replica that may lag becomes the primary
  kOldPrimary,    // the same with one that is paused: then it runs on, and takes writes for a while
  kSplit,         // the primary, some clients and a sentinel do not reach the others
  kReplicaLag,    // a replica gets nothing for a while
  kStaleSentinel,  // a sentinel does not learn of new primaries for a while
  kSentinelDown,   // a sentinel ends, and comes back
  kWatchCut,       // the connection on which a client hears of new primaries ends
  // Faults of a cluster.
  kSlotMove,       // a slot moves key by key
  kSlotJump,       // a slot moves in one step
  kShardFailover,  // a replica that has everything becomes the primary of its slots
  kShardCrash,     // a primary ends, and its replica, which may lag, has its slots afterwards
  kStaleMap,       // a node learns late which node has which slot
  kClusterDown,    // a node says for a while that the cluster is down
  // Faults of every server.
  kPassword,  // the password changes, and applications give the new one
};
inline constexpr size_t kFaultCount = 48;
inline constexpr size_t kClusterFaultEnd = 47;
inline constexpr size_t kSentinelFaultEnd = 41;
inline constexpr size_t kServerFaultCount = 28;  // in runs with one server
std::string_view name_of(Fault fault);
// kFaultCount if no fault has that name.
size_t fault_number(std::string_view name);

// The scenario of a run.
enum class Scenario : uint8_t {
  kGeneral,  // a bit of everything
  kDrift,    // clocks at the edge of what the drift margin covers; leases end unrenewed
  kClaim,    // waiters die one at a time when they are granted the lock, with calm in between
  // For defects that the others rarely find; no seed has one of these scenarios by itself.
  kHeir,      // as kClaim, with few waiters, which poll too rarely to help
  kStale,     // waiters hear nothing for long, and the push of a short grant is late
  kCut,       // connections break, locks are taken by force; replies are slow
  kScarce,    // the server is often out of memory, and gets many requests
  kBatch,     // few clients confirm many provisional leases whose pushes are late
  kFlush,     // scripts are forgotten while callers come and go
  kDeploy,    // all clients but two crash at once, holders and waiters, again and again
  kForgery,   // another user publishes grants of long leases
  kHandover,  // leases go from client to client while connections break
  kBehind,    // waiters behind a holder of another library die or give up
  kLate,      // late copies of first requests, by waiters that missed a short lease
  kUpgrades,  // late copies of upgrades that were given up, by readers that upgrade again
  // Other locks than mutexes.
  kReaders,    // readers and writers, with upgrades and downgrades
  kReentrant,  // owners, shared by callers and clients, hold more than once
  kPool,       // permits of semaphores, some of them capped
  kNames,      // several names at once, in any order
  kJobs,       // runs of once, and flights
  kElections,  // candidates and observers
  kRetained,   // locks that clients retain, with some readers
  // A quorum of several servers.
  kRedlock,         // a bit of everything
  kRedlockDrift,    // as kDrift
  kRedlockRestart,  // nodes restart empty, and clock steps falsify their uptimes
  kRedlockForget,   // nodes lose keys without a restart; many leases begin with a bare majority
  // A primary with replicas, found by sentinels.
  kSentinel,          // failovers of all kinds, some with lost grants
  kSentinelFailover,  // failovers without loss: exclusion is checked across all of them
  kSentinelReplicas,  // as kSentinel; most callers want replicas to confirm their grants
  kSentinelPool,      // as kSentinel, with semaphores
  // A cluster.
  kCluster,          // slot moves and failovers of all kinds, some with lost grants
  kClusterMoves,     // slots move all the time, and nothing is lost
  kClusterReaders,   // the same with readers and writers
  kClusterPool,      // the same with semaphores
  kClusterNames,     // the same with several names at once
  kClusterRetained,  // the same with locks that clients retain
  kClusterClocks,    // slots move, often for longer than a lease, between clocks far apart
  // One server, or a primary with replicas. No seed has it by itself.
  kPasswords,  // passwords change all the time, and connections are cut
  kCount,
};
std::string_view name_of(Scenario scenario);

class Random;

struct Plan {
  // The scenario follows from the seed unless it is given.
  static Plan of(uint64_t seed, Nanos duration, Scenario scenario);
  static Scenario scenario_of(uint64_t seed);

  void load_server();
  void load_jobs(Random &random);
  void load_elections(Random &random);
  void load_retained(Random &random);
  void use_semaphores(Random &random);
  // Switch a fault off, with the settings that belong to it.
  void do_without(Fault fault);
  bool has(Fault fault) const { return faults.test(static_cast<size_t>(fault)); }
  static Scenario redlock_scenario_of(uint64_t seed);   // the scenario if the run is of a quorum
  static Scenario sentinel_scenario_of(uint64_t seed);  // .. or of sentinels
  static Scenario cluster_scenario_of(uint64_t seed);   // .. or of a cluster
  // The server's clock is as fast as the margin covers, those of clients are as slow.
  bool has_worst_rates() const { return is_of_rates() || scenario == Scenario::kStale; }
  // Leases expire without renewal while others wait for that.
  bool is_of_rates() const {
    return scenario == Scenario::kDrift || scenario == Scenario::kRedlockDrift;
  }
  // Many leases are held until they end.
  bool holds_long() const {
    return is_of_rates() || scenario == Scenario::kClusterClocks ||
           scenario == Scenario::kPasswords;
  }
  // Nothing else keeps a client from its server for long.
  bool changes_passwords_only() const;
  // Checker that a live waiter acquires a lock soon after another library has released it.
  bool is_watched() const { return scenario == Scenario::kBehind; }
  // Many waiters die at once; the next live one must be served at once.
  bool kills_crowds() const { return scenario == Scenario::kDeploy; }
  // Waiters die, one at a time.
  bool kills_newcomers() const {
    return scenario == Scenario::kClaim || scenario == Scenario::kHeir;
  }
  std::string describe() const;

  uint64_t seed = 0;
  Scenario scenario = Scenario::kGeneral;
  Nanos duration = 0;
  std::bitset<kFaultCount> faults;

  int client_count = 8;
  int caller_count = 2;  // of each client
  int name_count = 3;
  int peer_count = 0;  // clients of another library

  bool is_sharded = false;
  bool lacks_sharded = false;         // otherwise: it says that it is 7.0 all the same
  bool lacks_publish = false;         // kNoPublish: nobody may, at any time
  bool counts_wrongly = false;        // kPollOnly: messages arrive, but receivers are not counted
  bool is_push_behind_reply = false;  // as Valkey 9 sends them
  bool has_small_cap = false;         // one script call looks at 2 queue entries, not 256
  // What the servers understand, and ask for.
  int protocol = 3;         // the newest; with 2, messages have a connection of their own
  bool knows_hello = true;  // otherwise the protocol is 2
  bool has_password = false;
  int database = 0;
  int64_t rate_limit_ppm = 0;  // the largest error of a clock rate
  Nanos delay_min = 0, delay_max = 0;
  Nanos timeout = 0;  // of a command
  Nanos lease_min = 0, lease_max = 0;
  Nanos hold_max = 0, think_max = 0;
  Nanos fault_interval = 0;
  int64_t yield_every = 0;
  int late_push_chance = 20;  // of 1000
  Nanos late_push_max = 5'000 * kMs;
  int force_percent = 1;    // of the actions of callers
  bool shuts_down = false;  // kCrash: half of these processes shut their client down first

  // Other locks than mutexes.
  protocol::Format format = protocol::Format::kString;
  int read_percent = 0;         // of acquires
  int mode_change_percent = 0;  // of holders that upgrade or downgrade
  int owner_count = 0;          // 0: callers name no owner
  int limit = 0;                // of semaphores; 0: they are other locks
  int cap_percent = 0;          // of the actions of callers
  int names_percent = 0;        // of acquires: of several names
  int run_percent = 0;          // .. : for a run of once
  int flight_percent = 0;       // .. : of a flight
  int candidate_percent = 0;    // .. : of a candidate
  int retain_percent = 0;       // .. : with a time for which the client retains the lock
  int observer_percent = 0;     // how many of the actions wait for another leader
  Nanos period = 0;             // of once, and the longest ttl of a value
  int tries = 1;
  bool is_shared() const { return read_percent > 0 || format != protocol::Format::kString; }

  // Locks on several servers.
  enum class Guard : uint8_t { kOn, kDurable, kOff };
  int node_count = 1;
  Guard guard = Guard::kOn;
  Nanos restart_guard = 0;
  bool is_fenced = false;
  bool checks_each_node = false;  // also by the rules of one server, which doubles the run time
  bool is_info_forbidden = false;
  Nanos node_timeout = 0;  // 0: the product's default
  Nanos min_validity = 0;
  Nanos clock_offset_max = 0;  // of the nodes' clocks from the true time, at the start
  bool is_quorum() const { return node_count > 1; }
  // The largest number of nodes that is less than half.
  int minority() const { return (node_count - 1) / 2; }

  // One server with replicas, and sentinels.
  int replica_count = 0;
  int sentinel_count = 0;
  Nanos replication_max = 0;  // the longest usual way of an effect to a replica
  int min_replicas = 0;       // the most that a caller wants to confirm its grant; 0: none
  bool is_group() const { return replica_count > 0; }

  // A cluster: each shard has a primary and a replica.
  int shard_count = 0;
  bool names_one_node = false;  // the URL names one node as if it were alone
  Nanos slot_move_max = 0;      // the longest pause between two keys of a slot that moves
  bool is_cluster() const { return shard_count > 0; }
  int server_count() const { return is_cluster() ? 2 * shard_count : node_count + replica_count; }
  int64_t least_grants() const;  // in a simulated minute, for a run to count
};

}  // namespace redlatch::sim
