// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: release of a lease that is held, and local hand-offs.
#include "lock/lock_client.h"

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
