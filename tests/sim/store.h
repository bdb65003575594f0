// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Store: a server's memory, with just the commands that our scripts, and the libraries which share
// keys with us, send. Scripts run in a real Lua 5.1. It has no clock: each command is given the
// time. Only the simulator uses it; store_honesty compares it with real servers.
//
// One thread. Ordered containers only, so that equal runs are equal everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "value.h"

namespace redlatch::sim {

class Store {
 public:
  // What happens while a command runs. No call comes back into the store from here.
  class Listener {
   public:
    virtual ~Listener() = default;
    // PUBLISH or SPUBLISH. @return how many receive it.
    virtual int64_t published(std::string_view channel, std::string_view message,
                              bool is_sharded) = 0;
    // PUBSUB NUMSUB.
    virtual int64_t subscribers(std::string_view channel) = 0;
    // `key` was written, its expiry set, or it was deleted, also by expiry. Called afterwards.
    virtual void changed(std::string_view key) = 0;
    // A member of a sorted set has come, or has gone (ZREM ..; not with the whole key).
    virtual void queued(std::string_view key, std::string_view member, double score) = 0;
    virtual void dequeued(std::string_view key, std::string_view member, double score) = 0;
  };

  explicit Store(Listener &listener);
  ~Store();
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  // One command as a client sends it, at `now_us` of the server's clock.
  Value execute(Argv argv, int64_t now_us);

  // Have EVALSHA `sha1` run `text`, whatever its real hash is: how a mutant gets in.
  void define(std::string_view sha1, std::string_view text);
  // SCRIPT FLUSH.
  void flush_scripts();
  // Keys and scripts are gone, as after a restart without persistence.
  void clear();
  // Keys are gone, as after FLUSHALL; or one is, as after an eviction.
  void clear_keys() { keys_.clear(); }
  void evict(const std::string &key) { keys_.erase(key); }
  // Above `maxmemory`: commands that may need memory are refused as a server refuses them.
  void set_out_of_memory(bool is_on) { is_out_of_memory_ = is_on; }
  // Whether PUBLISH and SPUBLISH are allowed to the user that runs the scripts.
  void set_may_publish(bool is_on) { may_publish_ = is_on; }
  // Delete what has expired, as the server does in the background.
  void expire(int64_t now_us);

  // For checks: what is there, expired or not.
  using Hash = std::map<std::string, std::string, std::less<>>;
  struct SortedSet {
    std::map<std::string, double, std::less<>> scores;
    std::set<std::pair<double, std::string>> order;
  };
  struct Entry {
    std::variant<std::string, Hash, SortedSet> data;
    int64_t expires_ms = -1;  // of the server's clock; -1 never
  };
  using Keys = std::map<std::string, Entry, std::less<>>;
  const Keys &keys() const { return keys_; }

 private:
  class Lua;
  friend class Commands;

  Listener &listener_;
  Keys keys_;
  std::unique_ptr<Lua> lua_;
  int64_t now_us_ = 0;  // of the command that runs
  bool is_out_of_memory_ = false;
  bool may_publish_ = true;
};

}  // namespace redlatch::sim
