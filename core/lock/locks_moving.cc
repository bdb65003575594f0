// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Locks: names and records that go from one client to another, and tokens that get new numbers.
#include <algorithm>
#include <utility>

#include "lock/locks.h"
#include "protocol/token.h"

namespace redlatch::lock {

Locks::Selection Locks::select(std::optional<uint16_t> slot) const {
  Selection found;
  const auto is_wanted = [slot](const LockState &lock) { return !slot || lock.slot() == *slot; };
  for (const auto &[id, lock] : names_) {
    if (is_wanted(*lock)) found.locks.push_back(lock);
  }
  for (const auto &[id, record] : records_) {
    if (!is_wanted(*record->lock)) continue;
    found.records.push_back(record);
    record->for_each_caller([&](Request &caller) { found.callers.push_back(&caller); });
  }
  return found;
}

// No token is used twice, also when a lock comes back to a node.
void Locks::add_token(TokenRecord &record, std::string_view cid, NewTokens &tokens) {
  NewToken renamed;
  renamed.record = record.shared_from_this();
  renamed.id = take_numbers(1);
  renamed.token = protocol::make_token(cid, renamed.id);
  if (!record.identity.member.empty()) {
    renamed.member = renamed.token + record.identity.member.substr(protocol::kTokenSize);
  }
  renamed.old = std::make_shared<TokenRecord>(record.id);
  TokenRecord &old = *renamed.old;
  old.lock = record.lock;
  old.identity.mode = record.identity.mode;
  old.identity.owner = record.identity.owner;
  old.is_sharing = record.is_sharing;
  old.yield_policy = record.yield_policy;
  tokens.numbered.emplace(renamed.id, renamed.record);
  tokens.all.push_back(std::move(renamed));
}

Locks::NewTokens Locks::new_tokens(const std::vector<std::shared_ptr<TokenRecord>> &records,
                                   std::string_view cid) {
  NewTokens tokens;
  for (const auto &record : records) {
    if (is_waiting(record->phase)) add_token(*record, cid, tokens);
  }
  return tokens;
}

Locks::NewTokens Locks::new_tokens(std::string_view cid) {
  NewTokens tokens;
  for (const auto &[id, record] : records_) {
    if (is_waiting(record->phase)) add_token(*record, cid, tokens);
  }
  return tokens;
}

void Locks::take(Locks &from, const std::shared_ptr<LockState> &lock, Server &server) noexcept {
  [[maybe_unused]] const auto moved = names_.insert(from.names_.extract(id_of(*lock)));
  assert(moved.inserted);
  lock->server = &server;
  lock->key_watch.give(&KeyWatch::on_disconnected);
}

void Locks::take(Locks &from, const std::shared_ptr<TokenRecord> &record) noexcept {
  take_timer(from, *record);
  records_.insert(from.records_.extract(record->id));
  const size_t waiting = is_waiting(record->phase) || record->upgrader ? 1 : 0;
  from.waiting_count_ -= waiting;
  waiting_count_ += waiting;
}

void Locks::take_timer(Locks &from, Timed &timed) noexcept {
  const Nanos due = timed.due;
  from.timers_.remove(timed);
  from.timers_.dismiss();
  timers_.set(timed, due);
}

// The waiter keeps its ticket. The rest of the old token on the server is removed behind the first
// ACQUIRE of the new one: so the lock is not granted to the next waiter in between.
ServerFootprint Locks::rename(NewToken &renamed, Nanos now) noexcept {
  TokenRecord &record = *renamed.record;
  const auto place = records_.find(record.id);
  assert(place != records_.end() && place->second == renamed.record);
  place->second = renamed.old;
  record.id = renamed.id;
  record.watcher.set_id(renamed.id);
  Identity &identity = record.identity;
  Identity &old = renamed.old->identity;
  const bool is_owner = identity.owner == identity.token;
  old.token = std::exchange(identity.token, std::move(renamed.token));
  old.member = std::exchange(identity.member, std::move(renamed.member));
  if (is_owner) identity.owner.assign(identity.token);  // of the same length: allocates nothing
  record.lock->record_count++;
  waiting_count_++;
  return record.acquisition.give(&Acquisition::replace_token, now);
}

}  // namespace redlatch::lock
