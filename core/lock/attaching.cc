// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: a lease goes from one client to another, by DETACH and ATTACH.
//
// From the moment DETACH is sent another client may hold the lock with the same token. So this
// client stops relying on the lease, and never again sends RELEASE, EXTEND or DOWNGRADE for it,
// unless the server has refused the only copy that was sent.
#include "base/text.h"
#include "lock/calls.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

void LockClient::start_detach(const std::shared_ptr<Request> &request, Nanos now) {
  if (is_held(*request, now)) start_immediate(request, now);
}

void LockClient::on_detach_sent(TokenRecord &record) {
  if (record.phase == Phase::kDetaching) return;
  locks_.set_phase(record, Phase::kDetaching);
  (void)confirmations_.end(record);
  record.lease->state.store(Lease::kDetached, std::memory_order_release);
  timers_.remove(record);
}

void LockClient::on_detach_reply(Request &request, int64_t result, Nanos now) {
  if (request.lease->record == nullptr) {
    return finish_not_held(request);
  }
  const auto record = request.lease->record->shared_from_this();
  // An earlier copy without an answer may have taken effect, and its mark may be used up.
  const bool is_attached = result == 2 && request.is_unanswered;
  if (result == 1 || is_attached) {
    end_lease(*record, Lease::kDetached, {});
    clean_up_detached(*record, now);
    return finish_immediate(request, Status::kOk);
  }
  if (request.is_unanswered) {
    return finish_immediate(request, Status::kOutcomeUnknown,
                            "the connection broke while the lease was detached: it may have been "
                            "detached, attached elsewhere and ended since");
  }
  end_lease(*record, Lease::kLost, kGone);
  clean_up_detached(*record, now);
  finish_not_held(request);
}

// The only copy was refused: the lease is held as before.
void LockClient::on_detach_refused(Request &request, Nanos now) {
  if (request.op != Request::Op::kDetach || request.is_unanswered) return;
  TokenRecord *record = request.lease->record;
  if (record == nullptr || record->phase != Phase::kDetaching) return;
  locks_.set_phase(*record, Phase::kHeld);
  record->lease->state.store(Lease::kHeld, std::memory_order_release);
  if (record->lease->is_abandoned) return give_back(*record, nullptr, now);
  schedule(*record, now);
  resume_upgrade(*record, now);  // what was put off
}

// @return whether the server may have marked the lease of `request`, which is then left to its ttl.
bool LockClient::end_detach(Request &request) noexcept {
  if (!request.is_sent || request.lease->record == nullptr) return false;
  if (request.lease->record->phase != Phase::kDetaching) return false;
  leave_to_ttl(*request.lease);
  return true;
}

void LockClient::leave_to_ttl(Lease &lease) noexcept {
  if (lease.record == nullptr) return;
  const auto record = lease.record->shared_from_this();
  end_lease(*record, Lease::kDetached, {});
  locks_.forget(*record);
}

// The lease has ended for this client. A poll that crossed the grant may have queued its token
// again.
void LockClient::clean_up_detached(TokenRecord &record, Nanos now) {
  cleanups_.give_up_vacant_place(*record.lock, now);
  if (!record.acquisition->may_be_queued()) return locks_.forget(record);
  cleanups_.start(record, now);
}

// The attach used up the mark, and its caller has cancelled it or shut the client down: mark the
// lease again. If no answer comes, the lease ends with its ttl.
void LockClient::undo_attach(const std::shared_ptr<Request> &request, int64_t attach_count,
                             Nanos now, protocol::EvalMode eval) {
  protocol::Command command;
  protocol::detach(command, features_, eval, request->lock->keys, {request->arguments->token, {}},
                   attach_count);
  (void)session_.try_send(command, Call{&calls_->undo_attach, eval, now, attach_count, request});
}

void LockClient::on_attached(Request &request, const Call &call,
                             const protocol::CountAnswer &answer, Nanos now) {
  if (answer.result < 1) {
    const char *why = answer.result == 0 ? " is not held by that token"
                                         : " is held by that token, which was not detached: only "
                                           "its holder can detach it";
    return finish_immediate(request, Status::kNotHeld, "lock " + quoted(request.name) + why);
  }
  const Nanos lease = call.lease;
  const Nanos deadline = timing::deadline_of(call.sent_at, lease);
  if (deadline <= now) {
    return finish_immediate(request, Status::kOutcomeUnknown,
                            "the answer came after the lease had ended");
  }
  // Everything that needs memory comes first: if it fails, the request ends by its time limit.
  request.lease->name = request.name;
  request.lease->token = request.arguments->token;
  const auto lock = locks_.name_of(request.name, protocol::Format::kString);
  TokenRecord &record = locks_.new_record(lock, request, channel_.cid());
  record.identity.token = std::move(request.arguments->token);
  record.is_sharing = answer.result == 2;
  if (record.is_sharing) record.identity.mode = protocol::Mode::kRead;
  record.acquisition.give(&Acquisition::served);
  locks_.set_phase(record, Phase::kHeld);
  const auto keep = *request.place;
  immediate_.erase(request.place);
  const Grant grant{.deadline = deadline,
                    .renewal_at = timing::renewal_of(call.sent_at, lease),
                    .attach_count = answer.attach_count};
  give_lease(record, keep, &grant, now);
}

}  // namespace redlatch::lock
