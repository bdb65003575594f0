// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Recalls: those that a client has sent in the last second. It sends one for a name in that time:
// a caller in a loop must not wake the holders all the time.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace redlatch::operate {

class Recalls {
 public:
  // @return whether one for `name` was sent within the last second; `heard`: its answer.
  [[nodiscard]] bool take_recent(const std::string &name, Nanos now, int64_t &heard);
  // Throws std::bad_alloc.
  void note(const std::string &name, Nanos sent_at, int64_t heard);

 private:
  static constexpr Nanos kInterval = 1'000 * kMs;
  static constexpr size_t kMostNames = 256;

  struct Sent {
    Nanos at = 0;
    int64_t heard = 0;
  };
  std::map<std::string, Sent> sent_;
};

}  // namespace redlatch::operate
