// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: the nodes of a cluster. Each has a client, and a lock goes from one client to another
// when its slot does: first no command about it is sent any more, and when none is under way the
// other client takes it over. A lock on its way is like one whose connection is down.
//
// The keys of a lock move one by one. A script with a key that is not there is refused
// (docs/wire.md, "Cluster"), so for that time a lock can be kept, by an extension that names the
// lock key alone, but neither taken nor given back.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "lock/calls.h"

namespace redlatch::lock {

// ---- slots -------------------------------------------------------------------------------------

std::set<uint16_t> LockClient::slots() const {
  std::set<uint16_t> slots;
  for (const auto &[id, lock] : locks_.names()) slots.insert(lock->slot());
  requests_.add_slots(slots);
  // Also of a lock that no caller uses any more: one SERVE QUEUE may follow another.
  for (const Call &call : session_.in_flight()) {
    if (const auto slot = call.kind->slot(call)) slots.insert(*slot);
  }
  return slots;
}

void LockClient::want_connection(Nanos now) {
  is_wanted_ = session_.is_down();
  connect_soon(now);
}

bool LockClient::is_at_rest(uint16_t slot) const {
  return session_.is_at_rest(slot) && leases_.confirmations().is_at_rest(slot) &&
         std::none_of(locks_.names().begin(), locks_.names().end(), [slot](const auto &entry) {
           return entry.second->delegated_count > 0 && entry.second->slot() == slot;
         });
}

// ---- redirects ---------------------------------------------------------------------------------

// Without memory the answer counts as lost: nothing may wait for it.
// @return false if `reply` is to be taken as any other refusal.
bool LockClient::take_redirect(const Call &call, const Reply &reply, Nanos now) {
  try {
    return follow_redirect(call, reply, now);
  } catch (const std::bad_alloc &) {
    call.kind->on_lost(call, now);
    throw;
  }
}

bool LockClient::follow_redirect(const Call &call, const Reply &reply, Nanos now) {
  using Kind = protocol::Redirect::Kind;
  const HostPort own{settings_.host, settings_.port};
  const auto redirect = protocol::read_redirect(reply, own);
  const LockState *lock = kind_of(call).lock_of(call);
  if (kind_of(call).request(call) != nullptr) {
    if (redirect.kind != Kind::kNone && requests_.on_left(call, now)) return true;
    // The request has ended meanwhile; the slot has moved all the same.
    const bool is_moved = redirect.kind == Kind::kMoved && redirect.to != own;
    if (lock == nullptr && is_moved) output_.redirected(node_, redirect);
  }
  if (redirect.kind == Kind::kNone || lock == nullptr) return false;
  const bool names_slot = redirect.kind == Kind::kMoved || redirect.kind == Kind::kAsk;
  const bool is_elsewhere = names_slot && redirect.slot == lock->slot() && redirect.to != own;
  if (redirect.kind == Kind::kMoved && is_elsewhere) {
    output_.redirected(node_, redirect);
    hold_back(redirect.slot);
    call.kind->on_not_done(call, now);
    return true;
  }
  if (redirect.kind == Kind::kDown) output_.redirected(node_, redirect);
  if (redirect.kind == Kind::kNonLocal) {
    on_half_done(call, now);
    return true;
  }
  if (kind_of(call).is_extension(call) && redirect.kind != Kind::kDown) {
    if (call.extent == protocol::Extent::kAll) {
      // The lock key alone is there until it moves itself.
      kind_of(call).extend_lock_key(call, now);
      return true;
    }
    if (redirect.kind == Kind::kAsk && is_elsewhere) {
      const auto delegated = std::make_shared<DelegatedCommand>(DelegatedCommand{*this, call});
      if (output_.ask_elsewhere(node_, redirect.to, delegated)) return true;
    }
  }
  return postpone(call, now);
}

// The server cannot serve the slot now, and has done nothing. Callers wait.
bool LockClient::postpone(const Call &call, Nanos now) {
  const Nanos retry_at = session_.next_retry(now);
  return kind_of(call).on_postponed(call, retry_at, now);
}

// ---- delegated commands ------------------------------------------------------------------------

// An ASK is never remembered: the next command about the lock goes to its owner first.
bool LockClient::run(const std::shared_ptr<DelegatedCommand> &delegated, Nanos now) {
  if (!session_.is_up()) return false;
  Call &asked = delegated->call;
  const Request *request = kind_of(asked).request(asked);
  TokenRecord *record = request != nullptr ? request->lease->record : &record_of(asked);
  if (record == nullptr || record->phase != Phase::kHeld) return false;
  protocol::Command asking;
  asking.add("ASKING");
  protocol::Command command;
  leases_.write_extend_part(command, *record, asked.lease, asked.eval, asked.extent);
  if (asked.extent == protocol::Extent::kLock) asked.sent_at = now;
  asked.is_delegated = true;
  session_.send(asking, Call{&calls_->asking, protocol::EvalMode::kText, now, 0, delegated});
  // As text: an answer that the script is not known is for the owner.
  const auto eval = protocol::EvalMode::kText;
  const Call call{&calls_->delegated, eval, now, asked.lease, delegated};
  if (!session_.try_send(command, call)) {
    // ASKING would count for the next command.
    session_.drop();
    return false;
  }
  delegated->lock = record->lock;
  delegated->lock->delegated_count++;
  return true;
}

// `reply`: nullptr if none will come.
void LockClient::on_delegated_over(DelegatedCommand &delegated, const Reply *reply, Nanos now) {
  const Call &call = delegated.call;
  if (std::exchange(delegated.is_over, true)) return;
  delegated.lock->delegated_count--;
  if (reply == nullptr) return on_half_done(call, now);  // the own connection is still there
  bool is_postponed = false;
  try {
    const auto redirect = protocol::read_redirect(*reply, {});
    is_postponed = redirect.kind != protocol::Redirect::Kind::kNone && postpone(call, now);
  } catch (const std::bad_alloc &) {
    on_half_done(call, now);  // nothing may wait for it
    throw;
  }
  if (!is_postponed) session::Session::deliver(call, *reply, now);
}

// ---- from one client to another ----------------------------------------------------------------

void LockClient::take_over(LockClient &from, uint16_t slot, Nanos now) {
  assert(&from != this && from.is_at_rest(slot));
  const bool is_new = moving_.insert(slot).second;  // until resume(): nothing is sent from here
  try {
    take(from, slot, now);
  } catch (const std::bad_alloc &) {
    if (is_new) moving_.erase(slot);
    throw;
  }
  from.moving_.erase(slot);
}

void LockClient::take_over_all(LockClient &from, Nanos now) {
  assert(&from != this && !session_.is_up() && from.session_.in_flight().empty());
  take(from, std::nullopt, now);
}

// `slot`: nullopt for all.
void LockClient::take(LockClient &from, std::optional<uint16_t> slot, Nanos now) {
  const Locks::Selection coming = from.locks_.select(slot);
  const std::vector<Request *> requests = from.requests_.select(slot);
  Locks::NewTokens tokens = locks_.new_tokens(coming.records, channel_.cid());
  locks_.make_room(coming);
  timers_.admit(coming.records.size() + coming.callers.size() + requests.size() +
                tokens.all.size());
  // From here on nothing fails.
  for (const auto &lock : coming.locks) locks_.take(from.locks_, lock);
  for (const auto &record : coming.records) take_record(from, *record, now);
  clock_.note_arrivals(from.clock_);
  if (clock_.take_arrivals()) compare_clocks(now);
  for (Request *caller : coming.callers) locks_.take_timer(from.locks_, *caller);
  requests_.take(from.requests_, requests);
  rename(tokens, now);
}

void LockClient::rename(Locks::NewTokens &tokens, Nanos now) noexcept {
  locks_.add_numbered(tokens);
  for (Locks::NewToken &one : tokens.all) {
    const ServerFootprint left = locks_.rename(one, now);
    cleanups_.start_with(*one.old, left, 0, now);
  }
}

void LockClient::take_record(LockClient &from, TokenRecord &record, Nanos now) noexcept {
  locks_.take(from.locks_, record.shared_from_this());
  from.waiters_.forget_throttled(record.shared_from_this());
  leases_.confirmations().take_over(from.leases_.confirmations(), record);
  if (record.phase != Phase::kHeld) return;
  record.held().give(&HeldLease::on_moved, from.clock_.last());
  leases_.schedule(record, now);
}

void LockClient::resume(uint16_t slot, Nanos now) {
  moving_.erase(slot);
  if (!session_.is_up()) return connect_soon(now);
  resume_waiters_first([slot](const TokenRecord &record) { return record.lock->slot() == slot; },
                       now);
  requests_.resume(slot, now);
}

// Waiters send ACQUIRE before the cleanup of their old tokens, however much is in flight. Then the
// first of each script has its text: a server that does not know the digest refuses ACQUIRE, and
// would carry the cleanup out before its repetition.
template <class Predicate>
void LockClient::resume_waiters_first(const Predicate &is_wanted, Nanos now) {
  const bool has_cleanup =
      std::any_of(locks_.records().begin(), locks_.records().end(), [&](const auto &entry) {
        return entry.second->phase == Phase::kCleanup && is_wanted(*entry.second);
      });
  uint32_t known = has_cleanup ? 0 : ~0U;  // scripts, by bits: a set would need memory
  locks_.for_each([&](TokenRecord &record) {
    if (!Locks::is_waiting(record.phase) || !is_wanted(record)) return;
    record.watcher.on_connected();
    if (!record.acquisition->may_ask(true)) return;
    const auto format = static_cast<unsigned>(record.lock->keys.format);
    const bool is_reader = record.identity.mode == protocol::Mode::kRead;
    const uint32_t script = 1U << (format * 4 + (is_reader ? 2 : 0) + (record.is_unfenced ? 1 : 0));
    const bool is_known = (known & script) != 0;
    known |= script;
    waiters_.send_ask(record, now,
                      is_known ? protocol::EvalMode::kDigest : protocol::EvalMode::kText);
  });
  locks_.for_each([&](TokenRecord &record) {
    if (!Locks::is_waiting(record.phase) && is_wanted(record)) resume(record, now);
  });
}

void LockClient::resume_all(Nanos now) {
  resume_waiters_first([this](const TokenRecord &record) { return !is_moving(*record.lock); }, now);
}

void LockClient::change_channel(const std::string &cid, Nanos now) {
  assert(!session_.is_up() && session_.in_flight().empty());
  Locks::NewTokens tokens = locks_.new_tokens(cid);
  std::string channel = channel_.prefix() + cid;
  std::string copy = cid;
  timers_.admit(tokens.all.size());
  channel_.change(std::move(copy), std::move(channel));
  rename(tokens, now);
}

}  // namespace redlatch::lock
