// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/calls.h"

#include <algorithm>
#include <utility>

namespace redlatch::lock {

using protocol::EvalMode;

LockClient::Calls::Calls(LockClient &client)
    : acquire(client),
      extend(client),
      upgrade(client),
      roll_back(client),
      release(client),
      cancel(client),
      track(client),
      find_key(client),
      ask(client),
      inspect_key(client),
      undo_attach(client),
      serve_queue(client),
      announce(client),
      ask_name(client),
      health(client),
      delegated(client),
      asking(client),
      side_extend(client),
      wait(client) {}

bool LockClient::Calls::OfSlot::is_redirected(const InFlight &in_flight, const Reply &reply,
                                              Nanos now) const {
  return client_.is_taken_as_redirect(in_flight, reply, now);
}

// ---- about the record of a token ---------------------------------------------------------------

void LockClient::Calls::OfRecord::ask_again(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  if (record.is_gone) return;
  const Nanos retry_at = client_.session_.retry_at(now);
  client_.timers_.set(record, std::min(record.due, retry_at));
}

const LockState *LockClient::Calls::OfRecord::lock(const InFlight &in_flight) const {
  return record_of(in_flight).lock.get();
}

void LockClient::Calls::Acquire::on_answer(const InFlight &in_flight, const Reply &reply,
                                           Nanos now) const {
  client_.on_acquire_reply(in_flight, reply, now);
}

void LockClient::Calls::Acquire::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  record.acquisition.give(&Acquisition::on_answered);
  if (record.is_gone) return;
  if (is_waiting(record.phase)) return client_.ask(record, now, EvalMode::kText);
  if (record.phase != Phase::kHeld) return;
  // A poll that crossed a pushed grant.
  if (record.held()->is_over(now)) return client_.on_record_due(record, now);
  if (record.upgrader) client_.resume_upgrade(record, now);
}

void LockClient::Calls::Acquire::on_lost(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  const Nanos until = in_flight.sent_at + in_flight.lease;
  if (Checked<Cleanup> *cleanup = record.started_cleanup()) {
    cleanup->give(&Cleanup::on_acquire_lost, until);
  }
  const auto step = record.acquisition.give(&Acquisition::on_answer_lost, until);
  if (step.transition == Acquisition::Transition::kFailed) {
    client_.fail_callers(record, Status::kOutcomeUnknown, client_.session_.lost().message, now);
  }
}

void LockClient::Calls::Acquire::on_not_done(const InFlight &in_flight, Nanos) const {
  record_of(in_flight).acquisition.give(&Acquisition::on_answered);
}

void LockClient::Calls::Extend::on_answer(const InFlight &in_flight, const Reply &reply,
                                          Nanos now) const {
  client_.on_extend_reply(in_flight, reply, now);
}

void LockClient::Calls::Extend::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  Checked<HeldLease> *held = record.held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answered);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  if (held->get().is_over(now)) return client_.on_record_due(record, now);
  const auto step = held->give(&HeldLease::on_unknown_script, in_flight.is_description, now,
                               client_.is_up(*record.lock));
  client_.send_extend(record, step, now, EvalMode::kText);
}

void LockClient::Calls::Extend::on_lost(const InFlight &in_flight, Nanos) const {
  Checked<HeldLease> *held = record_of(in_flight).held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answer_lost, in_flight.is_description);
}

void LockClient::Calls::Extend::on_not_done(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  Checked<HeldLease> *held = record.held_lease();
  if (held == nullptr) return;
  held->give(&HeldLease::on_answered);
  held->give(&HeldLease::on_refused, in_flight.is_description, now);
  if (record.phase == Phase::kHeld) client_.schedule(record, now);
}

void LockClient::Calls::Extend::extend_lock_key(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  Checked<HeldLease> *held = record.held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answered);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  if (held->get().is_over(now)) return client_.on_record_due(record, now);
  auto step = held->give(&HeldLease::on_unknown_script, in_flight.is_description, now,
                         client_.is_up(*record.lock));
  step.is_description = false;
  client_.send_extend(record, step, now, in_flight.eval, protocol::Extent::kLock);
}

void LockClient::Calls::Upgrading::on_answer(const InFlight &in_flight, const Reply &reply,
                                             Nanos now) const {
  client_.on_upgrade_reply(in_flight, reply, now);
}

void LockClient::Calls::Upgrading::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  record.upgrade->give(&Upgrade::on_answered);
  if (client_.awaits_upgrade(record, now)) client_.resume_upgrade(record, now, EvalMode::kText);
}

void LockClient::Calls::Upgrading::on_lost(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  const auto step = record.upgrade->give(&Upgrade::on_unanswered, Upgrade::Command::kUpgrade);
  if (step.transition != Upgrade::Transition::kEnded) return;
  client_.finish_upgrade(record, Status::kOutcomeUnknown, client_.session_.lost().message);
  client_.schedule(record, now);
}

void LockClient::Calls::Upgrading::on_not_done(const InFlight &in_flight, Nanos) const {
  record_of(in_flight).upgrade->give(&Upgrade::on_answered);
}

void LockClient::Calls::RollBack::on_answer(const InFlight &in_flight, const Reply &reply,
                                            Nanos now) const {
  client_.on_rollback_reply(in_flight, reply, now);
}

void LockClient::Calls::RollBack::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  record.upgrade->give(&Upgrade::on_rollback_answered);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  client_.resume_upgrade(record, now, EvalMode::kText);
}

void LockClient::Calls::RollBack::on_lost(const InFlight &in_flight, Nanos) const {
  (void)record_of(in_flight).upgrade->give(&Upgrade::on_unanswered, Upgrade::Command::kCancel);
}

void LockClient::Calls::RollBack::on_not_done(const InFlight &in_flight, Nanos) const {
  record_of(in_flight).upgrade->give(&Upgrade::on_rollback_answered);
}

void LockClient::Calls::CleanUp::on_answer(const InFlight &in_flight, const Reply &reply,
                                           Nanos now) const {
  client_.on_cleanup_reply(in_flight, reply, now);
}

void LockClient::Calls::CleanUp::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  if (record.is_gone) return;
  const auto step =
      record.cleanup().give(&Cleanup::on_unknown_script, now, client_.is_up(*record.lock));
  client_.perform(record, step, now, EvalMode::kText);
}

void LockClient::Calls::CleanUp::on_lost(const InFlight &in_flight, Nanos) const {
  TokenRecord &record = record_of(in_flight);
  record.cleanup().give(&Cleanup::on_answer_lost, in_flight.sent_at);
  if (!record.releaser) return;
  client_.timers_.set(*record.releaser, in_flight.sent_at + client_.settings_.command_timeout);
}

void LockClient::Calls::CleanUp::on_not_done(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  if (record.is_gone) return;
  client_.limit_releaser(record, in_flight.sent_at);
  client_.perform(record, record.cleanup().give(&Cleanup::on_refused), now);
}

bool LockClient::Calls::CleanUp::on_postponed(const InFlight &in_flight, Nanos retry_at,
                                              Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  if (record.is_gone) return true;
  client_.limit_releaser(record, in_flight.sent_at);
  client_.perform(record, record.cleanup().give(&Cleanup::on_postponed, retry_at), now);
  return true;
}

void LockClient::Calls::Track::on_answer(const InFlight &, const Reply &reply, Nanos) const {
  client_.can_track_ = client_.can_track_ && !reply.is_error();
}

void LockClient::Calls::FindKey::on_answer(const InFlight &in_flight, const Reply &reply,
                                           Nanos now) const {
  client_.on_key_found(record_of(in_flight), reply, now);
}

// ---- about a request ---------------------------------------------------------------------------

const LockState *LockClient::Calls::OfRequest::lock(const InFlight &in_flight) const {
  return lock_of(in_flight.about<Request>());
}

Request *LockClient::Calls::OfRequest::request(const InFlight &in_flight) const {
  return &in_flight.about<Request>();
}

void LockClient::Calls::Ask::on_answer(const InFlight &in_flight, const Reply &reply,
                                       Nanos now) const {
  client_.on_request_reply(in_flight, reply, now);
}

void LockClient::Calls::Ask::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  const auto request = in_flight.shared<Request>();
  if (request->is_finished()) return;
  const LockState *lock = lock_of(*request);
  // Its slot has moved meanwhile: it is sent there.
  if (lock != nullptr && client_.is_moving(*lock)) return on_not_done(in_flight, now);
  client_.send_request(request, now, EvalMode::kText);
}

void LockClient::Calls::Ask::on_lost(const InFlight &in_flight, Nanos) const {
  Request &request = in_flight.about<Request>();
  request.is_unanswered = true;
  // Sent twice it might remove the next holder; all others may be sent again.
  if (request.op != Request::Op::kForce || request.is_finished()) return;
  client_.finish_immediate(request, Status::kOutcomeUnknown, client_.session_.lost().message);
}

void LockClient::Calls::Ask::on_not_done(const InFlight &in_flight, Nanos) const {
  Request &request = in_flight.about<Request>();
  if (request.op == Request::Op::kForce) request.is_sent = false;
}

bool LockClient::Calls::Ask::on_postponed(const InFlight &in_flight, Nanos retry_at,
                                          Nanos now) const {
  Request &request = in_flight.about<Request>();
  if (request.is_finished()) return false;
  on_not_done(in_flight, now);
  request.is_postponed = true;
  client_.resend_at_ = std::min(client_.resend_at_, retry_at);
  return true;
}

void LockClient::Calls::Ask::ask_again(const InFlight &in_flight, Nanos now) const {
  Request &request = in_flight.about<Request>();
  if (request.is_finished()) return;
  request.is_postponed = true;
  const Nanos retry_at = client_.session_.retry_at(now);
  client_.resend_at_ = std::min(client_.resend_at_, retry_at);
}

void LockClient::Calls::Ask::extend_lock_key(const InFlight &in_flight, Nanos now) const {
  const auto request = in_flight.shared<Request>();
  if (request->is_finished()) return;
  client_.send_request(request, now, in_flight.eval, protocol::Extent::kLock);
}

bool LockClient::Calls::Ask::is_extension(const InFlight &in_flight) const {
  return in_flight.about<Request>().op == Request::Op::kExtend;
}

bool LockClient::Calls::Ask::undoes_attach(const InFlight &in_flight) const {
  return is_unwanted_attach(in_flight.about<Request>());
}

void LockClient::Calls::InspectKey::on_answer(const InFlight &in_flight, const Reply &reply,
                                              Nanos now) const {
  client_.on_key_seen(in_flight.shared<Request>(), reply, now);
}

void LockClient::Calls::UndoAttach::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  client_.undo_attach(in_flight.shared<Request>(), in_flight.lease, now, EvalMode::kText);
}

// ---- about a lock, a name, the server ----------------------------------------------------------

void LockClient::Calls::ServeQueue::on_answer(const InFlight &in_flight, const Reply &reply,
                                              Nanos now) const {
  protocol::CountAnswer answer;
  if (decode(reply, answer)) return;
  client_.note_time(in_flight.sent_at, now, answer.server_ms);
  client_.maybe_serve_queue(in_flight.shared<LockState>(), answer.has_more, now);
}

const LockState *LockClient::Calls::ServeQueue::lock(const InFlight &in_flight) const {
  return &in_flight.about<LockState>();
}

void LockClient::Calls::Announce::on_answer(const InFlight &, const Reply &reply, Nanos) const {
  client_.may_announce_ = client_.may_announce_ && !reply.is_error();
}

void LockClient::Calls::AskName::on_answer(const InFlight &in_flight, const Reply &reply,
                                           Nanos now) const {
  client_.on_name(in_flight.about<NameQuery>(), &reply, now);
}

void LockClient::Calls::AskName::on_lost(const InFlight &in_flight, Nanos now) const {
  client_.on_name(in_flight.about<NameQuery>(), nullptr, now);
}

const LockState *LockClient::Calls::AskName::lock(const InFlight &in_flight) const {
  const NameQuery &query = in_flight.about<NameQuery>();
  if (query.record) return query.record->lock.get();
  return query.request ? lock_of(*query.request) : nullptr;
}

void LockClient::Calls::Health::on_answer(const InFlight &in_flight, const Reply &reply,
                                          Nanos now) const {
  client_.on_health_reply(in_flight, reply, now);
}

void LockClient::Calls::Health::on_lost(const InFlight &in_flight, Nanos) const {
  client_.lose_health(in_flight.about<Checkup>());
}

// ---- for another node, and at the side ---------------------------------------------------------

void LockClient::Calls::Delegated::on_answer(const InFlight &in_flight, const Reply &reply,
                                             Nanos now) const {
  auto &delegated = in_flight.about<DelegatedCommand>();
  delegated.owner.on_delegated_over(delegated, &reply, now);
}

void LockClient::Calls::Delegated::on_lost(const InFlight &in_flight, Nanos now) const {
  auto &delegated = in_flight.about<DelegatedCommand>();
  delegated.owner.on_delegated_over(delegated, nullptr, now);
}

void LockClient::Calls::Asking::on_answer(const InFlight &in_flight, const Reply &reply,
                                          Nanos now) const {
  auto &delegated = in_flight.about<DelegatedCommand>();
  // As without the right to it. The command behind it is redirected back.
  if (reply.is_error()) delegated.owner.on_delegated_over(delegated, &reply, now);
}

void LockClient::Calls::SideExtend::on_answer(const InFlight &in_flight, const Reply &reply,
                                              Nanos now) const {
  client_.on_side_extended(in_flight, reply, now);
}

void LockClient::Calls::SideExtend::on_unknown_script(const InFlight &in_flight, Nanos now) const {
  TokenRecord &record = record_of(in_flight);
  if (!is_batched(record)) return;
  if (record.held()->is_over(now)) return client_.on_record_due(record, now);
  client_.is_side_text_wanted_ = true;
  client_.replication_.give(&Replication::on_unknown_script, *record.replicas);
}

void LockClient::Calls::Wait::on_answer(const InFlight &, const Reply &reply, Nanos now) const {
  client_.on_wait_reply(reply, now);
}

}  // namespace redlatch::lock
