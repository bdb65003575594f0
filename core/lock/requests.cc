// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests: the list of them, and those that have a task.
#include "lock/requests.h"
#include "lock/term.h"

#include <new>
#include <utility>

namespace redlatch::lock {

using protocol::EvalMode;

// `action` may finish its request, and no other.
template <class Action>
void Requests::for_each(const Action &action) {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto request = *at++;
    action(request);
  }
}

// ---- from a call to its end --------------------------------------------------------------------

void Requests::start(const std::shared_ptr<Request> &request, Nanos now) {
  switch (request->op) {
    case Request::Op::kExtend:
      return start_extend(request, now);
    case Request::Op::kDowngrade:
      return start_downgrade(request, now);
    case Request::Op::kDetach:
      if (leases_.is_held(*request, now) && may_leave(*request, results_)) begin(request, now);
      return;
    case Request::Op::kBeginRun:
      if (leases_.is_held(*request, now) && leases_.may_run(*request)) begin(request, now);
      return;
    default:
      return begin(request, now);
  }
}

// A request that may not wait for long: it gets one attempt to connect and one command_timeout.
void Requests::begin(const std::shared_ptr<Request> &request, Nanos now) {
  Server &server = server_of(*request);
  request->server = &server;
  const bool is_connect = request->op == Request::Op::kConnect;
  if (is_connect && server.session.is_up()) return results_.finish(*request, Status::kOk);
  if (auto *recall = request->task ? request->task->as_recall() : nullptr;
      recall != nullptr && recalls_.take_recent(request->name, now, recall->heard)) {
    return results_.finish(*request, Status::kOk);
  }
  if (request->task && !request->task->begin(settings_.name_space, request->name)) {
    return results_.finish(*request, Status::kEnd);
  }
  if (!request->name.empty()) {
    request->lock = std::make_shared<LockState>(server, request->name, request->options.format);
  }
  request->place = open_.insert(open_.end(), request);
  server.request_count++;
  try {
    Nanos limit = settings_.connect_timeout + settings_.command_timeout;
    if (request->is_about_lease()) limit = settings_.command_timeout;
    if (is_connect || request->op == Request::Op::kCheck) {
      limit = request->wait_ms == 0 ? kNever : request->wait_ms * kMs;
    }
    if (request->is_of_observer()) limit = kNever;
    timers_.set(*request, after(now, limit));
    if (!server.session.is_up()) {
      if (!request->is_of_observer()) server.session.connect_soon(now);
    } else if (may_send(*request)) {
      send(request, now);
    }
  } catch (...) {
    timers_.remove(*request);
    remove(*request);
    throw;
  }
}

bool Requests::may_send(const Request &request) const {
  const LockState *lock = lock_of(request);
  return lock == nullptr ? request.server->session.is_up() : redirects_.is_up(*lock);
}

void Requests::send(const std::shared_ptr<Request> &request, Nanos now, EvalMode eval,
                    protocol::Extent extent) {
  request->is_postponed = false;
  if (request->op == Request::Op::kConnect) return finish(*request, Status::kOk);
  if (request->op == Request::Op::kCheck) {
    const Server &server = *request->server;
    return request->server->health.ask(request, locks_.take_numbers(2), server.features, now);
  }
  const Repeated &kind = kind_for(request->op);
  kind.send(Call{&kind, eval, now, 0, request, false, extent});
}

const Requests::Repeated &Requests::kind_for(Request::Op op) const {
  switch (op) {
    case Request::Op::kExtend:
      return prolong_;
    case Request::Op::kDowngrade:
      return downgrade_;
    case Request::Op::kRaiseFence:
      return raise_fence_;
    case Request::Op::kBeginRun:
      return begin_run_;
    case Request::Op::kDetach:
      return detach_;
    case Request::Op::kAttach:
      return attach_;
    case Request::Op::kOperate:
      return operate_;
    default:
      assert(false);
      return operate_;
  }
}

void Requests::finish(Request &request, Status status, std::string_view message) noexcept {
  const auto keep = *request.place;
  remove(request);
  const bool may_be_marked = request.op == Request::Op::kDetach && end_detach(request);
  const bool is_given_up = status == Status::kCancelled || status == Status::kClosed;
  // No other status may say that the lease is held as before.
  if (may_be_marked && !is_given_up) status = Status::kOutcomeUnknown;
  const bool must_end = request.arguments && request.arguments->must_end_lease;
  if (must_end) leases_.leave_to_ttl(*request.lease);
  if (request.task) request.task->on_end(status);
  results_.finish(request, status, message);
}

void Requests::finish_not_held(Request &request) {
  const auto why = request.lease->why_not_held();
  finish(request, why.status, why.message);
}

void Requests::give_up(Request &request, Status status, std::string_view message, Nanos now) {
  const auto keep = *request.place;
  finish(request, status, message);
  leases_.roll_back_downgrade(request, now);
}

void Requests::fail_all(const Server &server, Status status, std::string_view message) {
  for_each([&](const std::shared_ptr<Request> &request) {
    if (request->server == &server) finish(*request, status, message);
  });
}

Outcome Requests::why_late(const Request &request) const noexcept {
  const Server &server = server_of(request);
  if (!request.is_sent && !server.session.is_up()) return copy_of(server.session.failure());
  if (request.is_postponed && !request.is_unanswered && !request.is_about_lease()) {
    return {Status::kUnavailable, words::slot_not_served(request.name, server.settings)};
  }
  return {Status::kOutcomeUnknown, words::unanswered(server.settings)};
}

// ---- the connection, and the time --------------------------------------------------------------

void Requests::on_connected(const Server &server, Nanos now) {
  for_each([&](const std::shared_ptr<Request> &request) {
    if (request->server != &server) return;
    const bool is_done = !request->is_repeatable() && request->is_sent;
    if (!is_done && may_send(*request)) send(request, now);
  });
}

void Requests::on_connect_failed(const Server &server, const Outcome &why) {
  for_each([&](const std::shared_ptr<Request> &request) {
    if (request->server != &server) return;
    const bool has_wait =
        request->op == Request::Op::kConnect || request->op == Request::Op::kCheck;
    if (request->is_about_lease() || (has_wait && request->wait_ms != 0)) return;
    if (request->is_of_observer()) return;
    finish(*request, request->is_sent ? Status::kOutcomeUnknown : why.status, why.message);
  });
}

void Requests::resend_postponed(Server &server, Nanos now) {
  server.resend_at = kNever;
  if (!server.session.is_up()) return;      // the next connection sends them all
  server.resend_at = now + kNoMemoryRetry;  // should it fail
  for_each([&](const std::shared_ptr<Request> &request) {
    if (request->server != &server) return;
    if (std::exchange(request->is_postponed, false) && may_send(*request)) send(request, now);
  });
  server.resend_at = kNever;
}

// ---- from one server to another ----------------------------------------------------------------

void Requests::add_slots(Moves &slots) const {
  for (const auto &request : open_) {
    const LockState *lock = lock_of(*request);
    if (lock != nullptr) slots.emplace(lock->slot(), lock->server);
  }
}

void Requests::move(const Moves &moves) noexcept {
  for (const auto &request : open_) {
    const LockState *lock = lock_of(*request);
    const auto found = lock == nullptr ? moves.end() : moves.find(lock->slot());
    if (found == moves.end() || request->server == found->second) continue;
    request->server->request_count--;
    found->second->request_count++;
    request->server = found->second;
    if (request->lock) request->lock->server = found->second;
  }
}

void Requests::remove(Request &request) noexcept {
  request.server->request_count--;
  open_.erase(request.place);
}

void Requests::take_out(Request &request) noexcept {
  const auto keep = *request.place;
  remove(request);
  timers_.remove(request);
  timers_.dismiss();
  request.is_sent = false;
}

std::shared_ptr<Request> Requests::take_request(const Server &server) {
  for (const auto &request : open_) {
    if (lock_of(*request) != nullptr || request->server != &server) continue;
    const auto taken = request;
    take_out(*taken);
    return taken;
  }
  return nullptr;
}

void Requests::resume(const Moves &moves, Nanos now) {
  for_each([&](const std::shared_ptr<Request> &request) {
    const LockState *lock = lock_of(*request);
    if (lock != nullptr && moves.contains(lock->slot()) && may_send(*request)) send(request, now);
  });
}

// ---- all calls ---------------------------------------------------------------------------------

const LockState *Requests::Kind::lock(const Call &call) const {
  return lock::lock_of(call.about<Request>());
}

void Requests::Repeated::on_unknown_script(const Call &call, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return;
  // It is sent by the next connection, or to the node that its slot has moved to. Another node may
  // have answered, while the own connection is down.
  if (!requests.may_send(*request)) return on_not_done(call, now);
  requests.send(request, now, EvalMode::kText);
}

void Requests::Repeated::on_lost(const Call &call, Nanos) const {
  Request &request = call.about<Request>();
  request.is_unanswered = true;
  if (request.task) request.task->on_lost();
  if (request.is_repeatable() || request.is_finished()) return;
  requests.finish(request, Status::kOutcomeUnknown, server_of(request).session.lost().message);
}

void Requests::Repeated::on_not_done(const Call &call, Nanos) const {
  Request &request = call.about<Request>();
  if (!request.is_repeatable()) request.is_sent = false;
}

bool Requests::Repeated::on_postponed(const Call &call, Nanos retry_at, Nanos now) const {
  Request &request = call.about<Request>();
  if (request.is_finished()) return false;
  on_not_done(call, now);
  request.is_postponed = true;
  Nanos &resend_at = request.server->resend_at;
  resend_at = std::min(resend_at, retry_at);
  return true;
}

void Requests::Repeated::ask_again(const Call &call, Nanos now) const {
  if (call.about<Request>().is_finished()) return;
  (void)on_postponed(call, server_of(call).session.next_retry(now), now);
}

// ---- inspect, list and force -------------------------------------------------------------------

void Requests::Operate::send(Call call) const {
  Request &request = call.about<Request>();
  // It captures no more than a std::function holds without memory.
  request.task->ask(server_of(request).features, call.eval, [&](protocol::Command &command) {
    server_of(request).session.send(command, call);
    request.is_sent = true;
  });
}

void Requests::Operate::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  const Request &request = call.about<Request>();
  if (request.is_finished()) return;
  const auto step = request.task->on_answer(reply);
  requests.leases_.note_time(server_of(request), call.sent_at, now, step.server_ms);
  carry_out(call, step, now);
}

void Requests::Operate::carry_out(const Call &call, const operate::Operation::Step &step,
                                  Nanos now) const {
  using Next = operate::Operation::Next;
  const auto request = call.shared<Request>();
  const auto &[status, message] = step.outcome;
  if (step.next == Next::kWait) return;
  if (step.next == Next::kStep) {
    requests.timers_.set(*request, after(now, requests.settings_.command_timeout));
  }
  if (step.next == Next::kStep || step.next == Next::kAgain) {
    if (!requests.may_send(*request)) return;  // its slot moves: resume() sends it to the new node
    return send(Call{this, EvalMode::kDigest, now, 0, request});
  }
  if (step.next == Next::kNames && requests.name_clients(request, now)) return;
  if (step.has_more) {
    try {
      const auto lock =
          std::make_shared<LockState>(server_of(*request), request->name, request->task->format());
      requests.cleanups_.serve_queue(lock, now);
    } catch (const std::bad_alloc &) {
      // The next poll of any waiter does the same.
    }
  }
  if (status == Status::kEnd && requests.redirects_.continues_list(request)) {
    return requests.take_out(*request);
  }
  if (auto *recall = request->task->as_recall(); recall != nullptr && status == Status::kOk) {
    requests.recalls_.note(request->name, now, recall->heard);
  }
  requests.finish(*request, status, message);
}

bool Requests::Operate::on_left(const Call &call, Nanos now) const {
  const Request &request = call.about<Request>();
  if (request.is_finished()) return false;
  const auto step = request.task->on_left();
  if (step) carry_out(call, *step, now);
  return step.has_value();
}

// @return whether the answer to an inspection waits for names.
bool Requests::name_clients(const std::shared_ptr<Request> &request, Nanos now) {
  auto &inspection = request->as<operate::Inspect>();
  Server &server = server_of(*request);
  inspection.unnamed_count = 0;
  for (auto &cid : inspection.clients()) {
    if (cid == server.channel.cid()) {
      inspection.name_client(cid, settings_.holder);
      continue;
    }
    auto query = std::make_shared<NameQuery>();
    query->cid = std::move(cid);
    query->request = request;
    if (server.names.ask(std::move(query), now)) inspection.unnamed_count++;
  }
  return inspection.unnamed_count > 0;
}

void Requests::on_name(Request &inspection, std::string_view cid, std::string_view name) noexcept {
  auto &task = inspection.as<operate::Inspect>();
  try {
    task.name_client(cid, name);
  } catch (const std::bad_alloc &) {
    // The name stays unknown.
  }
  if (!inspection.is_finished() && --task.unnamed_count == 0) finish(inspection, Status::kOk);
}

// ---- health ------------------------------------------------------------------------------------

void Requests::on_health_answered(const std::shared_ptr<void> &asker) {
  auto &request = *static_cast<Request *>(asker.get());
  if (!request.is_finished()) finish(request, Status::kOk);
}

// A request that may wait asks again on the next connection.
void Requests::on_health_lost(const std::shared_ptr<void> &asker) {
  auto &request = *static_cast<Request *>(asker.get());
  if (request.wait_ms != 0 || request.is_finished()) return;
  const Outcome &lost = request.server->session.lost();
  finish(request, lost.status, lost.message);
}

}  // namespace redlatch::lock
