// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Locks: the names that a client has something to do with, the records of their tokens, and the
// numbers of these. It keeps them consistent: phases, how many records wait, and how often a name
// is used. It asks the server nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lock/lock_state.h"
#include "lock/server.h"
#include "lock/timer_queue.h"

namespace redlatch::lock {

class Locks {
 public:
  using Phase = TokenRecord::Phase;
  using Records = std::map<uint64_t, std::shared_ptr<TokenRecord>>;

  struct NameId {
    protocol::Format format;
    std::string_view name;
    bool operator==(const NameId &) const = default;
  };
  struct NameHash {
    size_t operator()(const NameId &id) const {
      return std::hash<std::string_view>()(id.name) + static_cast<size_t>(id.format);
    }
  };
  using Names = std::unordered_map<NameId, std::shared_ptr<LockState>, NameHash>;

  explicit Locks(TimerQueue &timers) : timers_(timers) {}

  // ---- names
  const Names &names() const { return names_; }
  // nullptr: it has no record.
  std::shared_ptr<LockState> find(std::string_view name, protocol::Format format) const;
  // Adds the name, at `server`, if it is not known. It is forgotten with its last record.
  std::shared_ptr<LockState> find_or_add(std::string_view name, protocol::Format format,
                                         Server &server);

  // The lease that has the lock `name` alone; nullptr if this client has none.
  const Lease *lease_on(std::string_view name) const;
  // The client that had the lock `name` when the server was asked last; empty if not known.
  std::string_view blocker_of(std::string_view name) const;
  // When a lock at `server` needs the name of the client there; 0: at once.
  Nanos name_due(const Server &server) const;

  // ---- records, by id: a fixed order for every run
  static bool is_waiting(Phase phase) { return phase == Phase::kAsking || phase == Phase::kQueued; }
  const Records &records() const { return records_; }
  // nullptr: no record has the number.
  std::shared_ptr<TokenRecord> find(uint64_t id) const;
  // Those that exist now; `action` may forget any of them and open others. Allocates nothing.
  template <class Action>
  void for_each(const Action &action);
  template <class Action>
  void for_each_at(const Server &server, const Action &action);
  TokenRecord &new_record(const std::shared_ptr<LockState> &lock, const Request &caller);
  void set_phase(TokenRecord &record, Phase phase);
  void set_upgrader(TokenRecord &record, const std::shared_ptr<Request> &request);
  std::shared_ptr<Request> take_upgrader(TokenRecord &record);
  void forget(TokenRecord &record);
  // The command about it is sent again a little later.
  void repeat_soon(TokenRecord &record, Nanos now);

  // ---- numbers of tokens
  uint64_t last_number() const { return last_number_; }
  uint64_t take_numbers(uint64_t count) { return last_number_ += count; }

  // ---- from one server to another
  // New tokens for waiters: messages arrive on the channel that a token names.
  struct NewToken {
    std::shared_ptr<TokenRecord> record;
    uint64_t id = 0;
    std::string token, member;
    std::shared_ptr<TokenRecord> old;  // has the old token, for the cleanup
  };
  struct NewTokens {
    std::vector<NewToken> all;
    Records numbered;
  };
  // For the waiters that `moves` gives another server, or those at `server`. Both throw
  // std::bad_alloc; then only numbers of tokens are used up. The functions after them do not fail.
  NewTokens new_tokens(const Moves &moves);
  NewTokens new_tokens(const Server &server, std::string_view cid);
  // Nothing about these locks is under way.
  void move(const Moves &moves) noexcept;
  void add_numbered(NewTokens &tokens) noexcept { records_.merge(tokens.numbered); }
  // @return what the server has of the old token. After add_numbered().
  ServerFootprint rename(NewToken &renamed, Nanos now) noexcept;

 private:
  static NameId id_of(const LockState &lock) { return {lock.keys.format, lock.name}; }
  void forget_unused(const LockState &lock);
  static size_t &waiting_count_at(const TokenRecord &record) {
    return record.server().waiting_count;
  }
  void note_waiting(TokenRecord &record);
  void add_token(TokenRecord &record, std::string_view cid, NewTokens &tokens);

  TimerQueue &timers_;
  Names names_;  // borrow their names
  Records records_;
  uint64_t last_number_ = 0;
};

template <class Action>
void Locks::for_each(const Action &action) {
  const uint64_t last = last_number_;
  auto at = records_.begin();
  while (at != records_.end() && at->first <= last) {
    const auto record = at->second;
    action(*record);
    at = records_.upper_bound(record->id);
  }
}

template <class Action>
void Locks::for_each_at(const Server &server, const Action &action) {
  if (server.lock_count == 0) return;
  for_each([&](TokenRecord &record) {
    if (record.lock->server == &server) action(record);
  });
}

}  // namespace redlatch::lock
