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

// Also of a lock that no caller uses any more: one SERVE QUEUE may follow another.
Moves LockClient::slots() {
  Moves slots;
  for (const auto &[id, lock] : locks_.names()) slots.emplace(lock->slot(), lock->server);
  requests_.add_slots(slots);
  for (Server &server : servers_) {
    for (const Call &call : server.session.in_flight()) {
      const auto slot = redirects_.is_delegated(call) ? std::nullopt : call.kind->slot(call);
      if (slot) slots.emplace(*slot, &server);
    }
  }
  return slots;
}

std::set<uint16_t> LockClient::busy_slots() const {
  std::set<uint16_t> slots;
  for (const Server &server : servers_) {
    server.session.add_slots(slots);
    server.confirmations.add_slots(slots);
  }
  return slots;
}

bool LockClient::ask(Server &server, const std::shared_ptr<DelegatedCommand> &delegated,
                     Nanos now) {
  if (!server.session.is_up()) {
    if (server.session.is_down()) server.is_wanted = true;
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

void LockClient::move(const Moves &moves, Nanos now) {
  for (const auto &[slot, server] : moves) redirects_.hold_back(slot);
  Locks::NewTokens tokens = locks_.new_tokens(moves);
  timers_.admit(tokens.all.size());
  // From here on nothing fails.
  for (const auto &[id, record] : locks_.records()) {
    const auto found = moves.find(record->lock->slot());
    Server &from = record->server();
    if (found == moves.end() || found->second == &from) continue;
    Server &server = *found->second;
    from.throttle.drop(record);
    server.confirmations.take_over(from.confirmations, *record);
    server.clock.note_arrivals(from.clock);
    if (record->phase != Phase::kHeld) continue;
    record->held().give(&HeldLease::on_moved, from.clock.last());
    leases_.schedule(*record, now);
  }
  locks_.move(moves);
  requests_.move(moves);
  for (Server &server : servers_) leases_.compare_clocks(server, now);
  cleanups_.start_renamed(tokens, now);
}

void LockClient::resume(const Moves &moves, Nanos now) {
  std::set<const Server *> affected;
  for (const auto &[slot, server] : moves) affected.insert(server);
  for (const auto &[slot, server] : moves) redirects_.reopen(slot);
  // In their own order: that of the set is the order of addresses, which differs from run to run.
  for (Server &server : servers_) {
    if (!affected.contains(&server)) continue;
    server.session.is_up() ? resume_records(server, &moves, now) : server.session.connect_soon(now);
  }
  requests_.resume(moves, now);
}

// Records at `server` of these slots; null: of all slots that do not move.
void LockClient::resume_records(Server &server, const Moves *slots, Nanos now) {
  waiters_.resume(server, slots, now);
  locks_.for_each_at(server, [&](TokenRecord &record) {
    const bool is_waiting = Locks::is_waiting(record.phase);
    if (is_waiting || !redirects_.is_to_resume(*record.lock, server, slots)) return;
    resume(record, now);
  });
}

void LockClient::change_channel(Server &server, const std::string &cid, Nanos now) {
  assert(!server.session.is_up() && server.session.in_flight().empty());
  Locks::NewTokens tokens = locks_.new_tokens(server, cid);
  std::string channel = server.channel.prefix() + cid;
  std::string copy = cid;
  timers_.admit(tokens.all.size());
  server.channel.change(std::move(copy), std::move(channel));
  cleanups_.start_renamed(tokens, now);
}

}  // namespace redlatch::lock
