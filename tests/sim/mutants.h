// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Mutants: defects built in on purpose, one at a time, to show that the simulator finds them. Those
// of the scripts are changes of their text; those of the engine are compiled into the program
// simulate_mutants only (mutants.py).
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
  std::string_view what;  // the defect, in words
  Shape shape;            // of the runs that look for it
  bool follows_seed;      // .. or as the seed says
  uint64_t seed;          // that finds it
  // Of a script: text to be replaced wherever it stands, and by what. Empty: it is the engine's.
  std::string_view before, after;

  bool is_of_script() const { return !before.empty(); }
  Shape shape_of(uint64_t any_seed) const {
    return follows_seed ? Plan::shape_of(any_seed) : shape;
  }
};

// Those that this program can switch on.
std::span<const Mutant> mutants();
// nullptr if there is none of that name.
const Mutant *mutant_of(std::string_view name);
// The text of a script with the defect, if it concerns this script.
std::string mutated(std::string_view text, const Mutant *mutant);
// The first mutant of a script whose text stands in no script; nullptr if there is none.
const Mutant *outdated_mutant();
// Switch on one of the engine's, or none.
void switch_on(const Mutant *mutant);

}  // namespace redlatch::sim
