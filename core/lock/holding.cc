// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: from the grant to the end.
#include "base/text.h"
#include "lock/calls.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

// ---- held --------------------------------------------------------------------------------------

// Set the lease's deadline and the record's timer from what is known now.
void LockClient::schedule(TokenRecord &record, Nanos now) {
  Lease &lease = *record.lease;
  const Nanos end = record.held()->deadline();
  lease.deadline.store(end, std::memory_order_release);
  const Nanos due = std::min(record.held()->due(is_up(*record.lock)), record.upgrade_due());
  timers_.set(record, std::min(std::max(now, due), end));
  output_.lease_moved(lease);
}

void LockClient::write_extend(protocol::Command &out, const TokenRecord &record, Nanos lease,
                              protocol::EvalMode eval, const protocol::HolderInfo *info) const {
  if (record.is_sharing) {
    return protocol::extend_shared(out, features_, eval, record.lock->keys, record.proof(),
                                   lease / kMs, record.held()->attach_count() > 0);
  }
  protocol::extend(out, features_, eval, record.lock->keys, record.identity.token, lease / kMs,
                   record.held()->is_described() || info != nullptr, info);
}

void LockClient::write_extend_part(protocol::Command &out, const TokenRecord &record, Nanos lease,
                                   protocol::EvalMode eval, protocol::Extent extent) {
  const auto &keys = record.lock->keys;
  if (extent == protocol::Extent::kReaderKey) {
    reader_key_ = protocol::reader_key(keys, record.identity.token);
    return protocol::extend_reader_key(out, reader_key_, lease / kMs);
  }
  const bool is_lock = extent == protocol::Extent::kLock;
  if (!record.is_sharing) {
    return protocol::extend_alone(out, features_, eval, keys, record.identity.token, lease / kMs);
  }
  const auto part = is_lock ? protocol::Part::kLock : protocol::Part::kReaders;
  protocol::extend_shared_alone(out, features_, eval, keys, {part, record.proof(), lease / kMs});
}

void LockClient::send_extend(TokenRecord &record, const HeldLease::Step &step, Nanos now,
                             protocol::EvalMode eval, protocol::Extent extent) {
  assert(step.transition != HeldLease::Transition::kDefect);
  if (step.transition == HeldLease::Transition::kDefect) {
    return lose(record, {LossReason::kDefect, std::string(report_defect("held lease"))}, false,
                now);
  }
  if (step.command == HeldLease::Command::kNone) return;
  const protocol::HolderInfo info{settings_.holder, record.held()->label(),
                                  record.held()->since_ms()};
  protocol::Command command;
  if (extent == protocol::Extent::kAll) {
    write_extend(command, record, step.ttl, eval, step.is_description ? &info : nullptr);
  } else {
    write_extend_part(command, record, step.ttl, eval, extent);
  }
  const bool is_sent =
      session_.try_send(command, Call{&calls_->extend, eval, now, step.ttl,
                                      record.shared_from_this(), step.is_description, extent});
  if (is_sent) {
    record.held().give(&HeldLease::sent, step.is_description);
  } else {
    record.held().give(&HeldLease::not_sent, now);
  }
  schedule(record, now);
}

void LockClient::on_extend_reply(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *extended = record.held_lease();
  if (extended != nullptr) extended->give(&HeldLease::on_answered);
  protocol::CountAnswer answer;
  const auto refusal = read_extension(call, reply, answer);
  if (!refusal && extend_next_part(call, answer, now)) return;
  if (!refusal && !call.is_delegated) note_time(call.sent_at, now, answer.server_ms);
  if (record.is_gone || record.phase != Phase::kHeld) return;
  Checked<HeldLease> &held = record.held();
  // Callers were notified that it is lost: an answer that comes later does not bring it back.
  if (held->is_over(now)) return on_record_due(record, now);
  if (refusal) {
    record.trouble = refusal.message;
    // A description that is refused for good is not sent again: the lease does not depend on it.
    const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
    held.give(&HeldLease::on_refused, call.is_description && may_pass, now);
    return schedule(record, now);
  }
  if (answer.result < 1) return lose(record, loss_by(answer.result), true, now);
  note_mode(record, answer.result == 2, now);
  record.trouble.clear();
  const auto step = held.give(&HeldLease::on_confirmed,
                              {call.sent_at, call.lease, answer.server_ms, call.is_description},
                              now, is_up(*record.lock), entropy_.next());
  confirmations_.repeat(record);
  schedule(record, now);
  send_extend(record, step, now);
}

// The server has confirmed `lease` to a message sent at `sent_at`.
void LockClient::prolong(TokenRecord &record, Nanos sent_at, Nanos lease, Nanos now) {
  const auto step = record.held().give(&HeldLease::prolong, sent_at, lease, now, entropy_.next());
  schedule(record, now);
  send_extend(record, step, now);
}

void LockClient::on_record_due(TokenRecord &record, Nanos now) {
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      return record.front() == nullptr ? cleanups_.start(record, now) : ask(record, now);
    case Phase::kCleanup:
      return cleanups_.on_due(record, now);
    case Phase::kDetaching:
      return;  // the answer, or the end of the request, decides
    case Phase::kHeld:
      break;
  }
  if (!record.held()->is_over(now)) {
    timers_.set(record, record.held()->deadline());
    const bool is_upgrade_due = record.upgrade_due() <= now;
    if (is_upgrade_due) resume_upgrade(record, now);
    const bool is_renewal_due = !is_upgrade_due || record.held()->renewal_at() <= now;
    if (is_renewal_due) send_extend(record, record.held()->on_due(now, is_up(*record.lock)), now);
    return;
  }
  timers_.set(record, now + 10 * kMs);  // should the end fail for want of memory
  lose(record, why_over(record, now), false, now);
}

// A watch is notified of the end even without memory for the reason.
Loss LockClient::why_over(const TokenRecord &record, Nanos now) const noexcept {
  try {
    if (now >= record.held()->end_at()) return {LossReason::kMaxHold, "max_hold was reached"};
    std::string reason = "the lease ended before a renewal was confirmed";
    if (!record.held()->is_renewed()) reason = "the lease ended, and renewal is off";
    if (!record.trouble.empty()) reason += ": " + record.trouble;
    if (!session_.is_up()) reason += ": " + session_.failure().message;
    return {LossReason::kExpired, std::move(reason)};
  } catch (const std::bad_alloc &) {
    return {LossReason::kExpired, "the lease ended"};  // short: this needs no memory
  }
}

void LockClient::start_extend(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  const bool is_rw_hash = request->lease->record->lock->keys.format == protocol::Format::kHashRw;
  if (is_rw_hash && request->extend_to > kMaxHashRwTtlMs * kMs) {
    return finish(*request, Status::kInvalid,
                  "ttl must be " + std::to_string(kMinTtlMs) + " ms to " +
                      in_seconds(kMaxHashRwTtlMs) + " with the format hash-rw (got " +
                      std::to_string(request->extend_to / kMs) + " ms)");
  }
  start_immediate(request, now);
}

void LockClient::Calls::Prolong::write(protocol::Command &out, TokenRecord &record,
                                       Call &call) const {
  call.lease = call.about<Request>().extend_to;
  if (call.extent == protocol::Extent::kAll) {
    client_.write_extend(out, record, call.lease, call.eval, nullptr);
  } else {
    client_.write_extend_part(out, record, call.lease, call.eval, call.extent);
  }
}

void LockClient::Calls::Prolong::extend_lock_key(const Call &call, Nanos now) const {
  const auto request = call.shared<Request>();
  if (request->is_finished()) return;
  client_.send_request(request, now, call.eval, protocol::Extent::kLock);
}

protocol::Refusal LockClient::Calls::Prolong::read(const Call &call, const Reply &reply,
                                                   Answer &answer) const {
  return read_extension(call, reply, answer);
}

void LockClient::Calls::Prolong::on_result(const Call &call, const Answer &answer,
                                           Nanos now) const {
  Request &request = call.about<Request>();
  if (client_.extend_next_part(call, answer, now)) return;
  if (!is_held_still(request, answer.result, now)) return;
  TokenRecord &record = *request.lease->record;
  const auto step = record.held().give(&HeldLease::change_ttl, call.sent_at, request.extend_to, now,
                                       client_.entropy_.next());
  client_.schedule(record, now);
  client_.send_extend(record, step, now);
  if (record.phase != Phase::kHeld) return client_.finish_not_held(request);  // a defect was met
  if (!record.held()->is_over(now)) return client_.finish_immediate(request, Status::kOk);
  client_.lose(record,
               {LossReason::kExpired, "the answer to an extension came after the lease had ended"},
               false, now);
  client_.finish_not_held(request);
}

// ---- the end -----------------------------------------------------------------------------------

// True if the lease that `request` is about is still held; if not, the request is finished with
// why.
bool LockClient::is_held(Request &request, Nanos now) {
  Lease &lease = *request.lease;
  if (lease.record != nullptr && now >= lease.deadline.load()) on_record_due(*lease.record, now);
  if (lease.record != nullptr && lease.record->phase == Phase::kHeld) return true;
  const auto why = lease.why_not_held();
  finish(request, why.status, why.message);
  return false;
}

void LockClient::end_lease(TokenRecord &record, Lease::State state, Loss loss) {
  const auto lease = std::move(record.lease);
  lease->reason = std::move(loss.text);
  lease->loss = loss.reason;
  lease->record = nullptr;
  lease->state.store(state, std::memory_order_release);
  TokenRecord **at = &record.lock->owned;
  while (*at != nullptr && *at != &record) at = &(*at)->next_owned;
  if (*at != nullptr) *at = record.next_owned;
  const auto unconfirmed = confirmations_.end(record);
  // The entry of an upgrade goes with what the token has: the scripts drop one that does not read.
  const bool is_lost = state == Lease::kLost;
  finish_upgrade(record, is_lost ? Status::kLost : Status::kNotHeld,
                 is_lost ? std::string_view(lease->reason) : "released or detached meanwhile");
  if (record.upgrade) {
    record.upgrade->give(&Upgrade::end);
  }
  if (unconfirmed) finish(*unconfirmed, Status::kNotReplicated, Confirmations::why_lost(*lease));
  output_.lease_ended(*lease);
}

void LockClient::on_confirmed(TokenRecord &record) {
  if (const auto caller = confirmations_.end(record)) return finish(*caller, Status::kOk);
  if (record.replicas.is_writer_unconfirmed) finish_upgrade(record, Status::kOk);
}

// The lease is released, or reads again.
void LockClient::fail_confirmation(TokenRecord &record, Status status, std::string_view message,
                                   Nanos now) {
  const auto keep = record.shared_from_this();
  const auto caller = confirmations_.end(record);
  if (!caller) return give_up_upgrade(record, status, message, now);
  finish(*caller, status, message);
  give_back(record, nullptr, now);
}

void LockClient::start_release(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  TokenRecord &record = *request->lease->record;
  if (hand_off_locally(record, now)) return finish(*request, Status::kOk);
  give_back(record, request, now);
}

// Give the lock to the next caller of this client without asking the server, if its turn allows.
bool LockClient::hand_off_locally(TokenRecord &record, Nanos now) {
  LockState &lock = *record.lock;
  if (!record.is_shared || record.is_sharing || lock.waitlist->is_empty() || is_shut_) return false;
  const AcquireOptions &next = Request::of(*lock.waitlist->front()).options;
  const int64_t limit = Waitlist::handoff_limit(next.max_local_handoffs, next.yield_every);
  if (!record.held()->may_hand_off(next.ttl, next.is_confirmed, limit, now)) return false;
  end_lease(record, Lease::kReleased, {});
  const auto step = lock.waitlist.give(&Waitlist::hand_off, now);
  const auto caller = taken(step);
  if (!caller) {
    give_back(record, nullptr, now);
    return true;
  }
  TokenRecord *place = lock.place();
  if (step.due != kNever && !place->acquisition->is_unanswered()) {
    timers_.set(*place, std::min(place->due, step.due));
  }
  give_lease(record, caller, nullptr, now);
  return true;
}

void LockClient::give_back(TokenRecord &record, std::shared_ptr<Request> releaser, Nanos now) {
  if (record.lease) end_lease(record, Lease::kReleased, {});
  cleanups_.set_releaser(record, std::move(releaser), now);
  if (record.lock->waitlist->place() != &record) cleanups_.give_up_vacant_place(*record.lock, now);
  cleanups_.start(record, now, true);
}

void LockClient::lose(TokenRecord &record, Loss loss, bool is_gone, Nanos now) {
  const auto keep = record.shared_from_this();
  // A token may still be queued if a message granted it that no script of ours may have sent, and
  // queued again if a poll crossed the grant.
  Checked<Acquisition> &acquisition = record.acquisition;
  if (is_gone && record.held()->is_provisional()) acquisition.give(&Acquisition::on_requeued);
  const bool may_be_queued = acquisition->may_be_queued();
  record.lease->is_gone = is_gone && !may_be_queued && acquisition->late_apply_until() <= now;
  end_lease(record, Lease::kLost, std::move(loss));
  cleanups_.give_up_vacant_place(*record.lock, now);
  if (is_gone && !may_be_queued) return cleanups_.start_gone(record, now);
  cleanups_.start(record, now, !is_gone,
                  is_gone ? 0 : now + timing::notice_of(record.held()->ttl()));
}

// `record` was granted a lock that this client believes to hold already: that one was forced or
// evicted, and would otherwise not know before its next renewal.
void LockClient::lose_predecessor(const TokenRecord &record, Nanos now) {
  TokenRecord *before = record.lock->holder;
  if (before != nullptr && before != &record) lose(*before, kTakenOver, true, now);
}

void LockClient::drop(Lease &lease, Nanos now) {
  if (lease.record == nullptr) return;
  const auto record = lease.record->shared_from_this();
  end_lease(*record, Lease::kDetached, {});
  cleanups_.give_up_vacant_place(*record->lock, now);
  locks_.forget(*record);
}

void LockClient::release_async(Lease &lease, Nanos now) {
  if (lease.record == nullptr) return;
  if (lease.record->phase == Phase::kDetaching) {
    lease.is_abandoned = true;  // the answer decides: Detach::on_refused()
    return;
  }
  if (now < lease.deadline.load() && hand_off_locally(*lease.record, now)) return;
  give_back(*lease.record, nullptr, now);
}

void LockClient::release_after_notice(Lease &lease, Nanos now) {
  if (lease.record == nullptr || lease.record->phase == Phase::kDetaching) return;
  lose(*lease.record, {}, false, now);
}

}  // namespace redlatch::lock
