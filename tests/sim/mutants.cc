// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "mutants.h"

#include <algorithm>
#include <array>

namespace redlatch::sim {

namespace {

constexpr std::array<Mutant, 1> kMutants = {{
    {"blind-delete", "RELEASE does not ask who holds", Shape::kGeneral, true,
     "local is_owner = holder == ARGV[1]", "local is_owner = holder and true"},
}};

}  // namespace

std::span<const Mutant> mutants() { return kMutants; }

const Mutant *mutant_of(std::string_view name) {
  const auto *found = std::find_if(kMutants.begin(), kMutants.end(),
                                   [&](const Mutant &mutant) { return mutant.name == name; });
  return found == kMutants.end() ? nullptr : found;
}

std::string mutated(std::string_view text, const Mutant *mutant) {
  std::string result(text);
  if (mutant == nullptr || mutant->before.empty()) return result;
  for (size_t at = 0; (at = result.find(mutant->before, at)) != std::string::npos;) {
    result.replace(at, mutant->before.size(), mutant->after);
    at += mutant->after.size();
  }
  return result;
}

}  // namespace redlatch::sim
