// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Campaign: many runs, spread over processes, and their findings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan.h"
#include "stats.h"
#include "world.h"

namespace redlatch::sim {

struct Orders {
  uint64_t first_seed = 1;
  uint64_t seed_count = 1;
  int wall_minutes = 0;  // if set, run as many seeds as fit, instead of seed_count
  int jobs = 1;
  Nanos duration = 0;
  std::optional<Scenario> scenario;  // of every run; otherwise it follows from the seed
  bool is_redlock = false;           // choose from the scenarios of quorums only
  bool is_sentinel = false;          // .. of sentinels only
  bool is_cluster = false;           // .. of clusters only
  std::vector<Fault> without;
  const Mutant *mutant = nullptr;
};

struct Findings {
  uint64_t counted = 0;    // runs that did enough work to count
  uint64_t uncounted = 0;  // runs that did not
  Nanos simulated = 0;     // simulated time of the runs that count
  double cpu_s = 0;
  double wall_s = 0;
  Stats stats;  // of the runs that count
  struct Broken {
    uint64_t seed;
    std::string text;
  };
  std::vector<Broken> broken;        // in order of seeds
  std::vector<std::string> missing;  // why runs did not count

  std::string summary(const Orders &orders) const;
  // `command`: the arguments of the program.
  std::string json(const Orders &orders, const std::string &commit,
                   const std::string &command) const;
};

Plan plan_of(uint64_t seed, const Orders &orders);
Result run_seed(uint64_t seed, const Orders &orders, FILE *words);
Findings run_all(const Orders &orders);
// The faults that can be left out, tried one by one, while the run still breaks `rule`.
std::vector<Fault> shrink(uint64_t seed, const Orders &orders, const std::string &rule);

}  // namespace redlatch::sim
