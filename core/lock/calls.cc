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
  client_.locks_.repeat_soon(record_of(call), now);
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
  if (Locks::is_waiting(record.phase)) return client_.ask(record, now, EvalMode::kText);
  if (record.phase != Phase::kHeld) return;
  // A poll that crossed a pushed grant.
  if (record.held()->is_over(now)) return client_.on_record_due(record, now);
  if (record.upgrader) client_.leases_.resume_upgrade(record, now);
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

void LockClient::Calls::Track::on_answer(const Call &, const Reply &reply, Nanos) const {
  client_.can_track_ = client_.can_track_ && !reply.is_error();
}

void LockClient::Calls::FindKey::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  client_.on_key_found(record_of(call), reply, now);
}

// ---- about a lock ------------------------------------------------------------------------------

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
