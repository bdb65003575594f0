// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: extend, downgrade and release of a lease that is held, and local hand-offs.
#include "base/text.h"
#include "lock/calls.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

// ---- held --------------------------------------------------------------------------------------

void LockClient::on_record_due(TokenRecord &record, Nanos now) {
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      return record.front() == nullptr ? cleanups_.start(record, now) : waiters_.ask(record, now);
    case Phase::kCleanup:
      return cleanups_.on_due(record, now);
    case Phase::kDetaching:
      return;  // the answer, or the end of the request, decides
    case Phase::kHeld:
      return leases_.on_due(record, now);
  }
}

void LockClient::start_extend(const std::shared_ptr<Request> &request, Nanos now) {
  if (!leases_.is_held(*request, now)) return;
  const bool is_rw_hash = request->lease->record->lock->keys.format == protocol::Format::kHashRw;
  if (is_rw_hash && request->extend_to > kMaxHashRwTtlMs * kMs) {
    return finish(*request, Status::kInvalid,
                  "ttl must be " + std::to_string(kMinTtlMs) + " ms to " +
                      in_seconds(kMaxHashRwTtlMs) + " with the format hash-rw (got " +
                      std::to_string(request->extend_to / kMs) + " ms)");
  }
  start_immediate(request, now);
}

void LockClient::start_downgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!leases_.is_held(*request, now)) return;
  TokenRecord &record = *request->lease->record;
  if (record.lock->keys.format == protocol::Format::kHash) {
    return finish(*request, Status::kInvalid,
                  "lock " + quoted(record.lock->name) +
                      " must be a read-write lock (got a reentrant one, which has no readers)");
  }
  if (record.identity.mode == protocol::Mode::kRead) return finish(*request, Status::kOk);
  leases_.finish_upgrade(record, Status::kCancelled, "downgraded meanwhile");
  (void)record.ensure_upgrade();  // should it fail, it is rolled back, which must not need memory
  record.is_sharing = true;
  record.held().give(&HeldLease::on_downgrade);
  start_immediate(request, now);
  // From here on it is only certain that it reads; readers may enter before the answer comes.
  if (record.lease) record.become_reader();
}

void LockClient::Calls::Prolong::write(protocol::Command &out, TokenRecord &record,
                                       Call &call) const {
  call.lease = call.about<Request>().extend_to;
  if (call.extent == protocol::Extent::kAll) {
    client_.leases_.write_extend(out, record, call.lease, call.eval, nullptr);
  } else {
    client_.leases_.write_extend_part(out, record, call.lease, call.eval, call.extent);
  }
}

void LockClient::Calls::Prolong::extend_lock_key(const Call &call, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return;
  client_.send_request(request, now, call.eval, protocol::Extent::kLock);
}

protocol::Refusal LockClient::Calls::Prolong::read(const Call &call, const Reply &reply,
                                                   Answer &answer) const {
  return Leases::read_extension(call, reply, answer);
}

void LockClient::Calls::Prolong::on_result(const Call &call, const Answer &answer,
                                           Nanos now) const {
  Request &request = call.about<Request>();
  if (client_.leases_.extend_next_part(call, answer, now)) return;
  if (!is_held_still(request, answer.result, now)) return;
  TokenRecord &record = *request.lease->record;
  const auto step = record.held().give(&HeldLease::change_ttl, call.sent_at, request.extend_to, now,
                                       client_.entropy_.next());
  client_.leases_.schedule(record, now);
  client_.leases_.send_extend(record, step, now);
  if (record.phase != Phase::kHeld) return client_.finish_not_held(request);  // a defect was met
  if (!record.held()->is_over(now)) return client_.finish_immediate(request, Status::kOk);
  client_.leases_.lose(
      record, {LossReason::kExpired, "the answer to an extension came after the lease had ended"},
      false, now);
  client_.finish_not_held(request);
}

void LockClient::Calls::Downgrade::write(protocol::Command &out, TokenRecord &record,
                                         Call &call) const {
  const Checked<HeldLease> &held = record.held();
  call.lease = timing::lease_within(held->ttl(), call.sent_at, held->end_at());
  protocol::downgrade(out, client_.features_, call.eval, record.lock->keys, record.identity.token,
                      call.lease / kMs, held->granted_fence());
}

void LockClient::Calls::Downgrade::on_result(const Call &call, const Answer &answer,
                                             Nanos now) const {
  Request &request = call.about<Request>();
  if (!is_held_still(request, answer.result, now)) return;
  client_.leases_.prolong(*request.lease->record, call.sent_at, call.lease, now);
  client_.finish_immediate(request, Status::kOk);
}

// ---- the end -----------------------------------------------------------------------------------

void LockClient::start_release(const std::shared_ptr<Request> &request, Nanos now) {
  if (!leases_.is_held(*request, now)) return;
  TokenRecord &record = *request->lease->record;
  if (waiters_.hand_off_locally(record, now)) return finish(*request, Status::kOk);
  leases_.give_back(record, request, now);
}

void LockClient::drop(Lease &lease, Nanos now) {
  if (lease.record == nullptr) return;
  const auto record = lease.record->shared_from_this();
  leases_.end_lease(*record, Lease::kDetached, {});
  cleanups_.give_up_vacant_place(*record->lock, now);
  locks_.forget(*record);
}

void LockClient::release_async(Lease &lease, Nanos now) {
  if (lease.record == nullptr) return;
  if (lease.record->phase == Phase::kDetaching) {
    lease.is_abandoned = true;  // the answer decides: Detach::on_refused()
    return;
  }
  if (now < lease.deadline.load() && waiters_.hand_off_locally(*lease.record, now)) return;
  leases_.give_back(*lease.record, nullptr, now);
}

void LockClient::release_after_notice(Lease &lease, Nanos now) {
  if (lease.record == nullptr || lease.record->phase == Phase::kDetaching) return;
  leases_.lose(*lease.record, {}, false, now);
}

}  // namespace redlatch::lock
