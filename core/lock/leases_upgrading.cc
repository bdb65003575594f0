// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Leases: from reading to writing, and back. It gives the events to Upgrade and carries out what
// that returns.
#include <new>
#include <utility>

#include "lock/leases.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

void Leases::start_upgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  TokenRecord &record = *request->lease->record;
  if (record.lock->keys.traits().has_permits) {
    return results_.finish(*request, Status::kInvalid,
                           words::has_no_readers(request->lease->name, true));
  }
  const bool is_writer = record.identity.mode == protocol::Mode::kWrite;
  if (is_writer && !record.replicas.is_writer_unconfirmed)
    return results_.finish(*request, Status::kOk);
  if (is_writer || (record.upgrade && record.upgrade->get().is_wanted())) {
    return results_.finish(*request, Status::kDeadlock,
                           words::upgrades_already(request->lease->name));
  }
  for (const TokenRecord *other = record.lock->owned; other != nullptr;
       other = other->next_listed) {
    if (other == &record || other->identity.owner != record.identity.owner) continue;
    if (other->lease->state_at(now) != Lease::kHeld) continue;
    return results_.finish(*request, Status::kDeadlock,
                           words::owner_reads_as_well(request->lease->name));
  }
  Checked<Upgrade> &upgrade = record.ensure_upgrade();
  record.retention.give(&Retention::recall);  // others may wait behind it
  while (TokenRecord *reader = record.lock->retained) cleanups_.leave_retained(*reader, now);
  locks_.set_upgrader(record, request);
  const Nanos limit = request->wait_ms == 0 ? settings_.command_timeout : request->wait_ms * kMs;
  if (request->wait_ms >= 0) timers_.set(*request, after(now, limit));
  if (request->wait_ms == 0) record.server().session.connect_soon(now);
  const auto step = upgrade.give(&Upgrade::start, request->wait_ms == 0, now, readiness_of(record));
  const bool is_later = step.command == Upgrade::Command::kNone;
  if (is_later && step.transition == Upgrade::Transition::kNone) return;
  try {
    carry_out(record, step, now);
  } catch (const std::bad_alloc &) {
    return;  // the timer asks again
  }
}

void Leases::carry_out(TokenRecord &record, Upgrade::Step step, Nanos now,
                       protocol::EvalMode eval) {
  using Command = Upgrade::Command;
  assert(step.transition != Upgrade::Transition::kDefect);
  if (step.transition == Upgrade::Transition::kDefect) {
    finish_upgrade(record, Status::kInternal, results_.report_defect(Machine::kUpgrade));
    step = record.upgrade->give(&Upgrade::give_up, now, readiness_of(record));
  }
  schedule(record, now);
  if (step.command == Command::kNone) return;
  const bool is_upgrade = step.command == Command::kUpgrade;
  const Nanos lease =
      is_upgrade ? timing::lease_within(record.held()->ttl(), now, record.held()->end_at()) : 0;
  protocol::Command command;
  write_upgrade(command, record, step.command, lease, eval);
  const LockCallKind *kind = &roll_back_;
  if (is_upgrade) kind = &upgrade_;
  if (record.server().session.try_send(command,
                                       Call{kind, eval, now, lease, record.shared_from_this()})) {
    record.upgrade->give(&Upgrade::sent, step.command);
  } else {
    record.upgrade->give(&Upgrade::not_sent, step.command);
  }
  schedule(record, now);
}

void Leases::write_upgrade(protocol::Command &out, TokenRecord &record, Upgrade::Command what,
                           Nanos lease, protocol::EvalMode eval) const {
  const protocol::LockKeys &keys = record.lock->keys;
  Checked<Upgrade> &upgrade = *record.upgrade;
  if (what == Upgrade::Command::kCancel) {
    return protocol::cancel(out, record.server().features, eval, keys, upgrade->member(),
                            record.identity.owner);
  }
  if (what == Upgrade::Command::kDowngrade) {
    return protocol::downgrade(out, record.server().features, eval, keys, record.identity.token,
                               record.held()->ttl() / kMs, 0);
  }
  if (upgrade->needs_member()) {
    std::string member;
    if (!upgrade->is_one_try()) {
      member = protocol::make_member(record.identity.token, protocol::Mode::kUpgrade,
                                     std::min(record.held()->ttl() / kMs, kProvisionalMs),
                                     record.upgrader->wait_ms);
      protocol::set_polls(member, !record.server().channel.hears(record.identity.token));
    }
    upgrade.give(&Upgrade::set_member, std::move(member));
  }
  protocol::acquire(out, record.server().features, eval, keys,
                    {protocol::Mode::kUpgrade, record.proof(), lease / kMs, upgrade->member(),
                     upgrade->ticket()});
}

// After an answer to UPGRADE. Given up, or to be rolled back: what was sent behind it decides.
bool Leases::awaits_upgrade(TokenRecord &record, Nanos now) {
  if (record.is_gone || record.phase != TokenRecord::Phase::kHeld) return false;
  if (!record.held()->is_over(now)) return record.upgrade->get().awaits_answer();
  on_due(record, now);
  return false;
}

void Leases::on_upgrade_reply(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  record.upgrade->give(&Upgrade::on_answered);
  protocol::AcquireAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(record.server(), call.sent_at, now, answer.server_ms);
  if (!awaits_upgrade(record, now)) return;
  if (refusal) return on_upgrade_refused(record, refusal, now);
  if (answer.is_lost) return lose(record, LossReason::kGone, true, now);
  if (answer.is_granted) {
    const auto step = record.upgrade->give(&Upgrade::on_granted);
    if (step.transition == Upgrade::Transition::kDefect) return carry_out(record, step, now);
    become_writer(record, answer.fence, answer.server_ms);
    return prolong(record, call.sent_at, call.lease, now);
  }
  if (answer.is_deadlock || record.upgrade->get().is_one_try()) {
    const auto status = answer.is_deadlock ? Status::kDeadlock : Status::kBusy;
    const auto step = record.upgrade->give(&Upgrade::on_denied, now, readiness_of(record));
    finish_upgrade(record, status, words::others_read(record.lock->name, answer.is_deadlock));
    return carry_out(record, step, now);
  }
  record.watcher.set_rank(0);  // before all other waiters
  const Nanos delay = owner_.plan_recheck(record, answer, now);
  carry_out(record, record.upgrade->give(&Upgrade::on_queued, answer.ticket, now + delay), now);
}

void Leases::on_upgrade_refused(TokenRecord &record, const protocol::Refusal &refusal, Nanos now) {
  const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
  if (may_pass && !record.upgrade->get().is_one_try()) {
    return carry_out(record, record.upgrade->give(&Upgrade::on_postponed, now, entropy_.next()),
                     now);
  }
  const auto step = record.upgrade->give(&Upgrade::on_refused, now, readiness_of(record));
  if (record.server().settings.is_of_cluster && refusal.is_of_slot) {
    finish_upgrade(record, Status::kUnavailable, words::not_upgraded_in_move(record.lock->name));
  } else {
    finish_upgrade(record, refusal.status(), refusal.message);
  }
  carry_out(record, step, now);
}

void Leases::on_upgrade_push(TokenRecord &record, Nanos now) {
  if (record.phase != TokenRecord::Phase::kHeld || record.identity.mode == protocol::Mode::kWrite)
    return;
  if (record.held()->is_over(now)) return on_due(record, now);
  Checked<Upgrade> &upgrade = record.ensure_upgrade();
  carry_out(record, upgrade.give(&Upgrade::on_grant_pushed, now, readiness_of(record)), now);
}

void Leases::become_writer(TokenRecord &record, int64_t fence, int64_t server_ms) {
  record.identity.mode = protocol::Mode::kWrite;
  record.held().give(&HeldLease::on_upgraded, fence, server_ms);
  record.lease->fence = fence;
  record.lock->highest_fence = std::max(record.lock->highest_fence, fence);
  record.lease->mode = record.identity.mode;
  record.lock->holder = &record;
  if (!record.server().confirmations.start_upgrade(record)) finish_upgrade(record, Status::kOk);
}

void Leases::finish_upgrade(TokenRecord &record, Status status, std::string_view message) {
  if (!record.upgrader) return;
  if (std::exchange(record.replicas.is_writer_unconfirmed, false))
    (void)record.server().confirmations.end(record);
  const auto request = locks_.take_upgrader(record);
  results_.finish(*request, status, message);
}

// The upgrade has failed, and the lease reads on. The server is asked to downgrade a writer.
void Leases::give_up_upgrade(TokenRecord &record, Status status, std::string_view message,
                             Nanos now) {
  const bool is_writer = record.replicas.is_writer_unconfirmed;
  finish_upgrade(record, status, message);
  if (is_writer) record.become_reader();
  const auto event = is_writer ? &Upgrade::on_found_writing : &Upgrade::give_up;
  carry_out(record, record.upgrade->give(event, now, readiness_of(record)), now);
}

void Leases::on_rollback_reply(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  record.upgrade->give(&Upgrade::on_rollback_answered);
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) cleanups_.on_script_answer(call, answer, record.lock, now);
  if (record.is_gone || record.phase != TokenRecord::Phase::kHeld) return;
  if (refusal)
    return carry_out(record, record.upgrade->give(&Upgrade::on_rollback_refused, now), now);
  const auto step =
      record.upgrade->give(&Upgrade::on_rolled_back, answer.result, now, readiness_of(record));
  if (step.transition == Upgrade::Transition::kLost)
    return lose(record, LossReason::kGone, true, now);
  carry_out(record, step, now);
}

// The answer to a downgrade no longer has a caller, or was a refusal: it continues by itself.
void Leases::roll_back_downgrade(Request &request, Nanos now) {
  if (request.op != Request::Op::kDowngrade) return;
  TokenRecord *record = request.lease->record;
  if (record == nullptr) return;
  record->upgrade->give(&Upgrade::on_downgrade_failed);
  if (record->phase == TokenRecord::Phase::kHeld) resume_upgrade(*record, now);
}

// The mode in the answer to an extension of a lease that may share: the answer to DOWNGRADE may
// have been lost, or a late copy of UPGRADE have come into effect.
void Leases::note_mode(TokenRecord &record, bool is_reader, Nanos now) {
  if (!record.is_sharing || !record.lock->keys.traits().has_readers) return;
  if (is_reader == (record.identity.mode == protocol::Mode::kRead)) return;
  if (is_reader) return record.become_reader();
  Checked<Upgrade> &upgrade = record.ensure_upgrade();
  carry_out(record, upgrade.give(&Upgrade::on_found_writing, now, readiness_of(record)), now);
}

void Leases::Upgrading::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  record.upgrade->give(&Upgrade::on_answered);
  if (leases.awaits_upgrade(record, now))
    leases.resume_upgrade(record, now, protocol::EvalMode::kText);
}

void Leases::Upgrading::on_lost(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  const auto step = record.upgrade->give(&Upgrade::on_unanswered, Upgrade::Command::kUpgrade);
  if (step.transition != Upgrade::Transition::kEnded) return;
  leases.finish_upgrade(record, Status::kOutcomeUnknown, record.server().session.lost().message);
  leases.schedule(record, now);
}

void Leases::Upgrading::on_not_done(const Call &call, Nanos) const {
  record_of(call).upgrade->give(&Upgrade::on_answered);
}

void Leases::RollBack::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  record.upgrade->give(&Upgrade::on_rollback_answered);
  if (record.is_gone || record.phase != TokenRecord::Phase::kHeld) return;
  leases.resume_upgrade(record, now, protocol::EvalMode::kText);
}

void Leases::RollBack::on_lost(const Call &call, Nanos) const {
  (void)record_of(call).upgrade->give(&Upgrade::on_unanswered, Upgrade::Command::kCancel);
}

void Leases::RollBack::on_not_done(const Call &call, Nanos) const {
  record_of(call).upgrade->give(&Upgrade::on_rollback_answered);
}

}  // namespace redlatch::lock
