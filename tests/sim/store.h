// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Store: the memory of a simulated server. It has the commands that our scripts, and libraries that
// share keys with us, use. Scripts run in a real Lua 5.1. It has no clock: each command gets the
// time. store_fidelity compares it with real servers.
//
// One thread. Ordered containers only, so that runs of a seed are equal everywhere.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "value.h"

namespace redlatch::sim {

class Store {
 public:
  // Gets the events of a command while it runs. It must not call the store.
  class Listener {
   public:
    virtual ~Listener() = default;
    // PUBLISH or SPUBLISH. @return the number of receivers.
    virtual int64_t published(std::string_view channel, std::string_view message,
                              bool is_sharded) = 0;
    // PUBSUB NUMSUB.
    virtual int64_t subscribers(std::string_view channel) = 0;
    // A command inside a script needs a key or a channel that is at another node of a cluster.
    virtual bool is_out_of_reach(Argv) { return false; }
    // `key` was written or deleted, has expired, or its expiry was set. Called afterwards.
    virtual void changed(std::string_view key) = 0;
    // A member was added to a sorted set, or removed from it (not with the whole key).
    virtual void queued(std::string_view key, std::string_view member, double score) = 0;
    virtual void dequeued(std::string_view key, std::string_view member, double score) = 0;
  };

  explicit Store(Listener &listener);
  ~Store();
  Store(const Store &) = delete;
  Store &operator=(const Store &) = delete;

  // One command as a client sends it, at `now_us` of the server's clock.
  Value execute(Argv argv, int64_t now_us);

  // Make EVALSHA `sha1` run `text`, whatever its real hash is; for mutants.
  void define(std::string_view sha1, std::string_view text);
  // SCRIPT FLUSH.
  void flush_scripts();
  // Delete keys and scripts, as a restart without persistence does.
  void clear();
  // Delete all keys, as FLUSHALL does; delete one, as an eviction does.
  void clear_keys() { keys_.clear(); }
  void evict(const std::string &key) { keys_.erase(key); }
  // Above `maxmemory`: refuse commands that may need memory, as a server does.
  void set_out_of_memory(bool is_on) { is_out_of_memory_ = is_on; }
  // True if PUBLISH and SPUBLISH are allowed to the user that runs the scripts.
  void set_may_publish(bool is_on) { may_publish_ = is_on; }
  // A replica refuses writes.
  void set_replica(bool is_on) { is_replica_ = is_on; }
  bool is_replica() const { return is_replica_; }
  // Delete expired keys, as the server does in the background.
  void expire(int64_t now_us);

  // For checks: all keys, expired or not.
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
  // nullptr: there is no such key, or one of another type.
  const Entry *entry_at(std::string_view key) const {
    const auto found = keys_.find(key);
    return found == keys_.end() ? nullptr : &found->second;
  }
  template <class T>
  const T *value_at(std::string_view key) const {
    const Entry *entry = entry_at(key);
    return entry == nullptr ? nullptr : std::get_if<T>(&entry->data);
  }
  // For a replica: the state of a key, or all of them, as the primary has it.
  void assign(const std::string &key, const std::optional<Entry> &entry) {
    entry ? (void)keys_.insert_or_assign(key, *entry) : (void)keys_.erase(key);
  }
  void copy_keys(const Store &primary) { keys_ = primary.keys_; }

 private:
  class Lua;
  friend class Commands;

  Listener &listener_;
  Keys keys_;
  std::unique_ptr<Lua> lua_;
  int64_t now_us_ = 0;  // of the command that runs
  bool is_out_of_memory_ = false;
  bool may_publish_ = true;
  bool is_replica_ = false;
};

}  // namespace redlatch::sim
