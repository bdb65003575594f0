// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/locks.h"

#include <algorithm>
#include <utility>

#include "protocol/token.h"

namespace redlatch::lock {

// ---- names -------------------------------------------------------------------------------------

std::shared_ptr<LockState> Locks::find(std::string_view name, protocol::Format format) const {
  const auto found = names_.find({format, name});
  return found == names_.end() ? nullptr : found->second;
}

std::shared_ptr<LockState> Locks::find_or_add(std::string_view name, protocol::Format format,
                                              Server &server) {
  if (auto known = find(name, format)) return known;
  auto lock = std::make_shared<LockState>(server, name, format);
  names_.emplace(id_of(*lock), lock);
  server.lock_count++;
  return lock;
}

void Locks::forget_unused(const LockState &lock) {
  if (lock.record_count > 0) return;
  lock.server->lock_count--;
  names_.erase(id_of(lock));
}

// ---- records -----------------------------------------------------------------------------------

std::shared_ptr<TokenRecord> Locks::find(uint64_t id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : found->second;
}

TokenRecord &Locks::new_record(const std::shared_ptr<LockState> &lock, const Request &caller) try {
  const bool is_shared = caller.shares_place();
  // First: if a later call throws, only a timer slot is wasted.
  timers_.admit();
  last_number_ = std::max(last_number_ + 1, caller.rid);
  auto record = std::make_shared<TokenRecord>(last_number_);
  record->lock = lock;
  record->is_vote = caller.rid != 0;
  record->is_shared = is_shared;
  const AcquireOptions &options = caller.options;
  // Other libraries that poll cannot recall: a caller that leaves them turns does not retain.
  const bool is_recallable = options.retain > 0 && options.yield_every <= 0 && !record->is_vote;
  Identity &identity = record->identity;
  identity.token = protocol::make_token(lock->server->channel.cid(),
                                        record->is_vote ? caller.rid : record->id, is_recallable);
  const protocol::FormatTraits &format = lock->keys.traits();
  identity.mode = options.mode;
  record->is_sharing = !format.has_extend || options.mode == protocol::Mode::kRead;
  identity.owner = format.has_owner && options.owner.empty() ? identity.token : options.owner;
  identity.candidate = options.candidate;
  if (format.has_permits) identity.permits = protocol::claim_of(options.permits, options.limit);
  // A shared place outlives the caller that opened it; it is cancelled when no caller is left.
  const int64_t provisional_ms = std::min(options.ttl / kMs, kProvisionalMs);
  if (caller.waits_for_lock()) {
    identity.member = protocol::make_member(identity.token, options.mode, provisional_ms,
                                            is_shared ? -1 : caller.wait_ms,
                                            format.has_owner ? options.owner : identity.permits);
    if (options.awaits_value) protocol::await_value(identity.member);
  }
  record->acquisition.give(&Acquisition::open, caller.waits_for_lock(), provisional_ms,
                           options.ttl);
  record->is_unfenced = options.is_unfenced;
  record->yield_policy = caller.options.yield_policy();
  records_.emplace_hint(records_.end(), record->id, record);
  lock->record_count++;
  waiting_count_at(*record)++;
  return *record;
} catch (...) {
  forget_unused(*lock);
  throw;
}

namespace {

void add_retained(TokenRecord &record) {
  TokenRecord *&first = record.lock->retained;
  // A writer has the lock alone.
  assert(first == nullptr || (record.identity.mode == protocol::Mode::kRead &&
                              first->identity.mode == protocol::Mode::kRead));
  assert(record.phase != TokenRecord::Phase::kRetained && !record.lease);
  record.next_listed = std::exchange(first, &record);
}

void remove_retained(TokenRecord &record) {
  TokenRecord **at = &record.lock->retained;
  while (*at != &record) at = &(*at)->next_listed;
  *at = std::exchange(record.next_listed, nullptr);
}

bool is_listening(const TokenRecord &record) {
  using Phase = TokenRecord::Phase;
  return record.is_recallable() &&
         (record.phase == Phase::kHeld || record.phase == Phase::kRetained);
}

}  // namespace

void Locks::set_phase(TokenRecord &record, Phase phase) {
  if (is_listening(record)) record.server().recallable_count--;
  if (is_waiting(record.phase)) waiting_count_at(record)--;
  if (is_waiting(phase)) waiting_count_at(record)++;
  if (phase == Phase::kHeld) {
    if (record.is_sharing) record.lock->has_sharers = true;
    if (!record.is_sharing) record.lock->holder = &record;
  } else if (record.lock->holder == &record) {
    record.lock->holder = nullptr;
  }
  if (record.phase == Phase::kRetained) remove_retained(record);
  if (phase == Phase::kRetained) add_retained(record);
  record.phase = phase;
  if (is_listening(record)) {
    record.server().recallable_count++;
    record.server().session.on_waiting();
  }
  note_waiting(record);
}

void Locks::note_waiting(TokenRecord &record) {
  const bool is_waiting = record.phase == Phase::kQueued || record.upgrader != nullptr;
  record.lock->key_watch.give(&KeyWatch::set_waiting, record.watcher, is_waiting);
  if (is_waiting) record.server().session.on_waiting();
}

void Locks::set_upgrader(TokenRecord &record, const std::shared_ptr<Request> &request) {
  assert(!record.upgrader && record.phase == Phase::kHeld);
  record.upgrader = request;
  request->record = &record;
  waiting_count_at(record)++;
  note_waiting(record);
}

std::shared_ptr<Request> Locks::take_upgrader(TokenRecord &record) {
  auto request = std::exchange(record.upgrader, nullptr);
  request->record = nullptr;
  waiting_count_at(record)--;
  note_waiting(record);
  return request;
}

void Locks::repeat_soon(TokenRecord &record, Nanos now) {
  if (record.is_gone) return;
  timers_.set(record, std::min(record.due, record.server().session.next_retry(now)));
}

void Locks::forget(TokenRecord &record) {
  const auto keep = record.shared_from_this();
  if (record.phase != Phase::kCleanup) set_phase(record, Phase::kCleanup);
  const Checked<Cleanup> *ended = record.started_cleanup();
  if (ended != nullptr && !ended->get().is_detached() && record.acquisition->was_queued()) {
    record.server().ended_places.add(record);
  }
  record.is_gone = true;
  timers_.remove(record);
  timers_.dismiss();
  record.lock->waitlist.give(&Waitlist::close, record);
  --record.lock->record_count;
  forget_unused(*record.lock);
  records_.erase(record.id);
}

// ---- names of clients --------------------------------------------------------------------------

Nanos Locks::name_due(const Server &server) const {
  Nanos due = kNever;
  if (server.lock_count == 0) return due;
  for (const auto &[id, record] : records_) {
    if (&record->server() != &server) continue;
    if (record->phase == Phase::kQueued) return 0;
    if (record->phase != Phase::kHeld) continue;
    due = std::min(due, record->held()->granted_at() + operate::Names::kMoment);
  }
  return due;
}

const Lease *Locks::lease_on(std::string_view name) const {
  const auto lock = find(name, protocol::Format::kString);
  const TokenRecord *holder = lock ? lock->holder : nullptr;
  return holder == nullptr ? nullptr : holder->lease.get();
}

std::string_view Locks::blocker_of(std::string_view name) const {
  const auto lock = find(name, protocol::Format::kString);
  return lock ? std::string_view(lock->blocker) : std::string_view();
}

}  // namespace redlatch::lock
