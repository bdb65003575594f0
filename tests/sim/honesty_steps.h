// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// StepMaker: random commands, for a store and a real server alike. What would be sensible next it
// sees in the store; much of what it makes is not sensible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "protocol/keys.h"
#include "store.h"

namespace redlatch::sim {

// What servers may say differently and mean the same by.
enum class Likeness : uint8_t {
  kExact,
  kScores,     // versions write numbers that are not whole in different ways
  kPairs,      // of a hash, in any order
  kSet,        // texts in any order
  kInfo,       // the same, as the last item: INSPECT
  kErrorText,  // {"error", text}: a script returned it
};

struct Step {
  enum class Kind : uint8_t {
    kCommand,
    kWalk,     // SCAN or LIST, until it says that it is through
    kTime,     // the clock stands at `number` from now on
    kMemory,   // `number`: whether there is any
    kPublish,  // `number`: whether the user may
    kExpire,   // what has expired is deleted
  };
  Kind kind = Kind::kCommand;
  Likeness likeness = Likeness::kExact;
  std::vector<std::string> words;
  int64_t number = 0;  // of kWalk: where the cursor stands
};

class StepMaker {
 public:
  StepMaker(const Store &store, uint64_t seed) : store_(store), entropy_(seed) {}

  Step make(int64_t now_us);

  // The locks that all of it is about.
  static const std::vector<protocol::LockKeys> &locks(
      protocol::Format format = protocol::Format::kString);
  // Everything that any step may write to.
  static const std::vector<std::string> &keys();
  // Every text that is loaded when a sequence begins.
  static const std::vector<std::string> &texts();
  // Channels that somebody listens to.
  static const std::vector<std::string> &channels(bool is_sharded);

 private:
  using Words = std::vector<std::string>;

  static constexpr const char *kPrefix = "ns:rl1:";  // of channels

  size_t below(size_t limit) { return entropy_.next() % limit; }
  bool is_one_in(size_t n) { return below(n) == 0; }
  template <class List>
  std::string any(const List &list) {
    return std::string(list[below(std::size(list))]);
  }

  std::string key();
  std::string number();
  std::string plain_number();
  std::string position();
  std::string ms();
  static std::string lasting(const std::string &time);
  std::string text();
  std::string token();
  std::string member();
  std::string owner();
  std::string holder_of(const std::string &key);
  std::string sharer_in(const protocol::LockKeys &lock);
  std::string owner_of(const protocol::LockKeys &lock);
  std::string queued_in(const std::string &key);
  int64_t time(int64_t now_us);

  Step raw();
  Words raw_string();
  Step raw_sorted_set();
  Step raw_by_score();
  Step raw_hash();
  Step raw_other();
  Words flood();
  Step walk();
  Step wrapped();
  Step foreign();
  Step made_up();
  Step script();
  Words acquire(const protocol::LockKeys &lock, protocol::Script which);
  Words release(const protocol::LockKeys &lock);
  Words extend(const protocol::LockKeys &lock);
  Words arguments(const protocol::LockKeys &lock, protocol::Script which);
  Step called(std::string_view sha1, std::string_view text, Words keys_and_arguments,
              size_t key_count);
  Step called(size_t text, Words keys_and_arguments, size_t key_count);

  const Store &store_;
  Entropy entropy_;
};

}  // namespace redlatch::sim
