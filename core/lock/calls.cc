// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/calls.h"

#include <algorithm>

namespace redlatch::lock {

using protocol::EvalMode;

bool LockClient::Calls::OfSlot::take_redirect(const Call &call, const Reply &reply,
                                              Nanos now) const {
  return client_.take_redirect(call, reply, now);
}

// ---- about the record of a token ---------------------------------------------------------------

void LockClient::Calls::OfRecord::ask_again(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  if (record.is_gone) return;
  const Nanos retry_at = client_.session_.next_retry(now);
  client_.timers_.set(record, std::min(record.due, retry_at));
}

const LockState *LockClient::Calls::OfRecord::lock(const Call &call) const {
  return record_of(call).lock.get();
}

void LockClient::Calls::Acquire::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  client_.on_acquire_reply(call, reply, now);
}

void LockClient::Calls::Acquire::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  record.acquisition.give(&Acquisition::on_answered);
  if (record.is_gone) return;
  if (is_waiting(record.phase)) return client_.ask(record, now, EvalMode::kText);
  if (record.phase != Phase::kHeld) return;
  // A poll that crossed a pushed grant.
  if (record.held()->is_over(now)) return client_.on_record_due(record, now);
  if (record.upgrader) client_.resume_upgrade(record, now);
}

void LockClient::Calls::Acquire::on_lost(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  const Nanos until = call.sent_at + call.lease;
  if (Checked<Cleanup> *cleanup = record.started_cleanup()) {
    cleanup->give(&Cleanup::on_acquire_lost, until);
  }
  const auto step = record.acquisition.give(&Acquisition::on_answer_lost, until);
  if (step.transition == Acquisition::Transition::kFailed) {
    client_.fail_callers(record, Status::kOutcomeUnknown, client_.session_.lost().message, now);
  }
}

void LockClient::Calls::Acquire::on_not_done(const Call &call, Nanos) const {
  record_of(call).acquisition.give(&Acquisition::on_answered);
}

void LockClient::Calls::Extend::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  client_.on_extend_reply(call, reply, now);
}

void LockClient::Calls::Extend::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *held = record.held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answered);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  if (held->get().is_over(now)) return client_.on_record_due(record, now);
  const auto step = held->give(&HeldLease::on_unknown_script, call.is_description, now,
                               client_.is_up(*record.lock));
  client_.send_extend(record, step, now, EvalMode::kText);
}

void LockClient::Calls::Extend::on_lost(const Call &call, Nanos) const {
  Checked<HeldLease> *held = record_of(call).held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answer_lost, call.is_description);
}

void LockClient::Calls::Extend::on_not_done(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *held = record.held_lease();
  if (held == nullptr) return;
  held->give(&HeldLease::on_answered);
  held->give(&HeldLease::on_refused, call.is_description, now);
  if (record.phase == Phase::kHeld) client_.schedule(record, now);
}

void LockClient::Calls::Extend::extend_lock_key(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *held = record.held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answered);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  if (held->get().is_over(now)) return client_.on_record_due(record, now);
  auto step = held->give(&HeldLease::on_unknown_script, call.is_description, now,
                         client_.is_up(*record.lock));
  step.is_description = false;
  client_.send_extend(record, step, now, call.eval, protocol::Extent::kLock);
}

void LockClient::Calls::Upgrading::on_answer(const Call &call, const Reply &reply,
                                             Nanos now) const {
  client_.on_upgrade_reply(call, reply, now);
}

void LockClient::Calls::Upgrading::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  record.upgrade->give(&Upgrade::on_answered);
  if (client_.awaits_upgrade(record, now)) client_.resume_upgrade(record, now, EvalMode::kText);
}

void LockClient::Calls::Upgrading::on_lost(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  const auto step = record.upgrade->give(&Upgrade::on_unanswered, Upgrade::Command::kUpgrade);
  if (step.transition != Upgrade::Transition::kEnded) return;
  client_.finish_upgrade(record, Status::kOutcomeUnknown, client_.session_.lost().message);
  client_.schedule(record, now);
}

void LockClient::Calls::Upgrading::on_not_done(const Call &call, Nanos) const {
  record_of(call).upgrade->give(&Upgrade::on_answered);
}

void LockClient::Calls::RollBack::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  client_.on_rollback_reply(call, reply, now);
}

void LockClient::Calls::RollBack::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  record.upgrade->give(&Upgrade::on_rollback_answered);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  client_.resume_upgrade(record, now, EvalMode::kText);
}

void LockClient::Calls::RollBack::on_lost(const Call &call, Nanos) const {
  (void)record_of(call).upgrade->give(&Upgrade::on_unanswered, Upgrade::Command::kCancel);
}

void LockClient::Calls::RollBack::on_not_done(const Call &call, Nanos) const {
  record_of(call).upgrade->give(&Upgrade::on_rollback_answered);
}

void LockClient::Calls::Track::on_answer(const Call &, const Reply &reply, Nanos) const {
  client_.can_track_ = client_.can_track_ && !reply.is_error();
}

void LockClient::Calls::FindKey::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  client_.on_key_found(record_of(call), reply, now);
}

// ---- about a lock, a name, the server ----------------------------------------------------------

void LockClient::Calls::ServeQueue::on_answer(const Call &call, const Reply &reply,
                                              Nanos now) const {
  protocol::CountAnswer answer;
  if (decode(reply, answer)) return;
  client_.note_time(call.sent_at, now, answer.server_ms);
  client_.maybe_serve_queue(call.shared<LockState>(), answer.has_more, now);
}

const LockState *LockClient::Calls::ServeQueue::lock(const Call &call) const {
  return &call.about<LockState>();
}

// ---- for another node --------------------------------------------------------------------------

void LockClient::Calls::Delegated::on_answer(const Call &call, const Reply &reply,
                                             Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  command.owner.on_delegated_over(command, &reply, now);
}

void LockClient::Calls::Delegated::on_lost(const Call &call, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  command.owner.on_delegated_over(command, nullptr, now);
}

void LockClient::Calls::Asking::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  // As without the right to it. The command behind it is redirected back.
  if (reply.is_error()) command.owner.on_delegated_over(command, &reply, now);
}

}  // namespace redlatch::lock
