// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: requests without a record, each of them a command that is sent until it is answered.
#include <algorithm>
#include <new>

#include "lock/calls.h"

namespace redlatch::lock {

using protocol::EvalMode;

void LockClient::finish_not_held(Request &request) {
  const auto why = request.lease->why_not_held();
  finish_immediate(request, why.status, why.message);
}

void LockClient::finish_immediate(Request &request, Status status,
                                  std::string_view message) noexcept {
  const auto keep = *request.place;
  immediate_.erase(request.place);
  const bool may_be_marked = request.op == Request::Op::kDetach && end_detach(request);
  const bool is_given_up = status == Status::kCancelled || status == Status::kClosed;
  // No other status may say that the lease is held as before.
  if (may_be_marked && !is_given_up) status = Status::kOutcomeUnknown;
  if (request.must_end_lease) leases_.leave_to_ttl(*request.lease);
  if (request.task) request.task->on_end(status);
  finish(request, status, message);
}

// A request that may not wait for long: it gets one attempt to connect and one command_timeout.
void LockClient::start_immediate(const std::shared_ptr<Request> &request, Nanos now) {
  const bool is_connect = request->op == Request::Op::kConnect;
  if (is_connect && session_.is_up()) return finish(*request, Status::kOk);
  if (request->task && !request->task->begin(settings_.name_space, request->name)) {
    return finish(*request, Status::kEnd);
  }
  if (!request->name.empty()) {
    request->lock =
        std::make_shared<LockState>(settings_.name_space, request->name, protocol::Format::kString);
    request->lock->node = node_;
  }
  request->place = immediate_.insert(immediate_.end(), request);
  try {
    Nanos limit = settings_.connect_timeout + settings_.command_timeout;
    if (request->is_about_lease()) limit = settings_.command_timeout;
    if (is_connect || request->op == Request::Op::kCheck) {
      limit = request->wait_ms == 0 ? kNever : request->wait_ms * kMs;
    }
    timers_.set(*request, after(now, limit));
    if (!session_.is_up()) {
      connect_soon(now);
    } else if (may_send(*request)) {
      send_request(request, now);
    }
  } catch (...) {
    timers_.remove(*request);
    immediate_.erase(request->place);
    throw;
  }
}

bool LockClient::may_send(const Request &request) const {
  const LockState *lock = moving_.empty() ? nullptr : lock_of(request);
  return lock == nullptr ? session_.is_up() : is_up(*lock);
}

void LockClient::send_request(const std::shared_ptr<Request> &request, Nanos now, EvalMode eval,
                              protocol::Extent extent) {
  request->is_postponed = false;
  if (request->op == Request::Op::kConnect) return finish_immediate(*request, Status::kOk);
  if (request->op == Request::Op::kCheck) {
    return health_.ask(request, locks_.take_numbers(2), features_, now);
  }
  const Calls::Immediate &kind = calls_->of(request->op);
  kind.send(Call{&kind, eval, now, 0, request, false, extent});
}

const LockClient::Calls::Immediate &LockClient::Calls::of(Request::Op op) const {
  switch (op) {
    case Request::Op::kExtend:
      return prolong;
    case Request::Op::kDowngrade:
      return downgrade;
    case Request::Op::kRaiseFence:
      return raise_fence;
    case Request::Op::kDetach:
      return detach;
    case Request::Op::kAttach:
      return attach;
    case Request::Op::kInspect:
    case Request::Op::kForce:
    case Request::Op::kList:
      return operation;
    default:
      assert(false);
      return operation;
  }
}

// ---- all requests ------------------------------------------------------------------------------

const LockState *LockClient::Calls::OfRequest::lock(const Call &call) const {
  return LockClient::lock_of(call.about<Request>());
}

Request *LockClient::Calls::OfRequest::request(const Call &call) const {
  return &call.about<Request>();
}

void LockClient::Calls::Immediate::on_unknown_script(const Call &call, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return;
  // It is sent by the next connection, or to the node that its slot has moved to. Another node may
  // have answered, while the own connection is down.
  if (!client_.may_send(*request)) return on_not_done(call, now);
  client_.send_request(request, now, EvalMode::kText);
}

void LockClient::Calls::Immediate::on_lost(const Call &call, Nanos) const {
  Request &request = call.about<Request>();
  request.is_unanswered = true;
  if (request.task) request.task->on_lost();
  if (request.is_repeatable() || request.is_finished()) return;
  client_.finish_immediate(request, Status::kOutcomeUnknown, client_.session_.lost().message);
}

void LockClient::Calls::Immediate::on_not_done(const Call &call, Nanos) const {
  Request &request = call.about<Request>();
  if (!request.is_repeatable()) request.is_sent = false;
}

bool LockClient::Calls::Immediate::on_postponed(const Call &call, Nanos retry_at, Nanos now) const {
  Request &request = call.about<Request>();
  if (request.is_finished()) return false;
  on_not_done(call, now);
  request.is_postponed = true;
  client_.resend_at_ = std::min(client_.resend_at_, retry_at);
  return true;
}

void LockClient::Calls::Immediate::ask_again(const Call &call, Nanos now) const {
  if (call.about<Request>().is_finished()) return;
  (void)on_postponed(call, client_.session_.next_retry(now), now);
}

// ---- those that have a task --------------------------------------------------------------------

void LockClient::Calls::Operate::send(Call call) const {
  // It captures no more than a std::function holds without memory.
  call.about<Request>().task->ask(client_.features_, call.eval, [&](protocol::Command &command) {
    client_.session_.send(command, call);
    call.about<Request>().is_sent = true;
  });
}

void LockClient::Calls::Operate::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  const Request &request = call.about<Request>();
  if (request.is_finished()) return;
  const auto step = request.task->on_answer(reply);
  client_.note_time(call.sent_at, now, step.server_ms);
  carry_out(call, step, now);
}

void LockClient::Calls::Operate::carry_out(const Call &call, const operate::Operation::Step &step,
                                           Nanos now) const {
  using Next = operate::Operation::Next;
  const auto request = call.shared<Request>();
  const auto &[status, message] = step.outcome;
  if (step.next == Next::kWait) return;
  if (step.next == Next::kStep) {
    client_.timers_.set(*request, after(now, client_.settings_.command_timeout));
  }
  if (step.next == Next::kStep || step.next == Next::kAgain) {
    return send(Call{this, EvalMode::kDigest, now, 0, request});
  }
  if (step.next == Next::kNames && client_.name_clients(request, now)) return;
  if (step.has_more) {
    try {
      const auto lock = std::make_shared<LockState>(client_.settings_.name_space, request->name,
                                                    request->task->format());
      client_.maybe_serve_queue(lock, true, now);
    } catch (const std::bad_alloc &) {
      // The next poll of any waiter does the same.
    }
  }
  if (status == Status::kEnd && client_.output_.continues_list(request)) {
    return client_.take_out(*request);
  }
  client_.finish_immediate(*request, status, message);
}

// ---- health ------------------------------------------------------------------------------------

void LockClient::check_later(size_t, Nanos due) {
  if (!is_shut_) health_.check_at(due);
}

void LockClient::on_health(const protocol::HealthFacts &facts, const protocol::LockTrial *trial) {
  output_.health_found(node_, facts, trial);
}

void LockClient::on_health_answered(const std::shared_ptr<void> &asker) {
  auto &request = *static_cast<Request *>(asker.get());
  if (!request.is_finished()) finish_immediate(request, Status::kOk);
}

// A request that may wait asks again on the next connection.
void LockClient::on_health_lost(const std::shared_ptr<void> &asker) {
  auto &request = *static_cast<Request *>(asker.get());
  if (request.wait_ms != 0 || request.is_finished()) return;
  finish_immediate(request, session_.lost().status, session_.lost().message);
}

// ---- those about a lease -----------------------------------------------------------------------

void LockClient::Calls::OfLease::send(Call call) const {
  Request &request = call.about<Request>();
  TokenRecord *record = request.lease->record;
  const bool is_repeated = request.op == Request::Op::kDetach && request.is_sent;
  const bool is_held = record != nullptr && (record->phase == Phase::kHeld || is_repeated);
  if (!is_held) return client_.finish_not_held(request);
  protocol::Command command;
  write(command, *record, call);
  call.lock = record->lock;
  client_.session_.send(command, std::move(call));
  request.is_sent = true;
  on_sent(*record);
}

void LockClient::Calls::OfLease::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return on_late_answer(call, reply, now);
  Answer answer;
  if (const auto refusal = read(call, reply, answer)) {
    const auto &name = request->lease ? request->lease->name : request->name;
    on_refused(*request, now);
    client_.finish_immediate(*request, refusal.status(), refusal_message(name, refusal));
    return client_.leases_.roll_back_downgrade(*request, now);
  }
  if (!call.is_delegated) client_.note_time(call.sent_at, now, answer.server_ms);
  on_result(call, answer, now);
}

// For an answer about a lease. Otherwise the request is finished with the reason.
bool LockClient::Calls::OfLease::is_held_still(Request &request, int64_t result, Nanos now) const {
  TokenRecord *record = request.lease->record;
  if (record != nullptr && record->phase == Phase::kHeld) {
    if (record->held()->is_over(now)) {
      client_.on_record_due(*record, now);
    } else if (result < 1) {
      client_.leases_.lose(*record, loss_by(result), true, now);
    } else {
      return true;
    }
  }
  client_.finish_not_held(request);
  return false;
}

void LockClient::Calls::RaiseFence::write(protocol::Command &out, TokenRecord &record,
                                          Call &call) const {
  protocol::raise_fence(out, client_.features_, call.eval, record.lock->keys, record.identity.token,
                        call.about<Request>().arguments->fence);
}

void LockClient::Calls::RaiseFence::on_result(const Call &call, const Answer &answer, Nanos) const {
  Request &request = call.about<Request>();
  if (answer.result == 1) return client_.finish_immediate(request, Status::kOk);
  client_.finish_immediate(request, Status::kLost, kGone.text);
}

}  // namespace redlatch::lock
