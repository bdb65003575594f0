// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Mutants: defects built in on purpose, one at a time, to show that the simulator finds them.
// Mutants of scripts change their text; those of the engine and the quorum are compiled into the
// program simulate_mutants only (mutants.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plan.h"

namespace redlatch::sim {

struct Mutant {
  std::string_view name;
  std::string_view what;  // a description of the defect
  Scenario scenario;      // of the runs that look for it
  bool follows_seed;      // the scenario follows from the seed instead
  uint64_t seed;          // a seed that finds it
  // For a script: every `before` is replaced by `after`. Empty for the engine and the quorum.
  std::string_view before, after;

  bool is_of_script() const { return !before.empty(); }
  Scenario scenario_of(uint64_t any_seed) const {
    return follows_seed ? Plan::scenario_of(any_seed) : scenario;
  }
};

// The mutants that this program can switch on.
std::span<const Mutant> mutants();
// nullptr if no mutant has that name.
const Mutant *mutant_of(std::string_view name);
// The text of a script, with the defect if it concerns this script.
std::string mutated(std::string_view text, const Mutant *mutant);
// The first mutant of a script whose `before` is in no script; nullptr if all are up to date.
const Mutant *outdated_mutant();
// Switch on a mutant of the engine or the quorum; nullptr switches all off.
void switch_on(const Mutant *mutant);

}  // namespace redlatch::sim
