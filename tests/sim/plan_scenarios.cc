// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Plan: the scenario of a seed, and what follows from a scenario.
#include <initializer_list>

#include "plan.h"
#include "random.h"

namespace redlatch::sim {

Scenario Plan::scenario_of(uint64_t seed) {
  const uint64_t part = seed % 16;
  if (part == 0 || part == 14) return redlock_scenario_of(seed);
  if (part == 5 || part == 8) return Scenario::kReaders;
  if (part == 6 || part == 12) return Scenario::kReentrant;
  if (part == 7) return Scenario::kDrift;
  if (part == 10) return Scenario::kNames;
  if (part == 11) return seed % 32 == part ? Scenario::kJobs : Scenario::kElections;
  if (part == 13) return Scenario::kPool;
  if (part == 9) return Scenario::kRetained;
  return part == 15 ? Scenario::kClaim : Scenario::kGeneral;
}

Scenario Plan::redlock_scenario_of(uint64_t seed) {
  static constexpr Scenario kOf[] = {Scenario::kRedlock, Scenario::kRedlockDrift,
                                     Scenario::kRedlock, Scenario::kRedlockRestart,
                                     Scenario::kRedlockForget};
  return kOf[seed % 5];
}

Scenario Plan::sentinel_scenario_of(uint64_t seed) {
  if (seed % 8 == 2) return Scenario::kSentinelPool;
  static constexpr Scenario kOf[] = {Scenario::kSentinel, Scenario::kSentinelFailover,
                                     Scenario::kSentinel, Scenario::kSentinelReplicas};
  return kOf[seed % 4];
}

Scenario Plan::cluster_scenario_of(uint64_t seed) {
  if (seed % 16 == 11) return Scenario::kClusterPool;
  if (seed % 16 == 6) return Scenario::kClusterNames;
  if (seed % 16 == 9) return Scenario::kClusterRetained;
  static constexpr Scenario kOf[] = {Scenario::kCluster, Scenario::kClusterMoves,
                                     Scenario::kClusterClocks, Scenario::kClusterReaders};
  return kOf[seed % 4];
}

int64_t Plan::least_grants() const {
  const bool is_slow = is_watched() || scenario == Scenario::kClusterClocks ||
                       scenario == Scenario::kPasswords || scenario == Scenario::kUpgrades ||
                       scenario == Scenario::kJobs || scenario == Scenario::kElections;
  return is_slow ? 30 : is_quorum() || is_group() || is_cluster() ? 60 : 200;
}

void Plan::do_without(Fault fault) {
  faults.reset(static_cast<size_t>(fault));
  if (fault == Fault::kLatePush) {
    protocol = 3;
    knows_hello = true;
  }
  if (fault == Fault::kClockRate) rate_limit_ppm = 0;
  if (fault == Fault::kForeign) peer_count = 0;
}

// What the handshake meets. Other libraries come without a password.
void Plan::load_server() {
  Random random(seed, 11);
  if (has(Fault::kLatePush)) protocol = 2;
  knows_hello = protocol == 3 || is_info_forbidden || random.chance(600);
  has_password = !has(Fault::kForeign) && random.chance(500);
  database = random.chance(300) && !is_cluster() ? 1 : 0;
  if (has(Fault::kPassword)) has_password = true;
}

void Plan::load_jobs(Random &random) {
  run_percent = static_cast<int>(random.between(20, 50));
  flight_percent = static_cast<int>(random.between(20, 80 - run_percent));
  period = random.between(300, 6'000) * kMs;
  tries = static_cast<int>(random.between(1, 3));
  name_count = static_cast<int>(random.between(1, 3));
  yield_every = 0;
  think_max /= 3;
}

void Plan::load_elections(Random &random) {
  candidate_percent = static_cast<int>(random.between(40, 100));
  observer_percent = static_cast<int>(random.between(3, 15));
  name_count = static_cast<int>(random.between(1, 2));
  yield_every = 0;
}

// Few permits, and in some runs caps.
void Plan::use_semaphores(Random &random) {
  format = protocol::Format::kPermits;
  limit = static_cast<int>(random.between(1, 4));
  cap_percent = random.chance(300) ? 3 : 0;
}

// Few clients, so that callers of one acquire a lock one after the other.
void Plan::load_retained(Random &random) {
  if (scenario != Scenario::kRetained && scenario != Scenario::kClusterRetained) return;
  retain_percent = static_cast<int>(random.between(50, 100));
  read_percent = random.chance(400) ? (random.chance(500) ? 15 : 70) : 0;
  client_count = static_cast<int>(random.between(2, 5));
  name_count = is_cluster() ? 4 : static_cast<int>(random.between(1, 3));
  if (random.chance(850)) yield_every = 0;
  hold_max /= 4;
  think_max /= 6;
}

bool Plan::changes_passwords_only() const {
  std::bitset<kFaultCount> others = faults;
  for (const Fault fault : {Fault::kPassword, Fault::kCut, Fault::kLatePush, Fault::kReplicaLag,
                            Fault::kClockRate, Fault::kCancel}) {
    others.reset(static_cast<size_t>(fault));
  }
  return has(Fault::kPassword) && others.none();
}

}  // namespace redlatch::sim
