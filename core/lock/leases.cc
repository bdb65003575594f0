// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/leases.h"
#include "lock/term.h"

#include <algorithm>
#include <utility>

#include "timing/lease_clock.h"

namespace redlatch::lock {

const LockState *Leases::Kind::lock(const Call &call) const { return record_of(call).lock.get(); }

void Leases::Kind::ask_again(const Call &call, Nanos now) const {
  leases.locks_.repeat_soon(record_of(call), now);
}

// ---- renewals ----------------------------------------------------------------------------------

void Leases::schedule(TokenRecord &record, Nanos now) {
  Lease &lease = *record.lease;
  const Nanos end = record.held()->deadline();
  lease.deadline.store(end, std::memory_order_release);
  const Nanos due =
      std::min(record.held()->due(redirects_.is_up(*record.lock)), record.upgrade_due());
  timers_.set(record, std::min(std::max(now, due), end));
  output_.lease_moved(lease);
}

void Leases::write_extend(protocol::Command &out, const TokenRecord &record, Nanos lease,
                          protocol::EvalMode eval, const protocol::HolderInfo *info) const {
  if (record.is_sharing) {
    return protocol::extend_shared(out, record.server().features, eval, record.lock->keys,
                                   record.proof(), lease / kMs, record.held()->attach_count() > 0);
  }
  protocol::extend(out, record.server().features, eval, record.lock->keys, record.identity.token,
                   lease / kMs, record.held()->is_described() || info != nullptr, info);
}

void Leases::write_extend_part(protocol::Command &out, const TokenRecord &record, Nanos lease,
                               protocol::EvalMode eval, protocol::Extent extent) {
  const auto &keys = record.lock->keys;
  if (extent == protocol::Extent::kReaderKey) {
    reader_key_ = protocol::reader_key(keys, record.identity.token);
    return protocol::extend_reader_key(out, reader_key_, lease / kMs);
  }
  const bool is_lock = extent == protocol::Extent::kLock;
  if (!record.is_sharing) {
    return protocol::extend_alone(out, record.server().features, eval, keys, record.identity.token,
                                  lease / kMs);
  }
  const auto part = is_lock ? protocol::Part::kLock : protocol::Part::kReaders;
  protocol::extend_shared_alone(out, record.server().features, eval, keys,
                                {part, record.proof(), lease / kMs});
}

void Leases::send_extend(TokenRecord &record, const HeldLease::Step &step, Nanos now,
                         protocol::EvalMode eval, protocol::Extent extent) {
  assert(step.transition != HeldLease::Transition::kDefect);
  if (step.transition == HeldLease::Transition::kDefect) {
    (void)results_.report_defect(Machine::kHeldLease);
    return lose(record, LossReason::kDefect, false, now);
  }
  if (step.command == HeldLease::Command::kNone) return;
  const protocol::HolderInfo info = info_of(record, settings_);
  protocol::Command command;
  if (extent == protocol::Extent::kAll) {
    write_extend(command, record, step.ttl, eval, step.is_description ? &info : nullptr);
  } else {
    write_extend_part(command, record, step.ttl, eval, extent);
  }
  const bool is_sent = record.server().session.try_send(
      command,
      Call{&extend_, eval, now, step.ttl, record.shared_from_this(), step.is_description, extent});
  if (is_sent) {
    record.held().give(&HeldLease::sent, step.is_description);
  } else {
    record.held().give(&HeldLease::not_sent, now);
  }
  schedule(record, now);
}

void Leases::on_extend_reply(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *extended = record.held_lease();
  if (extended != nullptr) extended->give(&HeldLease::on_answered);
  protocol::CountAnswer answer;
  const auto refusal = read_extension(call, reply, answer);
  if (!refusal && extend_next_part(call, answer, now)) return;
  if (!refusal && !call.is_delegated)
    note_time(record.server(), call.sent_at, now, answer.server_ms);
  const bool is_retained = record.phase == TokenRecord::Phase::kRetained;
  if (is_retained && !refusal && answer.result < 1) return cleanups_.start_gone(record, now);
  if (record.is_gone || record.phase != TokenRecord::Phase::kHeld) return;
  Checked<HeldLease> &held = record.held();
  // Callers were notified that it is lost: an answer that comes later does not bring it back.
  if (held->is_over(now)) return on_due(record, now);
  if (refusal) {
    record.trouble.text = refusal.message;
    // A description that is refused for good is not sent again: the lease does not depend on it.
    const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
    held.give(&HeldLease::on_refused, call.is_description && may_pass, now);
    return schedule(record, now);
  }
  if (answer.result < 1) return lose(record, loss_by(answer.result), true, now);
  note_mode(record, answer.result == 2, now);
  record.trouble.text.clear();
  const auto step = held.give(&HeldLease::on_confirmed,
                              {call.sent_at, call.lease, answer.server_ms, call.is_description},
                              now, redirects_.is_up(*record.lock), entropy_.next());
  record.server().confirmations.repeat(record);
  schedule(record, now);
  send_extend(record, step, now);
}

void Leases::prolong(TokenRecord &record, Nanos sent_at, Nanos lease, Nanos now) {
  const auto step = record.held().give(&HeldLease::prolong, sent_at, lease, now, entropy_.next());
  schedule(record, now);
  send_extend(record, step, now);
}

void Leases::on_due(TokenRecord &record, Nanos now) {
  if (record.phase == TokenRecord::Phase::kDetaching) return;  // its answer, or its end, decides
  if (!record.held()->is_over(now)) {
    timers_.set(record, record.held()->deadline());
    const bool is_upgrade_due = record.upgrade_due() <= now;
    if (is_upgrade_due) resume_upgrade(record, now);
    const bool is_renewal_due = !is_upgrade_due || record.held()->renewal_at() <= now;
    if (is_renewal_due)
      send_extend(record, record.held()->on_due(now, redirects_.is_up(*record.lock)), now);
    return;
  }
  timers_.set(record, now + 10 * kMs);  // should the end fail for want of memory
  lose(record, why_over(record, now), false, now);
}

// SET, which extends the key that Redisson reads, has no answer of a script.
protocol::Refusal Leases::read_extension(const Call &call, const Reply &reply,
                                         protocol::CountAnswer &answer) {
  if (call.extent != protocol::Extent::kReaderKey || reply.is_error()) return decode(reply, answer);
  answer.result = 2;
  return {};
}

// The lock key says that several hold the lock; the readers' key has their tokens, and until it has
// answered as well the lease is not extended. The key that Redisson reads is extended between the
// two: once the lease counts as extended, Redisson sees a reader for as long. The lease counts from
// the time at which the first of them was sent.
bool Leases::extend_next_part(const Call &call, const protocol::CountAnswer &answer, Nanos now) {
  const bool is_part =
      call.extent == protocol::Extent::kLock || call.extent == protocol::Extent::kReaderKey;
  if (!is_part || answer.result != 2) return false;
  const Request *request = kind_of(call).request(call);
  TokenRecord *record = request != nullptr ? request->lease->record : &record_of(call);
  if (record == nullptr || record->is_gone || record->phase != TokenRecord::Phase::kHeld)
    return false;
  const bool has_reader_key = record->lock->keys.traits().has_reader_key;
  Call next = call;
  next.extent = call.extent == protocol::Extent::kLock && has_reader_key
                    ? protocol::Extent::kReaderKey
                    : protocol::Extent::kReaders;
  next.is_delegated = false;
  protocol::Command command;
  write_extend_part(command, *record, call.lease, call.eval, next.extent);
  if (!redirects_.is_up(*record->lock) ||
      !record->server().session.try_send(command, std::move(next))) {
    on_half_done(call, now);
  } else if (request == nullptr) {
    record->held().give(&HeldLease::sent, false);
  }
  return true;
}

void Leases::Extend::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *held = record.held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answered);
  if (record.is_gone || record.phase != TokenRecord::Phase::kHeld) return;
  if (held->get().is_over(now)) return leases.on_due(record, now);
  const auto step = held->give(&HeldLease::on_unknown_script, call.is_description, now,
                               leases.redirects_.is_up(*record.lock));
  leases.send_extend(record, step, now, protocol::EvalMode::kText);
}

void Leases::Extend::on_lost(const Call &call, Nanos) const {
  Checked<HeldLease> *held = record_of(call).held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answer_lost, call.is_description);
}

void Leases::Extend::on_not_done(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *held = record.held_lease();
  if (held == nullptr) return;
  held->give(&HeldLease::on_answered);
  held->give(&HeldLease::on_refused, call.is_description, now);
  if (record.phase == TokenRecord::Phase::kHeld) leases.schedule(record, now);
}

void Leases::Extend::extend_lock_key(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  Checked<HeldLease> *held = record.held_lease();
  if (held != nullptr) held->give(&HeldLease::on_answered);
  if (record.is_gone || record.phase != TokenRecord::Phase::kHeld) return;
  if (held->get().is_over(now)) return leases.on_due(record, now);
  auto step = held->give(&HeldLease::on_unknown_script, call.is_description, now,
                         leases.redirects_.is_up(*record.lock));
  step.is_description = false;
  leases.send_extend(record, step, now, call.eval, protocol::Extent::kLock);
}

// ---- the end -----------------------------------------------------------------------------------

Loss Leases::why_over(const TokenRecord &record, Nanos now) const noexcept {
  if (now >= record.held()->end_at()) return LossReason::kMaxHold;
  const session::Session &session = record.server().session;
  std::string_view connection;
  if (!session.is_up()) connection = session.failure().message;
  return {LossReason::kExpired,
          words::not_renewed(record.held()->is_renewed(), record.trouble.text, connection)};
}

// True if the lease that `request` is about is still held; if not, the request is finished with
// why.
bool Leases::is_held(Request &request, Nanos now) {
  Lease &lease = *request.lease;
  if (lease.record != nullptr && now >= lease.deadline.load()) on_due(*lease.record, now);
  if (lease.record != nullptr && lease.record->phase == TokenRecord::Phase::kHeld) return true;
  const auto why = lease.why_not_held();
  results_.finish(request, why.status, why.message);
  return false;
}

bool Leases::may_run(Request &request) {
  const TokenRecord &record = *request.lease->record;
  const bool is_writer = record.identity.mode == protocol::Mode::kWrite;
  if (record.lock->keys.traits().has_jobs && is_writer) return true;
  results_.finish(request, Status::kInvalid, words::needs_mutex(record.lock->name));
  return false;
}

void Leases::end_lease(TokenRecord &record, Lease::State state, Loss loss) {
  const auto lease = std::move(record.lease);
  lease->reason = std::move(loss.text);
  lease->loss = loss.reason;
  lease->record = nullptr;
  lease->state.store(state, std::memory_order_release);
  TokenRecord **at = &record.lock->owned;
  while (*at != nullptr && *at != &record) at = &(*at)->next_listed;
  if (*at != nullptr) *at = record.next_listed;
  const auto unconfirmed = record.server().confirmations.end(record);
  // The entry of an upgrade goes with what the token has: the scripts drop one that does not read.
  const bool is_lost = state == Lease::kLost;
  finish_upgrade(record, is_lost ? Status::kLost : Status::kNotHeld,
                 is_lost ? std::string_view(lease->reason) : words::kEndedMeanwhile);
  if (record.upgrade) {
    record.upgrade->give(&Upgrade::end);
  }
  if (unconfirmed)
    results_.finish(*unconfirmed, Status::kNotReplicated,
                    words::lost_unreplicated(lease->name, lease->reason));
  output_.lease_ended(*lease);
}

void Leases::on_confirmed(TokenRecord &record) {
  if (const auto caller = record.server().confirmations.end(record))
    return results_.finish(*caller, Status::kOk);
  if (record.replicas.is_writer_unconfirmed) finish_upgrade(record, Status::kOk);
}

// The lease is released, or reads again.
void Leases::fail_confirmation(TokenRecord &record, Status status, std::string_view message,
                               Nanos now) {
  const auto keep = record.shared_from_this();
  const auto caller = record.server().confirmations.end(record);
  if (!caller) return give_up_upgrade(record, status, message, now);
  results_.finish(*caller, status, message);
  give_back(record, nullptr, now);
}

void Leases::give_back(TokenRecord &record, std::shared_ptr<Request> releaser, Nanos now) {
  if (record.lease) end_lease(record, Lease::kReleased, {});
  cleanups_.set_releaser(record, std::move(releaser), now);
  if (record.lock->waitlist->place() != &record) cleanups_.give_up_vacant_place(*record.lock, now);
  cleanups_.start(record, now, true);
}

void Leases::lose(TokenRecord &record, Loss loss, bool is_gone, Nanos now) {
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
void Leases::lose_predecessor(const TokenRecord &record, Nanos now) {
  const auto may_be_beside = [&record](const TokenRecord &other) {
    return record.identity.mode == protocol::Mode::kRead &&
           other.identity.mode == protocol::Mode::kRead;
  };
  while (TokenRecord *retained = record.lock->retained) {
    assert(retained != &record);
    if (may_be_beside(*retained)) break;  // then all are readers
    cleanups_.start_gone(*retained, now);
  }
  TokenRecord *before = record.lock->holder;
  if (before != nullptr && before != &record) lose(*before, LossReason::kTakenOver, true, now);
}

void Leases::leave_to_ttl(Lease &lease) noexcept {
  if (lease.record == nullptr) return;
  const auto record = lease.record->shared_from_this();
  end_lease(*record, Lease::kDetached, {});
  locks_.forget(*record);
}

// The lease has ended for this client. A poll that crossed the grant may have queued its token
// again.
void Leases::clean_up_detached(TokenRecord &record, Nanos now) {
  cleanups_.give_up_vacant_place(*record.lock, now);
  if (!record.acquisition->may_be_queued()) return locks_.forget(record);
  cleanups_.start(record, now);
}

void Leases::drop(Lease &lease, Nanos now) {
  if (lease.record == nullptr) return;
  const auto record = lease.record->shared_from_this();
  end_lease(*record, Lease::kDetached, {});
  cleanups_.give_up_vacant_place(*record->lock, now);
  locks_.forget(*record);
}

void Leases::release_after_notice(Lease &lease, Nanos now) {
  if (lease.record == nullptr || lease.record->phase == TokenRecord::Phase::kDetaching) return;
  lose(*lease.record, {}, false, now);
}

// A recall is a hint: nothing here depends on it.
void Leases::on_recall(TokenRecord &record, std::string_view reason) noexcept {
  assert(record.phase == TokenRecord::Phase::kHeld);
  Lease &lease = *record.lease;
  lease.recall_count++;
  lease.recall_reason = words::cleaned(reason);
  output_.lease_recalled(lease);
}

// ---- the clock of the server --------------------------------------------------------------------

void Leases::note_time(Server &server, Nanos sent_at, Nanos now, int64_t server_ms) {
  if (server_ms <= 0) return;
  server.clock.sample(sent_at, now, server_ms, now);
  compare_clocks(server, now);
}

// A lease that has moved here is believed for as long as both servers keep it.
void Leases::compare_clocks(Server &server, Nanos now) noexcept {
  if (!server.clock.take_arrivals()) return;
  warn_of_clock(server);
  for (const auto &[id, record] : locks_.records()) {
    if (&record->server() != &server || record->phase != TokenRecord::Phase::kHeld) continue;
    if (!record->held()->awaits_clock()) continue;
    record->held().give(&HeldLease::on_clock, *server.clock.last(), now);
    schedule(*record, now);
  }
}

// Once for each connection, however many slots move.
void Leases::warn_of_clock(Server &server) noexcept {
  if (!server.clock.take_warning()) return;
  const std::string text = words::clock_behind(server.settings, server.clock.behind() / kMs);
  if (text.empty()) return server.clock.warn_again();
  output_.warn(text);
}

}  // namespace redlatch::lock
