// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: locks move to the client of another node, and waiters to another channel. Router of
// core/cluster decides when.
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "lock/lock_client.h"

namespace redlatch::lock {

// ---- slots -------------------------------------------------------------------------------------

std::set<uint16_t> LockClient::slots() const {
  std::set<uint16_t> slots;
  for (const auto &[id, lock] : locks_.names()) slots.insert(lock->slot());
  requests_.add_slots(slots);
  // Also of a lock that no caller uses any more: one SERVE QUEUE may follow another.
  for (const Call &call : server_.session.in_flight()) {
    if (const auto slot = call.kind->slot(call)) slots.insert(*slot);
  }
  return slots;
}

void LockClient::want_connection(Nanos now) {
  server_.is_wanted = server_.session.is_down();
  server_.session.connect_soon(now);
}

bool LockClient::is_at_rest(uint16_t slot) const {
  return server_.session.is_at_rest(slot) && server_.confirmations.is_at_rest(slot) &&
         std::none_of(locks_.names().begin(), locks_.names().end(), [slot](const auto &entry) {
           return entry.second->delegated_count > 0 && entry.second->slot() == slot;
         });
}

bool LockClient::run(const std::shared_ptr<DelegatedCommand> &delegated, Nanos now) {
  if (!server_.session.is_up()) return false;
  const Call &asked = delegated->call;
  const Request *request = kind_of(asked).request(asked);
  TokenRecord *record = request != nullptr ? request->lease->record : &record_of(asked);
  if (record == nullptr || record->phase != Phase::kHeld) return false;
  protocol::Command command;
  leases_.write_extend_part(command, *record, asked.lease, asked.eval, asked.extent);
  return redirects_.send(server_, delegated, *record, command, now);
}

// ---- from one client to another ----------------------------------------------------------------

void LockClient::take_over(LockClient &from, std::optional<uint16_t> slot, Nanos now) {
  assert(&from != this);
  assert(slot ? from.is_at_rest(*slot)
              : !server_.session.is_up() && from.server_.session.in_flight().empty());
  const bool is_new = slot && redirects_.hold_back(*slot);  // nothing is sent until resume()
  try {
    take(from, slot, now);
  } catch (const std::bad_alloc &) {
    if (is_new) redirects_.reopen(*slot);
    throw;
  }
  if (slot) from.redirects_.reopen(*slot);
}

void LockClient::take(LockClient &from, std::optional<uint16_t> slot, Nanos now) {
  const Locks::Selection coming = from.locks_.select(slot);
  const std::vector<Request *> requests = from.requests_.select(slot);
  Locks::NewTokens tokens = locks_.new_tokens(coming.records, server_.channel.cid());
  locks_.make_room(coming);
  timers_.admit(coming.records.size() + coming.callers.size() + requests.size() +
                tokens.all.size());
  // From here on nothing fails.
  for (const auto &lock : coming.locks) locks_.take(from.locks_, lock, server_);
  for (const auto &record : coming.records) {
    locks_.take(from.locks_, record);
    from.server_.throttle.drop(record);
    server_.confirmations.take_over(from.server_.confirmations, *record);
    if (record->phase != Phase::kHeld) continue;
    record->held().give(&HeldLease::on_moved, from.server_.clock.last());
    leases_.schedule(*record, now);
  }
  server_.clock.note_arrivals(from.server_.clock);
  leases_.compare_clocks(server_, now);
  for (Request *caller : coming.callers) locks_.take_timer(from.locks_, *caller);
  requests_.take(from.requests_, requests, server_);
  cleanups_.start_renamed(tokens, now);
}

void LockClient::resume(uint16_t slot, Nanos now) {
  redirects_.reopen(slot);
  if (!server_.session.is_up()) return server_.session.connect_soon(now);
  resume_records(slot, now);
  requests_.resume(slot, now);
}

// Records of `slot`; nullopt: all that this node serves.
void LockClient::resume_records(std::optional<uint16_t> slot, Nanos now) {
  waiters_.resume(server_, slot, now);
  locks_.for_each([&](TokenRecord &record) {
    if (Locks::is_waiting(record.phase) || !redirects_.is_to_resume(*record.lock, server_, slot))
      return;
    resume(record, now);
  });
}

void LockClient::change_channel(const std::string &cid, Nanos now) {
  assert(!server_.session.is_up() && server_.session.in_flight().empty());
  Locks::NewTokens tokens = locks_.new_tokens(cid);
  std::string channel = server_.channel.prefix() + cid;
  std::string copy = cid;
  timers_.admit(tokens.all.size());
  server_.channel.change(std::move(copy), std::move(channel));
  cleanups_.start_renamed(tokens, now);
}

}  // namespace redlatch::lock
