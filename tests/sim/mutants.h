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
  // Of a script: text to be replaced wherever it stands, and by what. Empty: it is the engine's.
  std::string_view before, after;
};

std::span<const Mutant> mutants();
// nullptr if there is none of that name.
const Mutant *mutant_of(std::string_view name);
// The text of a script with the defect, if it concerns this script.
std::string mutated(std::string_view text, const Mutant *mutant);
// Whether the program was built with the defects of the engine.
bool has_engine_mutants();
// Switch on one of the engine's, or none; in this process.
void switch_on(const Mutant *mutant);

}  // namespace redlatch::sim
