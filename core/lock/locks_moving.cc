// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Locks: locks that go from one server to another, and tokens that get new numbers.
#include <algorithm>
#include <utility>

#include "lock/locks.h"
#include "protocol/token.h"

namespace redlatch::lock {

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
  old.identity.permits = record.identity.permits;
  old.is_sharing = record.is_sharing;
  old.yield_policy = record.yield_policy;
  tokens.numbered.emplace(renamed.id, renamed.record);
  tokens.all.push_back(std::move(renamed));
}

namespace {

// The server that `lock` goes to; nullptr: it stays.
Server *target_of(const LockState &lock, const Moves &moves) {
  const auto found = moves.find(lock.slot());
  return found == moves.end() || found->second == lock.server ? nullptr : found->second;
}

}  // namespace

Locks::NewTokens Locks::new_tokens(const Moves &moves) {
  NewTokens tokens;
  for (const auto &[id, record] : records_) {
    if (!is_waiting(record->phase)) continue;
    const Server *server = target_of(*record->lock, moves);
    if (server != nullptr) add_token(*record, server->channel.cid(), tokens);
  }
  return tokens;
}

Locks::NewTokens Locks::new_tokens(const Server &server, std::string_view cid) {
  NewTokens tokens;
  for (const auto &[id, record] : records_) {
    const bool is_there = &record->server() == &server;
    if (is_there && is_waiting(record->phase)) add_token(*record, cid, tokens);
  }
  return tokens;
}

void Locks::move(const Moves &moves) noexcept {
  for (const auto &[id, record] : records_) {
    Server *server = target_of(*record->lock, moves);
    if (server == nullptr) continue;
    const bool has_lock = record->phase == Phase::kHeld || record->phase == Phase::kRetained;
    if (record->is_recallable() && has_lock) {
      // Its token names a channel of the server before: no recall comes from the new one.
      record->retention.give(&Retention::recall);
      record->server().recallable_count--;
      server->recallable_count++;
    }
    if (!is_waiting(record->phase) && !record->upgrader) continue;
    waiting_count_at(*record)--;
    server->waiting_count++;
  }
  for (const auto &[id, lock] : names_) {
    Server *server = target_of(*lock, moves);
    if (server == nullptr) continue;
    lock->server->lock_count--;
    server->lock_count++;
    lock->server = server;
    lock->key_watch.give(&KeyWatch::on_disconnected);
  }
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
  waiting_count_at(record)++;
  return record.acquisition.give(&Acquisition::replace_token, now);
}

}  // namespace redlatch::lock
