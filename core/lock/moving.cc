// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: locks move to another server, and waiters to another channel. Router of core/cluster
// decides when.
#include <algorithm>
#include <utility>

#include "lock/lock_client.h"

namespace redlatch::lock {

Server &LockClient::add_server(const Settings &settings, std::span<const uint8_t, 16> random) {
  const size_t node = servers_.back().node + 1;
  return servers_.emplace_back(settings, random, entropy_, output_, node,
                               Server::Owners{leases_, *this, requests_});
}

// ---- slots -------------------------------------------------------------------------------------

std::set<uint16_t> LockClient::slots(const Server &server) const {
  std::set<uint16_t> slots;
  for (const auto &[id, lock] : locks_.names()) {
    if (lock->server == &server) slots.insert(lock->slot());
  }
  requests_.add_slots(server, slots);
  // Also of a lock that no caller uses any more: one SERVE QUEUE may follow another.
  for (const Call &call : server.session.in_flight()) {
    if (const auto slot = call.kind->slot(call)) slots.insert(*slot);
  }
  return slots;
}

bool LockClient::is_at_rest(uint16_t slot) const {
  return std::all_of(servers_.begin(), servers_.end(), [slot](const Server &server) {
    return server.session.is_at_rest(slot) && server.confirmations.is_at_rest(slot);
  });
}

bool LockClient::ask(Server &server, const std::shared_ptr<DelegatedCommand> &delegated,
                     Nanos now) {
  if (!server.session.is_up()) {
    server.is_wanted = server.session.is_down();
    server.session.connect_soon(now);
    return false;
  }
  const Call &asked = delegated->call;
  const Request *request = kind_of(asked).request(asked);
  TokenRecord *record = request != nullptr ? request->lease->record : &record_of(asked);
  if (record == nullptr || record->phase != Phase::kHeld) return false;
  protocol::Command command;
  leases_.write_extend_part(command, *record, asked.lease, asked.eval, asked.extent);
  return redirects_.send(server, delegated, *record, command, now);
}

// ---- from one server to another ----------------------------------------------------------------

void LockClient::move(uint16_t slot, Server &server, Nanos now) {
  assert(redirects_.held_back().contains(slot) && is_at_rest(slot));
  Locks::NewTokens tokens = locks_.new_tokens(server, slot, server.channel.cid());
  timers_.admit(tokens.all.size());
  // From here on nothing fails.
  for (const auto &[id, record] : locks_.records()) {
    Server &from = record->server();
    if (&from == &server || record->lock->slot() != slot) continue;
    from.throttle.drop(record);
    server.confirmations.take_over(from.confirmations, *record);
    server.clock.note_arrivals(from.clock);
    if (record->phase == Phase::kHeld) {
      record->held().give(&HeldLease::on_moved, from.clock.last());
    }
  }
  locks_.move(slot, server);
  requests_.move(slot, server);
  for (const auto &[id, record] : locks_.records()) {
    if (record->phase == Phase::kHeld && record->lock->slot() == slot)
      leases_.schedule(*record, now);
  }
  leases_.compare_clocks(server, now);
  cleanups_.start_renamed(tokens, now);
}

void LockClient::resume(uint16_t slot, Server &server, Nanos now) {
  redirects_.reopen(slot);
  if (!server.session.is_up()) return server.session.connect_soon(now);
  resume_records(server, slot, now);
  requests_.resume(slot, now);
}

// Records at `server` of `slot`; nullopt: of all slots that do not move.
void LockClient::resume_records(Server &server, std::optional<uint16_t> slot, Nanos now) {
  waiters_.resume(server, slot, now);
  locks_.for_each([&](TokenRecord &record) {
    const bool is_waiting = Locks::is_waiting(record.phase);
    if (is_waiting || !redirects_.is_to_resume(*record.lock, server, slot)) return;
    resume(record, now);
  });
}

void LockClient::change_channel(Server &server, const std::string &cid, Nanos now) {
  assert(!server.session.is_up() && server.session.in_flight().empty());
  Locks::NewTokens tokens = locks_.new_tokens(server, std::nullopt, cid);
  std::string channel = server.channel.prefix() + cid;
  std::string copy = cid;
  timers_.admit(tokens.all.size());
  server.channel.change(std::move(copy), std::move(channel));
  cleanups_.start_renamed(tokens, now);
}

}  // namespace redlatch::lock
