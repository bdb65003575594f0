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

std::shared_ptr<LockState> Locks::find_or_add(std::string_view name, protocol::Format format) {
  if (auto known = find(name, format)) return known;
  auto lock = std::make_shared<LockState>(settings_.name_space, name, format);
  lock->node = node_;
  names_.emplace(id_of(*lock), lock);
  return lock;
}

// ---- records -----------------------------------------------------------------------------------

std::shared_ptr<TokenRecord> Locks::find(uint64_t id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : found->second;
}

TokenRecord &Locks::new_record(const std::shared_ptr<LockState> &lock, const Request &caller,
                               std::string_view cid) try {
  const bool is_shared = caller.shares_place();
  // First: if a later call throws, only a timer slot is wasted.
  timers_.admit();
  *last_number_ = std::max(*last_number_ + 1, caller.rid);
  auto record = std::make_shared<TokenRecord>(*last_number_);
  record->lock = lock;
  record->is_vote = caller.rid != 0;
  record->is_shared = is_shared;
  Identity &identity = record->identity;
  identity.token = protocol::make_token(cid, record->is_vote ? caller.rid : record->id);
  const AcquireOptions &options = caller.options;
  const bool is_hash = options.format == protocol::Format::kHash;
  identity.mode = options.mode;
  record->is_sharing =
      options.format != protocol::Format::kString || options.mode == protocol::Mode::kRead;
  identity.owner = is_hash && options.owner.empty() ? identity.token : options.owner;
  // A shared place outlives the caller that opened it; it is cancelled when no caller is left.
  const int64_t provisional_ms = std::min(options.ttl / kMs, kProvisionalMs);
  if (caller.waits_for_lock()) {
    identity.member = protocol::make_member(identity.token, options.mode, provisional_ms,
                                            is_shared ? -1 : caller.wait_ms,
                                            is_hash ? options.owner : std::string_view());
  }
  record->acquisition.give(&Acquisition::open, caller.waits_for_lock(), provisional_ms,
                           options.ttl);
  record->is_unfenced = options.is_unfenced;
  record->yield_policy = caller.options.yield_policy();
  records_.emplace_hint(records_.end(), record->id, record);
  lock->record_count++;
  waiting_count_++;
  return *record;
} catch (...) {
  forget_unused(*lock);
  throw;
}

void Locks::set_phase(TokenRecord &record, Phase phase) {
  if (is_waiting(record.phase)) waiting_count_--;
  if (is_waiting(phase)) waiting_count_++;
  if (phase == Phase::kHeld) {
    if (record.is_sharing) record.lock->has_sharers = true;
    if (!record.is_sharing) record.lock->holder = &record;
  } else if (record.lock->holder == &record) {
    record.lock->holder = nullptr;
  }
  record.phase = phase;
  note_waiting(record);
}

void Locks::note_waiting(TokenRecord &record) {
  const bool is_waiting = record.phase == Phase::kQueued || record.upgrader != nullptr;
  record.lock->key_watch.give(&KeyWatch::set_waiting, record.watcher, is_waiting);
  if (is_waiting) session_.on_waiting();
}

void Locks::set_upgrader(TokenRecord &record, const std::shared_ptr<Request> &request) {
  assert(!record.upgrader && record.phase == Phase::kHeld);
  record.upgrader = request;
  request->record = &record;
  waiting_count_++;
  note_waiting(record);
}

std::shared_ptr<Request> Locks::take_upgrader(TokenRecord &record) {
  auto request = std::exchange(record.upgrader, nullptr);
  request->record = nullptr;
  waiting_count_--;
  note_waiting(record);
  return request;
}

void Locks::forget(TokenRecord &record) {
  const auto keep = record.shared_from_this();
  if (record.phase != Phase::kCleanup) set_phase(record, Phase::kCleanup);
  const Checked<Cleanup> *ended = record.started_cleanup();
  if (ended != nullptr && !ended->get().is_detached() && record.acquisition->was_queued()) {
    ended_places_.add(record);
  }
  record.is_gone = true;
  timers_.remove(record);
  timers_.dismiss();
  record.lock->waitlist.give(&Waitlist::close, record);
  --record.lock->record_count;
  forget_unused(*record.lock);
  records_.erase(record.id);
}

// ---- from one client to another ----------------------------------------------------------------

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

void Locks::take(Locks &from, const std::shared_ptr<LockState> &lock) noexcept {
  [[maybe_unused]] const auto moved = names_.insert(from.names_.extract(id_of(*lock)));
  assert(moved.inserted);
  lock->node = node_;
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

// ---- names of clients --------------------------------------------------------------------------

Nanos Locks::name_due() const {
  Nanos due = kNever;
  for (const auto &[id, record] : records_) {
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
