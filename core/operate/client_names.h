// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClientNames: the names of other clients, read from their keys on the server. For messages only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace redlatch::operate {

// A client that has a lock.
struct Holder {
  enum class Kind : uint8_t {
    kOther,  // or not known: `name` is empty
    kThisClient,
    kThread,  // the one that waits for the lock
  };
  Kind kind = Kind::kOther;
  std::string_view name = {};
};

class ClientNames {
 public:
  // @return the name; empty: not known.
  std::string_view find(std::string_view cid) const;
  // @return whether to ask the server for the name (again).
  bool is_due(std::string_view cid, Nanos now) const;
  void note_asked(std::string_view cid, Nanos now);
  void note_answer(std::string_view cid, std::string_view name, Nanos now);

  // A client that was just granted a lock writes its name only later.
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

}  // namespace redlatch::operate
