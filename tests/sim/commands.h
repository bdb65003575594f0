// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Commands: the commands of the simulated store, with the replies of Redis 7.0. An object is made
// for each command, and holds only a reference to the store.
#pragma once

#include <cstdint>
#include <string_view>

#include "store.h"

namespace redlatch::sim {

class Commands {
 public:
  enum Flag : uint8_t {
    kWrite = 1,     // once a script has written, it is not stopped for lack of memory
    kDenyOom = 2,   // may need memory
    kNoScript = 4,  // not for scripts
    kPublish = 8,   // needs rights on a channel
  };
  struct Command {
    std::string_view name;  // lower case
    int arity;              // counts the name; -n: n or more
    uint8_t flags;
    Value (Commands::*action)(Argv argv);

    bool takes(size_t count) const {
      const int n = static_cast<int>(count);
      return arity >= 0 ? n == arity : n >= -arity;
    }
  };

  explicit Commands(Store &store) : store_(store) {}

  // @return nullptr for an unknown command.
  static const Command *find(std::string_view name);
  // Check a command that a client sent, and run it.
  Value execute(Argv argv);
  // Run a command that was checked.
  Value run(const Command &command, Argv argv);

 private:
  // strings.cc
  Value get(Argv argv);
  Value set(Argv argv);
  Value strlen(Argv argv);
  Value getrange(Argv argv);
  // commands.cc
  Value del(Argv argv);
  Value exists(Argv argv);
  Value pttl(Argv argv);
  Value pexpire(Argv argv);
  Value pexpireat(Argv argv);
  Value type(Argv argv);
  Value lindex(Argv argv);
  Value time(Argv argv);
  Value publish(Argv argv);
  Value spublish(Argv argv);
  Value pubsub(Argv argv);
  Value eval(Argv argv);
  Value evalsha(Argv argv);
  Value script(Argv argv);
  // hashes.cc
  Value hset(Argv argv);
  Value hget(Argv argv);
  Value hgetall(Argv argv);
  Value hexists(Argv argv);
  Value hlen(Argv argv);
  Value hdel(Argv argv);
  Value hincrby(Argv argv);
  Value hrandfield(Argv argv);
  // scan.cc
  Value scan(Argv argv);
  // sorted_sets.cc
  Value zadd(Argv argv);
  Value zrem(Argv argv);
  Value zrange(Argv argv);
  Value zscore(Argv argv);
  Value zrank(Argv argv);
  Value zcard(Argv argv);
  Value zpopmin(Argv argv);
  Value zcount(Argv argv);
  Value zrangebyscore(Argv argv);
  Value zremrangebyscore(Argv argv);

  int64_t now_ms() const { return store_.now_us_ / 1000; }
  // nullptr if the key does not exist or has expired.
  Store::Entry *lookup(std::string_view key);
  struct WrongType {};  // thrown; run() makes it the reply
  // The value of a key as this type.
  template <class T>
  T *lookup(std::string_view key) {
    Store::Entry *entry = lookup(key);
    T *data = entry ? std::get_if<T>(&entry->data) : nullptr;
    if (entry && !data) throw WrongType{};
    return data;
  }
  // Empty if `key` is missing.
  template <class T>
  const T &read(std::string_view key) {
    static const T kNothing;
    const T *data = lookup<T>(key);
    return data ? *data : kNothing;
  }
  // Make `key` if it is missing.
  template <class T>
  T &obtain(std::string_view key) {
    T *data = lookup<T>(key);
    return data ? *data : store_.keys_[std::string(key)].data.template emplace<T>();
  }
  Value expire_at(std::string_view key, int64_t ms);
  void remove(std::string_view key);
  void changed(std::string_view key) { store_.listener_.changed(key); }
  // Call it after members of `key` were removed, maybe all.
  void shrunk(std::string_view key, bool is_empty) { is_empty ? remove(key) : changed(key); }
  void put(Store::SortedSet &set, std::string_view key, std::string_view member, double score);
  void take(Store::SortedSet &set, std::string_view key, std::string_view member);

  Store &store_;
};

// Parse a number as the server does: all of the text, no blanks, no leading zeros.
bool parse_integer(std::string_view text, int64_t &number);
bool parse_score(std::string_view text, double &score);
// Format a number as printf's "%.17g".
std::string format_score(double score);
bool is_equal_ignoring_case(std::string_view text, std::string_view lower);
// The glob of SCAN: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before any of them.
bool matches_glob(std::string_view pattern, std::string_view text);

Value wrong_type();
Value not_an_integer();
Value syntax_error();
Value wrong_count(std::string_view command);

}  // namespace redlatch::sim
