// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: requests and leases when the connection is made or lost.
#include <new>

#include "base/dial_failure.h"
#include "lock/lock_client.h"

namespace redlatch::lock {

bool LockClient::begin_connect(size_t node, Nanos now) {
  Server &server = at(node);
  if (!server.has_work() || !server.session.begin_connect(now)) return false;
  // A client of a cluster draws one in a slot of the node.
  if (!server.channel.is_taken() || server.settings.is_of_cluster) return true;
  try {
    change_channel(server, server.channel.draw(entropy_), now);
  } catch (const std::bad_alloc &) {
    // The next attempt to connect does it.
  }
  return true;
}

void LockClient::on_connected(size_t node, const ServerFacts &facts, Nanos now) {
  Server &server = at(node);
  if (server.channel.leave_if_taken(facts)) return server.session.drop();
  server.session.on_connected();
  server.is_wanted = false;
  server.features.is_sharded = facts.is_sharded;
  server.channel.on_connected(facts, server.settings.is_of_cluster);
  if (facts.has_messages) server.session.open_messages(now);
  server.features.can_track = facts.can_track;
  server.names.on_connected();
  if (const ServerAge &age = facts.age; server.settings.is_of_cluster && age.round_trip > 0) {
    server.clock.sample(age.asked_at, age.asked_at + age.round_trip, age.time() / kMs, now);
    leases_.compare_clocks(server, now);
  }
  if (server.lock_count > 0) server.names.announce_by(now + operate::Names::kMoment);
  const bool is_channel_new = server.channel.take_change();
  if (server.settings.is_of_cluster || is_channel_new) {
    resume_records(server, nullptr, now);
  } else {
    locks_.for_each_at(server, [&](TokenRecord &record) { resume(record, now); });
  }
  requests_.on_connected(server, now);
}

// The commands that `record` needs on a server that it was not connected to just before.
void LockClient::resume(TokenRecord &record, Nanos now) {
  Server &server = record.server();
  record.watcher.on_connected();
  if (server.session.may_change_server()) record.note_new_server();
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      return waiters_.ask(record, now);
    case Phase::kHeld:
      if (record.upgrader) server.session.on_waiting();  // for a message on the new connection
      // The server may have restarted without its data: better to know at once.
      leases_.send_extend(record, record.held()->on_connected(now), now);
      server.confirmations.repeat(record);
      return leases_.resume_upgrade(record, now);
    case Phase::kRetained:
      // Others may have had the lock meanwhile.
      return cleanups_.leave_retained(record, now);
    case Phase::kDetaching:
      return;  // its request is sent again
    case Phase::kCleanup:
      return cleanups_.on_due(record, now);  // which ends it, however often the connection breaks
  }
}

void LockClient::on_connect_failed(size_t node, const Outcome &why, Nanos now) {
  Server &server = at(node);
  server.is_wanted = false;
  server.session.on_connect_failed(why, now);
  if (!may_pass(why.status)) return fail_all(server, why.status, why.message, now);
  requests_.on_connect_failed(server, why);
  locks_.for_each_at(server, [&](TokenRecord &record) {
    const bool is_one_try = record.phase == Phase::kAsking && !record.acquisition->is_queueable();
    if (is_one_try) return waiters_.fail_callers(record, why.status, why.message, now);
    const auto &confirmed = record.replicas.caller;
    if (confirmed && confirmed->wait_ms == 0)
      leases_.fail_confirmation(record, why.status, why.message, now);
  });
}

// Waiting longer would not help.
void LockClient::fail_all(Server &server, Status status, std::string_view message, Nanos now) {
  requests_.fail_all(server, status, message);
  locks_.for_each_at(server, [&](TokenRecord &record) {
    if (Locks::is_waiting(record.phase)) waiters_.fail_callers(record, status, message, now);
    if (record.replicas.caller) return leases_.fail_confirmation(record, status, message, now);
    if (record.upgrader) leases_.give_up_upgrade(record, status, message, now);
  });
}

// Nothing here may fail: a record that still waited for an answer would be stuck.
void LockClient::on_disconnected(size_t node, Nanos now) noexcept {
  Server &server = at(node);
  server.clock.forget();
  server.health.on_disconnected();
  server.is_tracking = false;
  while (server.throttle.take()) continue;
  server.confirmations.drop();
  for (const auto &[id, record] : locks_.records()) {
    if (&record->server() != &server) continue;
    record->replicas.count = 0;
    // A recall may be lost with the connection.
    const bool has_lock = record->phase == Phase::kHeld || record->phase == Phase::kRetained;
    if (has_lock) record->retention.give(&Retention::recall);
  }
  for (const auto &[name, lock] : locks_.names()) {
    if (lock->server == &server) lock->key_watch.give(&KeyWatch::on_disconnected);
  }
  server.session.on_disconnected(server.channel.is_taken(), now);
}

}  // namespace redlatch::lock
