// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "plan.h"

#include <algorithm>
#include <utility>

#include "random.h"

namespace redlatch::sim {

namespace {

void switch_on(Plan &plan, std::initializer_list<Fault> faults) {
  for (const Fault fault : faults) plan.faults.set(static_cast<size_t>(fault));
}

void switch_off(Plan &plan, std::initializer_list<Fault> faults) {
  for (const Fault fault : faults) plan.faults.reset(static_cast<size_t>(fault));
}

// Each of the faults from `first` on, before `end`, is on in so many of 1000 plans.
void draw(Plan &plan, Random &random, size_t first, size_t end, int per_mille) {
  for (size_t i = first; i < end; i++) plan.faults.set(i, random.chance(per_mille));
}

constexpr size_t number(Fault fault) { return static_cast<size_t>(fault); }

// If the server loses its fence counter and its clock is stepped back, the fence may fall, which
// the product does not promise to prevent: no plan has both.
void drop_what_is_not_promised(Plan &plan) {
  if (!plan.has(Fault::kClockBack)) return;
  switch_off(plan, {Fault::kServerLoss, Fault::kServerAmnesia});
}

void load_general(Plan &plan, Random &random) {
  draw(plan, random, 0, number(Fault::kForge), 500);
  plan.client_count = static_cast<int>(random.between(8, 12));
  plan.caller_count = static_cast<int>(random.between(1, 3));
  plan.name_count = static_cast<int>(random.between(2, 4));
  plan.delay_min = random.between(20, 500) * 1000;
  plan.delay_max = plan.delay_min + random.between(10, 5'000) * 1000;
  plan.timeout = random.between(200, 2000) * kMs;
  plan.lease_min = random.between(20, 500) * kMs;
  plan.lease_max = plan.lease_min + random.between(100, 8'000) * kMs;
  plan.hold_max = random.between(40, 300) * kMs;
  plan.think_max = 3500 * kMs * plan.client_count * plan.caller_count / 16;
  plan.fault_interval = random.between(800, 4000) * kMs;
  plan.yield_every = random.chance(500) ? random.between(1, 6) : 0;
}

// Only these faults; no locks are left free for libraries that poll.
void load_only(Plan &plan, Random &random, std::initializer_list<Fault> faults) {
  load_general(plan, random);
  plan.faults.reset();
  switch_on(plan, faults);
  plan.yield_every = 0;
}

// Holders believe in leases without renewal until the last moment, while others wait.
void load_drift(Plan &plan, Random &random) {
  load_general(plan, random);
  plan.faults.reset();
  switch_on(plan, {Fault::kClockRate, Fault::kCancel, Fault::kLatePush});
  plan.delay_max = plan.delay_min + 200'000;
  plan.lease_min = 500 * kMs;
  plan.lease_max = random.between(1000, 4000) * kMs;
}

// One waiter dies and is then granted the lock; calm follows until the next one dies.
void load_claim(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kHostGone});
  plan.name_count = 2;
  plan.caller_count = 1;
  plan.client_count = 12;
  plan.lease_min = plan.lease_max = 4'000 * kMs;
  plan.fault_interval = 4'000 * kMs;
  plan.think_max = 300 * kMs;
}

// load_claim() with so few waiters and such long leases that no waiter polls by chance at that
// moment. The next waiter dies after the last half-open connection has ended and one more
// provisional lease has passed: the waiter that knew its end dies with that knowledge.
void load_heir(Plan &plan, Random &random) {
  load_claim(plan, random);
  plan.name_count = 1;
  plan.client_count = 4;
  plan.lease_min = plan.lease_max = 20'000 * kMs;
  plan.hold_max = 4'000 * kMs;
  plan.think_max = 10'000 * kMs;
  plan.fault_interval = 28'000 * kMs;
}

// A waiter behind a long lease hears nothing for long, so its knowledge of the server's clock is
// old. Then it is granted a short lease, and the push arrives when that has almost ended.
void load_stale(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kClockRate, Fault::kLatePush});
  plan.name_count = plan.caller_count = 1;
  plan.client_count = 6;
  plan.delay_max = plan.delay_min + 200'000;
  plan.lease_min = 100 * kMs;
  plan.lease_max = 20'000 * kMs;
  plan.hold_max = 6'000 * kMs;
  plan.think_max = 300 * kMs;
  plan.late_push_chance = 500;
  plan.late_push_max = 200 * kMs;
}

// Leases last longer than every repetition, so one that expires was forgotten by its client. While
// another library holds the lock the first waiter polls, so that its requests cross the grants of
// forced releases.
void load_cut(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kCut, Fault::kForce, Fault::kForeign});
  plan.delay_min = kMs;
  plan.delay_max = random.between(5, 60) * kMs;
  plan.timeout = 2000 * kMs;
  plan.lease_min = 4'000 * kMs;
  plan.lease_max = 6'000 * kMs;
  plan.fault_interval = random.between(200, 1000) * kMs;
  plan.hold_max = 3'000 * kMs;
  plan.force_percent = 40;
}

void load_scarce(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kMemory});
  plan.delay_min = 20'000;
  plan.delay_max = 200'000;
  plan.think_max = 100 * kMs;
  plan.fault_interval = 400 * kMs;
}

void load_batch(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kLatePush});
  plan.client_count = 3;
  plan.caller_count = 8;
  plan.name_count = 4;
  plan.think_max = 100 * kMs;
  plan.hold_max = 2'000 * kMs;
  plan.lease_min = 500 * kMs;
  plan.lease_max = 2'000 * kMs;
  plan.late_push_chance = 600;
  plan.late_push_max = 1'500 * kMs;
}

void load_flush(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kScriptFlush, Fault::kCancel});
  plan.delay_min = kMs;
  plan.delay_max = 200 * kMs;
  plan.timeout = 4000 * kMs;  // enough for the round trips of a handshake
  plan.fault_interval = 300 * kMs;
}

// One script call examines two of many dead waiters; no other fault.
void load_deploy(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kCrash});
  plan.name_count = 1;
  plan.client_count = 60;
  plan.caller_count = 3;
  plan.timeout = 2000 * kMs;
  plan.delay_max = plan.delay_min + 1'000'000;
  plan.lease_min = plan.lease_max = 3'000 * kMs;
  plan.fault_interval = 8'000 * kMs;
  plan.think_max = 100 * kMs;
}

// Late copies of a detach arrive after the lease was attached.
void load_handover(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kAttach, Fault::kCut, Fault::kLateCopy, Fault::kStall});
  plan.name_count = 4;
  plan.timeout = 200 * kMs;
  plan.lease_min = 1'000 * kMs;
  plan.lease_max = 2'000 * kMs;
  plan.hold_max = 400 * kMs;
  plan.think_max = 300 * kMs;
  plan.fault_interval = random.between(200, 800) * kMs;
}

// Leases are so long that only the limit of a provisional lease ends the belief in a forged grant.
void load_forgery(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kForge});
  plan.name_count = 2;
  plan.lease_min = 20'000 * kMs;
  plan.lease_max = 30'000 * kMs;
  plan.hold_max = 12'000 * kMs;
  plan.fault_interval = 500 * kMs;
}

// Other libraries hold the locks, and our waiters crash, which the server notices, or cancel.
void load_behind(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kForeign, Fault::kCrash, Fault::kCancel});
  plan.protocol = 3;
  plan.name_count = 1;
  plan.caller_count = 1;
  plan.client_count = static_cast<int>(random.between(4, 12));
  plan.delay_max = plan.delay_min + 200'000;
  plan.lease_min = plan.lease_max = 20'000 * kMs;
  plan.hold_max = 800 * kMs;
  plan.think_max = 1'000 * kMs;
  plan.fault_interval = random.between(150, 600) * kMs;
  if (!random.chance(300)) return;
  plan.format = protocol::Format::kHash;
  plan.owner_count = 3;
}

// A waiter is granted a short lease, which ends before it hears of that. Then a late copy of its
// first request puts it at the end of the queue.
void load_late(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kCut, Fault::kLateCopy, Fault::kStall});
  plan.name_count = plan.caller_count = 1;
  plan.client_count = 12;
  plan.delay_min = kMs;
  plan.delay_max = random.between(5, 20) * kMs;
  plan.timeout = 2'000 * kMs;
  plan.lease_min = 50 * kMs;
  plan.lease_max = 200 * kMs;
  plan.hold_max = 500 * kMs;
  plan.think_max = 50 * kMs;
  plan.fault_interval = random.between(50, 150) * kMs;
}

// Readers upgrade for a short time, and again at once, while late copies of the requests come.
void load_upgrades(Plan &plan, Random &random) {
  load_only(plan, random, {Fault::kCut, Fault::kLateCopy, Fault::kStall, Fault::kCancel});
  plan.name_count = plan.caller_count = 1;
  plan.client_count = static_cast<int>(random.between(8, 12));
  plan.read_percent = 85;
  plan.mode_change_percent = 90;
  plan.owner_count = 2;
  plan.delay_min = kMs;
  plan.delay_max = random.between(5, 20) * kMs;
  plan.timeout = 2'000 * kMs;
  plan.lease_min = 10'000 * kMs;
  plan.lease_max = 20'000 * kMs;
  plan.hold_max = 8'000 * kMs;
  plan.think_max = 50 * kMs;
  plan.fault_interval = random.between(50, 150) * kMs;
}

void load_readers(Plan &plan, Random &random) {
  load_general(plan, random);
  plan.read_percent = static_cast<int>(random.between(40, 85));
  plan.mode_change_percent = static_cast<int>(random.between(5, 40));
  plan.owner_count = 2;
  plan.name_count = static_cast<int>(random.between(1, 2));
  plan.think_max /= 2;
}

// Leases of reentrant locks cannot be attached.
void load_reentrant(Plan &plan, Random &random) {
  load_general(plan, random);
  switch_off(plan, {Fault::kAttach});
  plan.format = protocol::Format::kHash;
  plan.owner_count = static_cast<int>(random.between(2, 4));
  plan.name_count = static_cast<int>(random.between(1, 2));
  plan.think_max /= 2;
}

// Permits of a lock that other libraries have, or that is taken by force, are those of a mutex.
void load_pool(Plan &plan, Random &random) {
  load_general(plan, random);
  plan.format = protocol::Format::kPermits;
  plan.limit = static_cast<int>(random.between(1, 6));
  plan.cap_percent = random.chance(500) ? 3 : 0;
  plan.name_count = static_cast<int>(random.between(1, 2));
  plan.yield_every = 0;
  plan.think_max /= 2;
}

// What is taken by force, or forgotten, is excused by the token of the first name only.
void load_names(Plan &plan, Random &random) {
  load_general(plan, random);
  switch_off(plan, {Fault::kForce, Fault::kForge, Fault::kForeign, Fault::kAttach,
                    Fault::kServerAmnesia, Fault::kServerLoss});
  plan.names_percent = static_cast<int>(random.between(40, 95));
  plan.read_percent = random.chance(500) ? 30 : 0;
  plan.name_count = static_cast<int>(random.between(3, 4));
  plan.yield_every = 0;
}

// Nothing that a server has noted is lost.
void load_jobs(Plan &plan, Random &random) {
  load_general(plan, random);
  switch_off(plan,
             {Fault::kForce, Fault::kForge, Fault::kForeign, Fault::kAttach, Fault::kServerAmnesia,
              Fault::kServerLoss, Fault::kClockBack, Fault::kClockForward});
  plan.scenario == Scenario::kJobs ? plan.load_jobs(random) : plan.load_elections(random);
}

// The number of nodes, and their guard: with kOn a node may restart empty at any time.
void load_nodes(Plan &plan, Random &random) {
  static constexpr int kCounts[] = {3, 5, 5, 7};
  plan.node_count = kCounts[random.below(4)];
  plan.caller_count = random.chance(800) ? 1 : 2;
  plan.yield_every = 0;
  plan.guard = random.chance(600)   ? Plan::Guard::kOn
               : random.chance(500) ? Plan::Guard::kDurable
                                    : Plan::Guard::kOff;
  plan.is_fenced = random.chance(400);
  plan.checks_each_node = random.chance(125);
  plan.is_info_forbidden = plan.guard == Plan::Guard::kOff && random.chance(500);
  if (random.chance(300)) plan.node_timeout = random.between(10, 60) * kMs;
  plan.think_max = 4'000 * kMs;
}

// Switch off the faults for which these settings of nodes promise nothing.
void drop_what_no_quorum_promises(Plan &plan) {
  if (plan.guard == Plan::Guard::kDurable) {
    switch_off(plan, {Fault::kServerLoss, Fault::kServerAmnesia});
  }
  if (plan.guard == Plan::Guard::kOff && plan.is_fenced) switch_off(plan, {Fault::kServerAmnesia});
  // A lost fence counter is replaced by the time, so the clocks must agree.
  const bool may_forget = plan.has(Fault::kServerLoss) || plan.has(Fault::kServerAmnesia);
  plan.clock_offset_max = (!plan.is_fenced ? 2'000 : may_forget ? 10 : 20'000) * kMs;
  if (plan.is_fenced && may_forget) {
    switch_off(plan, {Fault::kClockForward, Fault::kClockRate});
  }
  if (may_forget) switch_off(plan, {Fault::kClockBack});
}

void load_redlock(Plan &plan, Random &random) {
  load_general(plan, random);
  switch_off(plan, {Fault::kForeign, Fault::kForce, Fault::kAttach});
  draw(plan, random, kServerFaultCount, number(Fault::kForget), 500);
  load_nodes(plan, random);
  plan.client_count = static_cast<int>(random.between(8, 10));
  plan.delay_max = plan.delay_min + random.between(10, 3'000) * 1000;
  plan.lease_min = random.between(100, 600) * kMs;
  plan.lease_max = plan.lease_min + random.between(100, 4'000) * kMs;
  plan.restart_guard = plan.lease_max + random.between(0, 3'000) * kMs;
  if (random.chance(300)) plan.min_validity = plan.lease_min / 10 * 9;
  drop_what_no_quorum_promises(plan);
}

void load_redlock_drift(Plan &plan, Random &random) {
  load_drift(plan, random);
  load_nodes(plan, random);
  plan.client_count = 8;
  plan.guard = Plan::Guard::kDurable;
  plan.clock_offset_max = 300 * kMs;
}

// Nodes restart empty so often that leases which they have granted are still believed, and some of
// their clocks are stepped at that time.
void load_redlock_restart(Plan &plan, Random &random) {
  load_redlock(plan, random);
  plan.faults.reset();
  switch_on(plan, {Fault::kServerAmnesia, Fault::kPartition, Fault::kCrash});
  if (random.chance(700)) switch_on(plan, {Fault::kClockForward});
  if (random.chance(300)) switch_on(plan, {Fault::kClockRate});
  plan.guard = Plan::Guard::kOn;
  plan.is_info_forbidden = false;
  plan.lease_min = 2'000 * kMs;
  plan.lease_max = 4'000 * kMs;
  plan.hold_max = 2'000 * kMs;
  plan.restart_guard = plan.lease_max + random.between(0, 1'000) * kMs;
  plan.fault_interval = random.between(1'000, 2'500) * kMs;
  drop_what_no_quorum_promises(plan);
}

// Nodes lose keys at any time, while most leases are held long enough for several renewals. The
// promise then depends on the number of votes. No fences: a lost counter is replaced by the time.
void load_redlock_forget(Plan &plan, Random &random) {
  load_redlock(plan, random);
  plan.faults.reset();
  switch_on(plan, {Fault::kForget, Fault::kMinority, Fault::kPartition, Fault::kCancel});
  for (const Fault fault : {Fault::kPause, Fault::kCrash, Fault::kCut, Fault::kStall,
                            Fault::kClockRate, Fault::kServerPause, Fault::kServerCrash}) {
    if (random.chance(400)) switch_on(plan, {fault});
  }
  plan.caller_count = 1;
  plan.is_fenced = false;
  plan.checks_each_node = false;
  plan.name_count = 4;
  plan.lease_min = 300 * kMs;
  plan.lease_max = random.between(600, 1'500) * kMs;
  plan.hold_max = 4'000 * kMs;
  plan.think_max = 1'000 * kMs;
  plan.restart_guard = plan.lease_max + random.between(0, 1'000) * kMs;
  plan.min_validity = 0;
  plan.fault_interval = random.between(400, 1'500) * kMs;
}

// Faults that end the only server, or change its clock, are those of the group here.
void load_sentinel(Plan &plan, Random &random) {
  load_general(plan, random);
  switch_off(plan,
             {Fault::kServerPause, Fault::kServerCrash, Fault::kServerLoss, Fault::kServerAmnesia,
              Fault::kMemory, Fault::kNoPublish, Fault::kReplica, Fault::kClockBack,
              Fault::kClockForward, Fault::kForeign, Fault::kForce, Fault::kAttach});
  draw(plan, random, number(Fault::kFailover), kSentinelFaultEnd, 600);
  switch_on(plan, {random.chance(500) ? Fault::kPrimaryCrash : Fault::kOldPrimary});
  plan.replica_count = static_cast<int>(random.between(1, 2));
  plan.sentinel_count = 3;
  plan.replication_max = random.between(1, 60) * kMs;
  plan.clock_offset_max = random.chance(300) ? random.between(1, 500) * kMs : 0;
  plan.delay_max = plan.delay_min + random.between(10, 3'000) * 1000;
  plan.timeout = random.between(400, 1500) * kMs;
  plan.lease_min = random.between(300, 1500) * kMs;
  plan.lease_max = plan.lease_min + random.between(500, 8'000) * kMs;
  plan.fault_interval = random.between(1500, 5000) * kMs;
  plan.yield_every = 0;
}

// All clocks agree, and nothing that a server has acknowledged is lost.
void load_sentinel_failover(Plan &plan, Random &random) {
  load_sentinel(plan, random);
  switch_off(plan, {Fault::kPrimaryCrash, Fault::kOldPrimary, Fault::kSplit, Fault::kClockRate});
  switch_on(plan, {Fault::kFailover});
  plan.clock_offset_max = 0;
}

// Replicas lag, so that some grants are confirmed late, and some are not.
void load_sentinel_replicas(Plan &plan, Random &random) {
  load_sentinel(plan, random);
  switch_on(plan, {Fault::kReplicaLag});
  plan.min_replicas = plan.replica_count;
}

// In some runs replicas confirm the permits.
void load_sentinel_pool(Plan &plan, Random &random) {
  random.chance(300) ? load_sentinel_replicas(plan, random) : load_sentinel(plan, random);
  plan.use_semaphores(random);
  plan.name_count = static_cast<int>(random.between(1, 2));
}

// Slots and failovers are the faults of the nodes here. Their clocks differ by less than the drift
// of the shortest lease; what the rates of the clocks leave of it.
void load_cluster(Plan &plan, Random &random) {
  load_general(plan, random);
  switch_off(plan, {Fault::kServerLoss, Fault::kServerAmnesia, Fault::kMemory, Fault::kNoPublish,
                    Fault::kReplica, Fault::kClockBack, Fault::kClockForward, Fault::kForeign,
                    Fault::kForce, Fault::kAttach});
  draw(plan, random, number(Fault::kSlotMove), kClusterFaultEnd, 600);
  switch_on(plan, {random.chance(500) ? Fault::kSlotMove : Fault::kSlotJump});
  plan.is_sharded = Random(plan.seed, 12).chance(750);
  plan.shard_count = static_cast<int>(random.between(3, 4));
  plan.names_one_node = Random(plan.seed, 15).chance(250);
  plan.name_count = 4;
  plan.replication_max = random.between(1, 30) * kMs;
  plan.slot_move_max = random.between(2, random.chance(700) ? 100 : 800) * kMs;
  plan.delay_max = plan.delay_min + random.between(10, 3'000) * 1000;
  plan.timeout = random.between(400, 1500) * kMs;
  plan.lease_min = random.between(300, 1500) * kMs;
  plan.lease_max = plan.lease_min + random.between(500, 8'000) * kMs;
  plan.clock_offset_max = plan.has(Fault::kClockRate) ? kMs / 2 : plan.lease_min / 300;
  plan.fault_interval = random.between(500, 2500) * kMs;
  plan.yield_every = 0;
}

// Nothing that a server has acknowledged is lost.
void load_cluster_moves(Plan &plan, Random &random) {
  load_cluster(plan, random);
  switch_off(plan, {Fault::kShardCrash, Fault::kServerCrash});
  switch_on(plan, {Fault::kSlotMove, Fault::kSlotJump, Fault::kShardFailover});
  plan.fault_interval = random.between(200, 800) * kMs;
}

void load_cluster_readers(Plan &plan, Random &random) {
  load_cluster_moves(plan, random);
  plan.read_percent = static_cast<int>(random.between(40, 85));
  plan.mode_change_percent = static_cast<int>(random.between(5, 40));
  plan.owner_count = 2;
  plan.think_max /= 2;
}

void load_cluster_pool(Plan &plan, Random &random) {
  load_cluster_moves(plan, random);
  plan.use_semaphores(random);
}

void load_cluster_names(Plan &plan, Random &random) {
  load_cluster_moves(plan, random);
  plan.names_percent = static_cast<int>(random.between(40, 95));
  plan.read_percent = random.chance(500) ? 30 : 0;
  plan.name_count = 4;
}

// Only slots move, so a lease that is renewed is never lost: not if the clock of its node would end
// it early, because it is renewed before, and not if its slot moves for longer than it lasts.
void load_cluster_clocks(Plan &plan, Random &random) {
  load_cluster(plan, random);
  plan.faults.reset();
  switch_on(plan, {Fault::kSlotMove, Fault::kSlotJump});
  plan.slot_move_max = random.between(2, 600) * kMs;
  plan.clock_offset_max = plan.lease_min / 5;
}

// Leases last long enough for an application that answers in time, and are held until they would
// end without renewal.
void load_passwords(Plan &plan, Random &random) {
  const bool has_replicas = random.chance(400);
  has_replicas ? load_sentinel_replicas(plan, random) : load_general(plan, random);
  plan.faults.reset();
  switch_on(plan, {Fault::kPassword, Fault::kCut});
  if (has_replicas) switch_on(plan, {Fault::kReplicaLag});
  for (const Fault fault : {Fault::kLatePush, Fault::kClockRate, Fault::kCancel}) {
    if (random.chance(400)) switch_on(plan, {fault});
  }
  const bool is_rough = random.chance(300);
  for (const Fault fault : {Fault::kStall, Fault::kHalfOpen, Fault::kPause, Fault::kServerPause,
                            Fault::kServerCrash, Fault::kScriptFlush}) {
    if (is_rough && random.chance(500)) switch_on(plan, {fault});
  }
  plan.name_count = 4;
  plan.yield_every = 0;
  plan.timeout = random.between(500, 1'500) * kMs;
  plan.lease_min = 4'000 * kMs;
  plan.lease_max = random.between(5'000, 8'000) * kMs;
  plan.fault_interval = random.between(200, 1'000) * kMs;
}

struct Loaded {
  std::string_view name;
  void (*load)(Plan &, Random &);
};
constexpr Loaded kScenarios[] = {
    {"general", load_general},  // in the order of Scenario
    {"drift", load_drift},
    {"claim", load_claim},
    {"heir", load_heir},
    {"stale", load_stale},
    {"cut", load_cut},
    {"scarce", load_scarce},
    {"batch", load_batch},
    {"flush", load_flush},
    {"deploy", load_deploy},
    {"forgery", load_forgery},
    {"handover", load_handover},
    {"behind", load_behind},
    {"late", load_late},
    {"upgrades", load_upgrades},
    {"readers", load_readers},
    {"reentrant", load_reentrant},
    {"pool", load_pool},
    {"names", load_names},
    {"jobs", load_jobs},
    {"elections", load_jobs},
    {"retained", load_general},
    {"redlock", load_redlock},
    {"redlock-drift", load_redlock_drift},
    {"redlock-restart", load_redlock_restart},
    {"redlock-forget", load_redlock_forget},
    {"sentinel", load_sentinel},
    {"sentinel-failover", load_sentinel_failover},
    {"sentinel-replicas", load_sentinel_replicas},
    {"sentinel-pool", load_sentinel_pool},
    {"cluster", load_cluster},
    {"cluster-moves", load_cluster_moves},
    {"cluster-readers", load_cluster_readers},
    {"cluster-pool", load_cluster_pool},
    {"cluster-names", load_cluster_names},
    {"cluster-retained", load_cluster_moves},
    {"cluster-clocks", load_cluster_clocks},
    {"passwords", load_passwords},
};
static_assert(std::size(kScenarios) == static_cast<size_t>(Scenario::kCount));

}  // namespace

std::string_view name_of(Scenario scenario) {
  return kScenarios[static_cast<size_t>(scenario)].name;
}

Plan Plan::of(uint64_t seed, Nanos duration, Scenario scenario) {
  Random random(seed, 0);
  Plan plan;
  plan.seed = seed;
  plan.scenario = scenario;
  plan.duration = duration;
  plan.is_sharded = random.chance(500);
  plan.protocol = random.chance(700) ? 3 : 2;
  plan.is_push_behind_reply = random.chance(500);
  kScenarios[static_cast<size_t>(scenario)].load(plan, random);
  plan.load_retained(random);
  drop_what_is_not_promised(plan);
  Random other(seed, 9);
  plan.has_small_cap = other.chance(125) || plan.kills_crowds();
  const bool is_of_all = scenario == Scenario::kGeneral || scenario == Scenario::kReaders ||
                         scenario == Scenario::kReentrant || scenario == Scenario::kPool;
  plan.lacks_sharded = !plan.is_sharded && Random(seed, 11).chance(300);
  plan.lacks_publish = is_of_all && plan.has(Fault::kNoPublish) && Random(seed, 14).chance(150);
  plan.shuts_down = plan.has(Fault::kCrash) && Random(seed, 15).chance(250);
  plan.counts_wrongly = Random(seed, 13).chance(400);
  if (is_of_all && Random(seed, 10).chance(250)) switch_on(plan, {Fault::kForge});
  const bool is_of_heirs = scenario == Scenario::kClaim || scenario == Scenario::kHeir;
  if (is_of_heirs) plan.protocol = other.chance(500) ? 2 : 3;
  plan.load_server();
  // The margin of 1 % covers rates that differ by 1 %: slightly less than half of it on each side.
  if (plan.has(Fault::kClockRate)) plan.rate_limit_ppm = random.between(50, 4'900);
  if (plan.has_worst_rates()) plan.rate_limit_ppm = 4'900;
  if (plan.has(Fault::kForeign)) plan.peer_count = static_cast<int>(random.between(1, 3));
  return plan;
}

}  // namespace redlatch::sim
