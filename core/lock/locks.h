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
  bool has(const LockState &lock) const { return names_.contains(id_of(lock)); }
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
  TokenRecord &new_record(const std::shared_ptr<LockState> &lock, const Request &caller);
  void set_phase(TokenRecord &record, Phase phase);
  void set_upgrader(TokenRecord &record, const std::shared_ptr<Request> &request);
  std::shared_ptr<Request> take_upgrader(TokenRecord &record);
  void forget(TokenRecord &record);
  // The command about it is sent again a little later.
  void repeat_soon(TokenRecord &record, Nanos now);
  // Records that are asking, queued, or waiting to upgrade.
  size_t waiting_count() const { return waiting_count_; }
  // The place of a record that was forgotten; nullptr: not known.
  const EndedPlaces::Place *ended(uint64_t id) const { return ended_places_.find(id); }

  // ---- numbers of tokens
  // They come from `numbers`, so that a lock can change its client and keep its tokens. Called
  // before the first request.
  void number_by(uint64_t &numbers) { last_number_ = &numbers; }
  uint64_t last_number() const { return *last_number_; }
  uint64_t take_numbers(uint64_t count) { return *last_number_ += count; }

  // ---- from one client to another
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
  // Everything that belongs to one slot.
  struct Selection {
    std::vector<std::shared_ptr<LockState>> locks;
    std::vector<std::shared_ptr<TokenRecord>> records;
    std::vector<Request *> callers;  // of the records
  };
  // `slot`: nullopt for all.
  Selection select(std::optional<uint16_t> slot) const;
  // new_tokens() and make_room() may throw; then only numbers of tokens are used up. The functions
  // after them do not fail.
  NewTokens new_tokens(const std::vector<std::shared_ptr<TokenRecord>> &records,
                       std::string_view cid);
  NewTokens new_tokens(std::string_view cid);
  void make_room(const Selection &coming) { names_.reserve(names_.size() + coming.locks.size()); }
  void take(Locks &from, const std::shared_ptr<LockState> &lock, Server &server) noexcept;
  void take(Locks &from, const std::shared_ptr<TokenRecord> &record) noexcept;
  void take_timer(Locks &from, Timed &timed) noexcept;
  void add_numbered(NewTokens &tokens) noexcept { records_.merge(tokens.numbered); }
  // @return what the server has of the old token. After add_numbered().
  ServerFootprint rename(NewToken &renamed, Nanos now) noexcept;

 private:
  static NameId id_of(const LockState &lock) { return {lock.keys.format, lock.name}; }
  void forget_unused(const LockState &lock) {
    if (lock.record_count == 0) names_.erase(id_of(lock));
  }
  void note_waiting(TokenRecord &record);
  void add_token(TokenRecord &record, std::string_view cid, NewTokens &tokens);

  TimerQueue &timers_;
  Names names_;  // borrow their names
  Records records_;
  EndedPlaces ended_places_;
  uint64_t own_last_number_ = 0;
  uint64_t *last_number_ = &own_last_number_;
  size_t waiting_count_ = 0;
};

template <class Action>
void Locks::for_each(const Action &action) {
  const uint64_t last = *last_number_;
  auto at = records_.begin();
  while (at != records_.end() && at->first <= last) {
    const auto record = at->second;
    action(*record);
    at = records_.upper_bound(record->id);
  }
}

}  // namespace redlatch::lock
