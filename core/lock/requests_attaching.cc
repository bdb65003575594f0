// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests: a lease leaves the client of one application for that of another, by DETACH and ATTACH.
//
// From the moment DETACH is sent another client may hold the lock with the same token. So this
// client stops relying on the lease, and never again sends RELEASE, EXTEND or DOWNGRADE for it,
// unless the server has refused the only copy that was sent.
#include "lock/requests.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

// ---- detach ------------------------------------------------------------------------------------

void Requests::Detach::write(protocol::Command &out, TokenRecord &record, Call &call) const {
  if (record.upgrader) {
    requests.leases_.give_up_upgrade(record, Status::kNotHeld, words::kDetachedMeanwhile,
                                     call.sent_at);
  }
  protocol::detach(out, record.server().features, call.eval, record.lock->keys, record.proof(),
                   record.held()->attach_count());
}

void Requests::Detach::on_sent(TokenRecord &record) const {
  if (record.phase == Phase::kDetaching) return;
  requests.locks_.set_phase(record, Phase::kDetaching);
  (void)record.server().confirmations.end(record);
  record.lease->state.store(Lease::kDetached, std::memory_order_release);
  requests.timers_.remove(record);
}

void Requests::Detach::on_result(const Call &call, const Answer &answer, Nanos now) const {
  Request &request = call.about<Request>();
  if (request.lease->record == nullptr) return requests.finish_not_held(request);
  const auto record = request.lease->record->shared_from_this();
  // An earlier copy without an answer may have taken effect, and its mark may be used up.
  const bool is_attached = answer.result == 2 && request.is_unanswered;
  if (answer.result == 1 || is_attached) {
    requests.leases_.end_lease(*record, Lease::kDetached, {});
    requests.leases_.clean_up_detached(*record, now);
    return requests.finish(request, Status::kOk);
  }
  if (request.is_unanswered) {
    return requests.finish(request, Status::kOutcomeUnknown, words::kDetachUnanswered);
  }
  requests.leases_.end_lease(*record, Lease::kLost, LossReason::kGone);
  requests.leases_.clean_up_detached(*record, now);
  requests.finish_not_held(request);
}

// The only copy was refused: the lease is held as before.
void Requests::Detach::on_refused(Request &request, Nanos now) const {
  if (request.is_unanswered) return;
  TokenRecord *record = request.lease->record;
  if (record == nullptr || record->phase != Phase::kDetaching) return;
  requests.locks_.set_phase(*record, Phase::kHeld);
  record->lease->state.store(Lease::kHeld, std::memory_order_release);
  if (record->lease->is_abandoned) return requests.leases_.give_back(*record, nullptr, now);
  requests.leases_.schedule(*record, now);
  requests.leases_.resume_upgrade(*record, now);  // what was put off
}

// @return whether the server may have marked the lease of `request`, which is then left to its ttl.
bool Requests::end_detach(Request &request) noexcept {
  if (!request.is_sent || request.lease->record == nullptr) return false;
  if (request.lease->record->phase != Phase::kDetaching) return false;
  leases_.leave_to_ttl(*request.lease);
  return true;
}

// ---- attach ------------------------------------------------------------------------------------

namespace {

// `permits` outlives it.
protocol::Proof proof_of(const Request &request, std::string &permits) {
  if (request.lock->keys.traits().has_permits) {
    permits = protocol::claim_of(request.options.permits, request.options.limit);
  }
  return {request.arguments->token, permits};
}

}  // namespace

void Requests::Attach::send(Call call) const {
  Request &request = call.about<Request>();
  Server &server = server_of(request);
  RequestArguments &arguments = *request.arguments;
  if (arguments.call.empty()) {
    arguments.call = protocol::make_token(server.channel.cid(), requests.locks_.take_numbers(1));
  }
  call.lease = request.options.ttl;
  std::string permits;
  protocol::Command command;
  protocol::attach(command, server.features, call.eval, request.lock->keys,
                   proof_of(request, permits), call.lease / kMs, arguments.call);
  server.session.send(command, std::move(call));
  request.is_sent = true;
}

void Requests::Attach::on_result(const Call &call, const Answer &answer, Nanos now) const {
  Request &request = call.about<Request>();
  if (answer.result < 1) {
    return requests.finish(request, Status::kNotHeld,
                           words::not_attached(request.name, answer.result != 0));
  }
  const Nanos lease = call.lease;
  const Nanos deadline = timing::deadline_of(call.sent_at, lease);
  if (deadline <= now) {
    return requests.finish(request, Status::kOutcomeUnknown, words::kAttachTooLate);
  }
  // Everything that needs memory comes first: if it fails, the request ends by its time limit.
  request.lease->name = request.name;
  request.lease->token = request.arguments->token;
  const auto lock =
      requests.locks_.find_or_add(request.name, request.options.format, server_of(request));
  TokenRecord &record = requests.locks_.new_record(lock, request);
  record.identity.token = std::move(request.arguments->token);
  const bool is_reader = answer.result == 2;
  record.is_sharing = is_reader || !record.lock->keys.traits().has_extend;
  if (is_reader) record.identity.mode = protocol::Mode::kRead;
  record.acquisition.give(&Acquisition::served);
  requests.locks_.set_phase(record, Phase::kHeld);
  const auto keep = *request.place;
  requests.remove(request);
  const Grant grant{.deadline = deadline,
                    .renewal_at = timing::renewal_of(call.sent_at, lease),
                    .attach_count = answer.attach_count};
  requests.waiters_.give_lease(record, keep, &grant, now);
}

// The attach used up the mark, and its caller has cancelled it or shut the client down: mark the
// lease again.
void Requests::Attach::on_late_answer(const Call &call, const Reply &reply, Nanos now) const {
  Answer answer;
  if (!delays_end(call) || read(call, reply, answer) || answer.result < 1) return;
  const UndoAttach &undo = requests.undo_attach_;
  undo.send({&undo, protocol::EvalMode::kDigest, now, answer.attach_count, call.subject});
}

bool Requests::Attach::delays_end(const Call &call) const {
  const Status status = call.about<Request>().status.load();
  return status == Status::kCancelled || status == Status::kClosed;
}

// Call::lease has the count of ATTACH.
void Requests::UndoAttach::send(Call call) const {
  const Request &request = call.about<Request>();
  std::string permits;
  protocol::Command command;
  protocol::detach(command, server_of(request).features, call.eval, request.lock->keys,
                   proof_of(request, permits), call.lease);
  (void)server_of(request).session.try_send(command, std::move(call));
}

void Requests::UndoAttach::on_unknown_script(const Call &call, Nanos now) const {
  send({this, protocol::EvalMode::kText, now, call.lease, call.subject});
}

}  // namespace redlatch::lock
