// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Plan: the scenario of a seed, and what follows from a scenario.
#include <initializer_list>

#include "plan.h"

namespace redlatch::sim {

Scenario Plan::scenario_of(uint64_t seed) {
  const uint64_t part = seed % 16;
  if (part == 0 || part == 14) return redlock_scenario_of(seed);
  if (part == 5 || part == 8) return Scenario::kReaders;
  if (part == 6 || part == 12) return Scenario::kReentrant;
  if (part == 7) return Scenario::kDrift;
  if (part == 10) return Scenario::kNames;
  if (part == 13) return Scenario::kPool;
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
  static constexpr Scenario kOf[] = {Scenario::kCluster, Scenario::kClusterMoves,
                                     Scenario::kClusterClocks, Scenario::kClusterReaders};
  return kOf[seed % 4];
}

int64_t Plan::least_grants() const {
  const bool is_slow = is_watched() || scenario == Scenario::kClusterClocks ||
                       scenario == Scenario::kPasswords || scenario == Scenario::kUpgrades;
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

bool Plan::changes_passwords_only() const {
  std::bitset<kFaultCount> others = faults;
  for (const Fault fault : {Fault::kPassword, Fault::kCut, Fault::kLatePush, Fault::kReplicaLag,
                            Fault::kClockRate, Fault::kCancel}) {
    others.reset(static_cast<size_t>(fault));
  }
  return has(Fault::kPassword) && others.none();
}

}  // namespace redlatch::sim
