// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests: those about a lease that is held, except DETACH.
#include "lock/requests.h"
#include "lock/term.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

void Requests::start_extend(const std::shared_ptr<Request> &request, Nanos now) {
  if (!leases_.is_held(*request, now)) return;
  const protocol::FormatTraits &format = request->lease->record->lock->keys.traits();
  if (request->extend_to > format.longest_ttl_ms * kMs) {
    return results_.finish(
        *request, Status::kInvalid,
        words::ttl_of_format(format.longest_ttl_ms, format.word, request->extend_to / kMs));
  }
  begin(request, now);
}

void Requests::start_downgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!leases_.is_held(*request, now) || !may_leave(*request, results_)) return;
  TokenRecord &record = *request->lease->record;
  const protocol::FormatTraits &format = record.lock->keys.traits();
  if (!format.has_readers) {
    return results_.finish(*request, Status::kInvalid,
                           words::has_no_readers(record.lock->name, format.has_permits));
  }
  if (record.identity.mode == protocol::Mode::kRead) return results_.finish(*request, Status::kOk);
  leases_.finish_upgrade(record, Status::kCancelled, words::kDowngradedMeanwhile);
  (void)record.ensure_upgrade();  // should it fail, it is rolled back, which must not need memory
  record.is_sharing = true;
  record.retention.give(&Retention::recall);
  record.held().give(&HeldLease::on_downgrade);
  begin(request, now);
  // From here on it is only certain that it reads; readers may enter before the answer comes.
  if (record.lease) record.become_reader();
}

// ---- all of them -------------------------------------------------------------------------------

void Requests::OfLease::send(Call call) const {
  Request &request = call.about<Request>();
  TokenRecord *record = request.lease->record;
  const bool is_repeated = request.op == Request::Op::kDetach && request.is_sent;
  const bool is_held = record != nullptr && (record->phase == Phase::kHeld || is_repeated);
  if (!is_held) return requests.finish_not_held(request);
  protocol::Command command;
  write(command, *record, call);
  call.lock = record->lock;
  record->server().session.send(command, std::move(call));
  request.is_sent = true;
  on_sent(*record);
}

void Requests::OfLease::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return on_late_answer(call, reply, now);
  Answer answer;
  if (const auto refusal = read(call, reply, answer)) {
    const auto &name = request->lease ? request->lease->name : request->name;
    on_refused(*request, now);
    requests.finish(*request, refusal.status(), refusal_message(name, refusal));
    return requests.leases_.roll_back_downgrade(*request, now);
  }
  if (!call.is_delegated)
    requests.leases_.note_time(server_of(call), call.sent_at, now, answer.server_ms);
  on_result(call, answer, now);
}

// For an answer about a lease. Otherwise the request is finished with the reason.
bool Requests::OfLease::is_held_still(Request &request, int64_t result, Nanos now) const {
  TokenRecord *record = request.lease->record;
  if (record != nullptr && record->phase == Phase::kHeld) {
    if (record->held()->is_over(now)) {
      requests.leases_.on_due(*record, now);
    } else if (result < 1) {
      requests.leases_.lose(*record, loss_by(result), true, now);
    } else {
      return true;
    }
  }
  requests.finish_not_held(request);
  return false;
}

// ---- extend ------------------------------------------------------------------------------------

void Requests::Prolong::write(protocol::Command &out, TokenRecord &record, Call &call) const {
  call.lease = call.about<Request>().extend_to;
  if (call.extent == protocol::Extent::kAll) {
    // An extension by the caller may be the only one: id and term must last as long.
    const bool is_term = !record.identity.candidate.empty() && record.held()->since_ms() > 0;
    const protocol::HolderInfo info = info_of(record, requests.settings_);
    requests.leases_.write_extend(out, record, call.lease, call.eval, is_term ? &info : nullptr);
  } else {
    requests.leases_.write_extend_part(out, record, call.lease, call.eval, call.extent);
  }
}

void Requests::Prolong::extend_lock_key(const Call &call, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return;
  requests.send(request, now, call.eval, protocol::Extent::kLock);
}

protocol::Refusal Requests::Prolong::read(const Call &call, const Reply &reply,
                                          Answer &answer) const {
  return Leases::read_extension(call, reply, answer);
}

void Requests::Prolong::on_result(const Call &call, const Answer &answer, Nanos now) const {
  Request &request = call.about<Request>();
  if (requests.leases_.extend_next_part(call, answer, now)) return;
  if (!is_held_still(request, answer.result, now)) return;
  TokenRecord &record = *request.lease->record;
  const auto step = record.held().give(&HeldLease::change_ttl, call.sent_at, request.extend_to, now,
                                       requests.entropy_.next());
  requests.leases_.schedule(record, now);
  requests.leases_.send_extend(record, step, now);
  if (record.phase != Phase::kHeld) return requests.finish_not_held(request);  // a defect was met
  if (!record.held()->is_over(now)) return requests.finish(request, Status::kOk);
  requests.leases_.lose(record, {LossReason::kExpired, words::same(words::kExtensionTooLate)},
                        false, now);
  requests.finish_not_held(request);
}

// ---- downgrade ---------------------------------------------------------------------------------

void Requests::Downgrade::write(protocol::Command &out, TokenRecord &record, Call &call) const {
  const Checked<HeldLease> &held = record.held();
  call.lease = timing::lease_within(held->ttl(), call.sent_at, held->end_at());
  protocol::downgrade(out, record.server().features, call.eval, record.lock->keys,
                      record.identity.token, call.lease / kMs, held->server_fence());
}

void Requests::Downgrade::on_result(const Call &call, const Answer &answer, Nanos now) const {
  Request &request = call.about<Request>();
  if (!is_held_still(request, answer.result, now)) return;
  requests.leases_.prolong(*request.lease->record, call.sent_at, call.lease, now);
  requests.finish(request, Status::kOk);
}

// ---- raise fence -------------------------------------------------------------------------------

void Requests::RaiseFence::write(protocol::Command &out, TokenRecord &record, Call &call) const {
  protocol::raise_fence(out, record.server().features, call.eval, record.lock->keys,
                        record.identity.token, call.about<Request>().arguments->fence);
}

void Requests::RaiseFence::on_result(const Call &call, const Answer &answer, Nanos) const {
  Request &request = call.about<Request>();
  if (answer.result == 1) return requests.finish(request, Status::kOk);
  requests.finish(request, Status::kLost, words::loss(LossReason::kGone));
}

// ---- begin run ---------------------------------------------------------------------------------

void Requests::BeginRun::write(protocol::Command &out, TokenRecord &record, Call &call) const {
  const Request &request = call.about<Request>();
  mark_key_ = protocol::mark_key(record.lock->keys);
  const RequestArguments &run = *request.arguments;
  const Nanos asked_at = request.lease->asked_at;
  const Nanos waited = asked_at == 0 ? 0 : std::max<Nanos>(call.sent_at - asked_at, 0);
  protocol::once_begin(out, record.server().features, call.eval, record.lock->keys, mark_key_,
                       record.identity.token,
                       {.text = run.period,
                        .handoff_count = record.held()->handoff_count(),
                        .remembered_ms = run.remembered_for / kMs,
                        .tries = run.tries,
                        .waited_ms = waited / kMs});
}

void Requests::BeginRun::on_result(const Call &call, const Answer &answer, Nanos now) const {
  using protocol::RunAnswer;
  Request &request = call.about<Request>();
  if (!is_held_still(request, answer.result, now)) return;
  const std::string &name = request.lease->name;
  const int64_t left_ms = std::max<int64_t>(answer.ends_ms - answer.server_ms, 0);
  switch (static_cast<RunAnswer>(answer.result)) {
    case RunAnswer::kSucceeded:
      return requests.finish(request, Status::kSkipped, words::has_run(name, left_ms));
    case RunAnswer::kTriesUsed:
      return requests.finish(request, Status::kSkipped,
                             words::tries_used(name, request.arguments->tries, left_ms));
    case RunAnswer::kTooManyTexts:
      return requests.finish(request, Status::kInvalid, words::too_many_periods(name));
    default:
      return requests.finish(request, Status::kOk);
  }
}

}  // namespace redlatch::lock
