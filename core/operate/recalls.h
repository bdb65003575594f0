// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Recalls: those of a client that were answered in the last second. For that time it sends no other
// one for the name: a caller in a loop must not wake the holders all the time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace redlatch::operate {

class Recalls {
 public:
  // @return whether one for `name` was answered within the last second; `heard`: its answer.
  [[nodiscard]] bool take_recent(const std::string &name, Nanos now, int64_t &heard);
  // One of too many names replaces the oldest. Without memory it is not noted, and the next one for
  // the name is sent.
  void note(const std::string &name, Nanos answered_at, int64_t heard) noexcept;

 private:
  static constexpr Nanos kInterval = 1'000 * kMs;
  static constexpr size_t kMostNames = 256;

  struct Answer {
    Nanos at = 0;
    int64_t heard = 0;
  };
  std::map<std::string, Answer> answers_;
};

}  // namespace redlatch::operate
