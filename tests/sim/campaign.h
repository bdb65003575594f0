// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Campaign: many runs, spread over processes, and what they showed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan.h"
#include "tally.h"
#include "world.h"

namespace redlatch::sim {

struct Orders {
  uint64_t first_seed = 1;
  uint64_t seed_count = 1;
  int wall_minutes = 0;  // instead of a count of seeds: as many as fit
  int jobs = 1;
  Nanos duration = 0;
  std::optional<Shape> shape;  // else as each seed says
  bool is_redlock = false;     // .. if all are of a quorum
  std::vector<Fault> without;
  const Mutant *mutant = nullptr;
};

struct Findings {
  uint64_t counted = 0;    // runs that did enough work
  uint64_t uncounted = 0;  // .. and that did not
  Nanos simulated = 0;     // in those that count
  double cpu_s = 0;
  double wall_s = 0;
  Tally tally;  // of those that count
  struct Broken {
    uint64_t seed;
    std::string text;
  };
  std::vector<Broken> broken;        // in order of seeds
  std::vector<std::string> missing;  // why seeds do not count

  std::string summary(const Orders &orders) const;
};

Plan plan_of(uint64_t seed, const Orders &orders);
Result run_seed(uint64_t seed, const Orders &orders, FILE *words);
Findings run_all(const Orders &orders);
// Which faults a broken run does without, one by one.
std::vector<Fault> shrink(uint64_t seed, const Orders &orders, const std::string &rule);

}  // namespace redlatch::sim
