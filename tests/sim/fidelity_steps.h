// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// StepMaker: random commands for the store and a real server. It reads the store to make commands
// that have an effect there; many others have none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "protocol/keys.h"
#include "store.h"

namespace redlatch::sim {

// In which ways replies of different servers may differ and count as equal.
enum class Likeness : uint8_t {
  kExact,
  kScores,     // versions write numbers that are not whole in different ways
  kPairs,      // pairs of a hash, in any order
  kSet,        // texts in any order
  kInfo,       // INSPECT: pairs in any order, as the last item
  kErrorText,  // {"error", text}: a script returned it
};

struct Step {
  enum class Kind : uint8_t {
    kCommand,
    kWalk,     // SCAN, until its cursor is 0
    kTime,     // set the clock to `number`
    kMemory,   // `number`: whether the server has memory left
    kPublish,  // `number`: whether the user may publish
    kExpire,   // delete the keys that have expired
  };
  Kind kind = Kind::kCommand;
  Likeness likeness = Likeness::kExact;
  std::vector<std::string> words;
  int64_t number = 0;  // kWalk: the index of the cursor among the words
};

// The keys of a lock, as words of commands.
struct LockTexts {
  explicit LockTexts(const protocol::LockKeys &keys)
      : format(keys.format),
        lock(keys.lock),
        queue(keys.queue),
        fence(keys.fence),
        readers(keys.readers),
        info(keys.info),
        turn(keys.turn) {}

  protocol::Format format;
  std::string lock, queue, fence, readers, info, turn;
};

class StepMaker {
 public:
  StepMaker(const Store &store, uint64_t seed) : store_(store), entropy_(seed) {}

  Step make(int64_t now_us);

  // The locks that steps use.
  static const std::vector<LockTexts> &locks(protocol::Format format = protocol::Format::kString);
  // Every key that a step may write.
  static const std::vector<std::string> &keys();
  // Every script that is loaded when a sequence begins.
  static const std::vector<std::string> &texts();
  // Channels with a subscriber.
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
  std::string sharer_in(const LockTexts &lock);
  std::string owner_of(const LockTexts &lock);
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
  Words acquire(const LockTexts &lock, protocol::Script which);
  Words release(const LockTexts &lock);
  Words extend(const LockTexts &lock);
  Words arguments(const LockTexts &lock, protocol::Script which);
  Step called(std::string_view sha1, std::string_view text, Words keys_and_arguments,
              size_t key_count);
  Step called(size_t text, Words keys_and_arguments, size_t key_count);

  const Store &store_;
  Entropy entropy_;
};

}  // namespace redlatch::sim
