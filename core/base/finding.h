// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Finding: one fact about a server that matters to locks, judged. Plain data.
#pragma once

#include <cstdint>
#include <string>

namespace redlatch {

// The numbers are those of redlatch.h.
enum class FindingLevel : int32_t {
  kUnknown,  // it could not be found out
  kOk,
  kWarn,
  kFail,  // a lock may have two holders, or cannot be taken
};

struct Finding {
  std::string id;  // "eviction"; never changes its meaning
  FindingLevel level = FindingLevel::kUnknown;
  std::string seen;
  std::string advice;  // what to do; empty if nothing is to be done

  bool operator==(const Finding &) const = default;
  bool is_bad() const { return level == FindingLevel::kWarn || level == FindingLevel::kFail; }
};

}  // namespace redlatch
