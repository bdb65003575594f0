// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: requests and leases when the connection is made or lost.
#include <new>

#include "lock/lock_client.h"

namespace redlatch::lock {

bool LockClient::begin_connect(size_t, Nanos now) {
  if (!has_work() || !server_.session.begin_connect(now)) return false;
  // A client of a cluster draws one in a slot of the node.
  if (!server_.channel.is_taken() || settings_.is_of_cluster) return true;
  try {
    change_channel(server_.channel.draw(entropy_), now);
  } catch (const std::bad_alloc &) {
    // The next attempt to connect does it.
  }
  return true;
}

void LockClient::on_connected(size_t, const ServerFacts &facts, Nanos now) {
  if (server_.channel.leave_if_taken(facts)) return server_.session.drop();
  server_.session.on_connected();
  server_.is_wanted = false;
  server_.features.is_sharded = facts.is_sharded;
  server_.channel.on_connected(facts, settings_.is_of_cluster);
  if (facts.has_messages) server_.session.open_messages(now);
  server_.can_track = facts.can_track;
  server_.names.on_connected();
  if (const ServerAge &age = facts.age; settings_.is_of_cluster && age.round_trip > 0) {
    server_.clock.sample(age.asked_at, age.asked_at + age.round_trip, age.time() / kMs, now);
    leases_.compare_clocks(server_, now);
  }
  if (!locks_.records().empty()) server_.names.announce_by(now + operate::Names::kMoment);
  const bool is_channel_new = server_.channel.take_change();
  if (settings_.is_of_cluster || is_channel_new) {
    resume_records(std::nullopt, now);
  } else {
    locks_.for_each([&](TokenRecord &record) { resume(record, now); });
  }
  requests_.on_connected(server_, now);
}

// The commands that `record` needs on a server that it was not connected to just before.
void LockClient::resume(TokenRecord &record, Nanos now) {
  record.watcher.on_connected();
  if (server_.session.may_change_server()) record.note_new_server();
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      return waiters_.ask(record, now);
    case Phase::kHeld:
      // The server may have restarted without its data: better to know at once.
      leases_.send_extend(record, record.held()->on_connected(now), now);
      server_.confirmations.repeat(record);
      return leases_.resume_upgrade(record, now);
    case Phase::kDetaching:
      return;  // its request is sent again
    case Phase::kCleanup:
      return cleanups_.on_due(record, now);  // which ends it, however often the connection breaks
  }
}

void LockClient::on_connect_failed(size_t, const Outcome &why, Nanos now) {
  server_.is_wanted = false;
  server_.session.on_connect_failed(why, now);
  const bool may_pass = why.status == Status::kUnavailable || why.status == Status::kServer;
  if (!may_pass) return fail_all(why.status, why.message, now);
  requests_.on_connect_failed(server_, why);
  locks_.for_each([&](TokenRecord &record) {
    const bool is_one_try = record.phase == Phase::kAsking && !record.acquisition->is_queueable();
    if (is_one_try) return waiters_.fail_callers(record, why.status, why.message, now);
    const auto &confirmed = record.replicas.caller;
    if (confirmed && confirmed->wait_ms == 0)
      leases_.fail_confirmation(record, why.status, why.message, now);
  });
}

// Waiting longer would not help.
void LockClient::fail_all(Status status, std::string_view message, Nanos now) {
  requests_.fail_all(server_, status, message);
  locks_.for_each([&](TokenRecord &record) {
    if (Locks::is_waiting(record.phase)) waiters_.fail_callers(record, status, message, now);
    if (record.replicas.caller) return leases_.fail_confirmation(record, status, message, now);
    if (record.upgrader) leases_.give_up_upgrade(record, status, message, now);
  });
}

// Nothing here may fail: a record that still waited for an answer would be stuck.
void LockClient::on_disconnected(size_t, Nanos now) noexcept {
  server_.clock.forget();
  server_.health.on_disconnected();
  server_.is_tracking = false;
  while (server_.throttle.take()) continue;
  server_.confirmations.drop();
  for (const auto &[id, record] : locks_.records()) record->replicas.count = 0;
  for (const auto &[name, lock] : locks_.names()) lock->key_watch.give(&KeyWatch::on_disconnected);
  server_.session.on_disconnected(server_.channel.is_taken(), now);
}

}  // namespace redlatch::lock
