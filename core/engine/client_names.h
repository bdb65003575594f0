// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClientNames: the names of other clients, as their keys on the server said. For messages only.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace redlatch::engine {

class ClientNames {
 public:
  // Empty: not known.
  std::string_view find(std::string_view cid) const;
  // Whether to ask the server for it (again).
  bool is_due(std::string_view cid, Nanos now) const;
  void note_asked(std::string_view cid, Nanos now);
  void note_answer(std::string_view cid, std::string_view name, Nanos now);

  // A client that has just been granted a lock may write its name a moment later.
  static constexpr Nanos kRetryAfter = 250 * kMs;

 private:
  static constexpr Nanos kKnownFor = 10'000 * kMs;
  static constexpr size_t kMaxCount = 64;

  struct Entry {
    std::string name;
    Nanos due = 0;  // to ask again
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace redlatch::engine
