// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Plan: what one run is made of. It follows from the seed alone, and is printed when a run fails.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "protocol/scripts.h"

namespace redlatch::sim {

// What may go wrong. Each kind is switched on or off for a whole run; --shrink turns them off one
// by one.
enum class Fault : uint8_t {
  kSpike,          // a message takes up to seconds
  kStall,          // one direction of a connection stands still, and goes on
  kCut,            // a connection ends; what was under way is carried out in part
  kLateCopy,       // .. and in part seconds later, behind what the next connection brought
  kHalfOpen,       // .. and the server goes on counting it as a receiver
  kDuplicatePush,  // a message comes twice
  kLatePush,       // messages have a connection of their own, and come when they like
  kPause,          // a client stands still
  kCrash,          // a client's process ends, its kernel says so
  kHostGone,       // .. and nobody says so
  kServerPause,    // the server stands still
  kServerCrash,    // it ends and comes back with its data
  kServerLoss,     // .. without its data, after the longest lease
  kServerAmnesia,  // .. without its data, at once: no promise of exclusion for who held
  kScriptFlush,    // it forgets the scripts
  kMemory,         // it has no memory to write
  kNoPublish,      // it forbids to publish
  kClockBack,      // its clock is stepped back
  kClockForward,   // .. forward: no promise of exclusion for who held
  kClockRate,      // clocks run at different rates
  kPollOnly,       // pushes are not trusted by some clients
  kCancel,         // callers stop waiting
  kMaxHold,        // callers set the longest hold
  kForeign,        // clients of another library use the same key
  kForce,          // somebody releases by force: no promise for the holder
  kAttach,         // a lease is handed to another client
  kForge,          // another user publishes grants that no script made
  // Of several servers.
  kPartition,  // a client and a node do not reach each other
  kOneWay,     // .. in one direction
  kMinority,   // less than half of the nodes do not answer
  kMajority,   // more than half of them
  kForget,     // one loses all keys, or one key, and does not start again for it
};
inline constexpr size_t kFaultCount = 32;
inline constexpr size_t kServerFaultCount = 27;  // that one server can have
std::string_view name_of(Fault fault);
// kFaultCount if there is none of that name.
size_t fault_number(std::string_view name);

// How the dice are loaded.
enum class Shape : uint8_t {
  kGeneral,  // a bit of everything
  kDrift,    // clocks at the edge of what the drift margin covers; leases end unrenewed
  kClaim,    // single deaths of who was just granted, with calm between them
  // For defects that these find too seldom; no seed has one of these shapes by itself.
  kHeir,      // as kClaim, with one waiter behind, who knows nothing but what it was told
  kStale,     // long waits in silence, then short claims whose messages come late
  kCut,       // connections break, locks are taken by force; replies take their time
  kScarce,    // a server that often has no memory, and is asked often
  kBatch,     // few clients renew many claims that are about over when they are told
  kFlush,     // scripts are forgotten while callers come and go
  kDeploy,    // all but two clients end at once, who held and who waited, again and again
  kForgery,   // another user publishes grants of long leases
  kHandover,  // leases go from client to client while connections break
  kBehind,    // who waits behind a holder of another library dies or gives up
  // Of more than mutexes.
  kReaders,    // readers and writers, who become each other
  kReentrant,  // owners, whom several callers and clients share, hold more than once
  // Of a quorum of several servers.
  kRedlock,         // a bit of everything
  kRedlockDrift,    // as kDrift
  kRedlockRestart,  // nodes forget everything, and clocks lie about how long ago
  kRedlockForget,   // .. and do not start again; many leases begin with a bare majority
  kCount,
};
std::string_view name_of(Shape shape);

struct Plan {
  // The shape follows from the seed unless it is given.
  static Plan of(uint64_t seed, Nanos duration, Shape shape);
  static Shape shape_of(uint64_t seed);

  // Leave this out, with what belongs to it.
  void do_without(Fault fault);
  bool has(Fault fault) const { return faults.test(static_cast<size_t>(fault)); }
  static Shape redlock_shape_of(uint64_t seed);  // .. of a quorum
  // The server's clock is as fast as may be, those of clients are as slow.
  bool has_worst_rates() const { return is_of_rates() || shape == Shape::kStale; }
  // Leases end unrenewed, and somebody waits for just that.
  bool is_of_rates() const { return shape == Shape::kDrift || shape == Shape::kRedlockDrift; }
  // A free lock is found at once: by who is told of it, and is alive.
  bool is_watched() const { return shape == Shape::kBehind; }
  // Whoever is left is served at once, however many died in front of it.
  bool kills_crowds() const { return shape == Shape::kDeploy; }
  // Those who wait die, one by one.
  bool kills_newcomers() const { return shape == Shape::kClaim || shape == Shape::kHeir; }
  std::string describe() const;

  uint64_t seed = 0;
  Shape shape = Shape::kGeneral;
  Nanos duration = 0;
  std::bitset<kFaultCount> faults;

  int client_count = 8;
  int caller_count = 2;  // of each client
  int name_count = 3;
  int peer_count = 0;  // clients of another library

  bool is_sharded = false;
  bool can_track = true;
  bool is_push_behind_reply = false;  // as Valkey 9 sends them
  bool has_small_cap = false;         // one script call looks at 2 queue entries, not 256
  bool has_push_connection = false;   // as with RESP2
  int64_t rate_limit_ppm = 0;         // no clock is further off
  Nanos delay_min = 0, delay_max = 0;
  Nanos timeout = 0;  // of a command
  Nanos lease_min = 0, lease_max = 0;
  Nanos hold_max = 0, think_max = 0;
  Nanos fault_interval = 0;
  int64_t foreign_burst = 0;
  int late_push_chance = 20;  // of 1000
  Nanos late_push_max = 5'000 * kMs;
  int force_percent = 1;  // of what callers do

  // Locks that are not just mutexes.
  protocol::Format format = protocol::Format::kString;
  int read_percent = 0;   // of those who take a lock
  int climb_percent = 0;  // of holders become readers, or writers
  int owner_count = 0;    // 0: nobody has a name
  bool is_shared() const { return read_percent > 0 || format == protocol::Format::kHash; }

  // Locks on several servers.
  enum class Guard : uint8_t { kOn, kDurable, kOff };
  int node_count = 1;
  Guard guard = Guard::kOn;
  Nanos restart_guard = 0;
  bool is_fenced = false;
  bool judges_each_node = false;  // by the rules of one server, too: that takes half of the time
  bool is_info_forbidden = false;
  Nanos node_timeout = 0;  // 0: what the product chooses
  Nanos min_validity = 0;
  Nanos clock_offset_max = 0;  // between the nodes' clocks and the true one, at first
  bool is_quorum() const { return node_count > 1; }
  // Of so many nodes the clocks may be stepped, or all keys may be lost without a guard.
  int minority() const { return (node_count - 1) / 2; }
  int64_t least_grants() const;  // in a minute, for a run to count
};

}  // namespace redlatch::sim
