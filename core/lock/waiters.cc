// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waiters: ACQUIRE, its answers, and messages about a grant.
#include "lock/waiters.h"

#include <algorithm>
#include <utility>

#include "timing/waiting.h"

namespace redlatch::lock {

namespace {

// How far a fence may be ahead of the server's clock, in us: as far as the clock may have gone back
// while the fence key lives. A fence further ahead is taken from an answer only.
constexpr int64_t kLargestFenceLead = 3600LL * 1'000'000;

// True if another fence of a token shows that it was taken away and granted again, and that others
// held in between. Each answer about permits may have a fence of its own.
bool tells_of_others(const TokenRecord &record) { return !record.lock->keys.traits().has_permits; }

Obstacle obstacle_in(const protocol::AcquireAnswer &answer, bool is_semaphore) {
  using Kind = Obstacle::Kind;
  if (answer.has_permits() && !is_semaphore) return {Kind::kOtherFormat, "semaphore"};
  if (answer.is_left_to_others()) return {Kind::kLeftToOthers, {}, answer.pttl_ms};
  if (answer.type == "none") return {Kind::kWaiters};
  if (answer.holder.empty()) return {Kind::kOtherFormat, std::string(answer.type)};
  const Kind kind = answer.is_foreign()    ? Kind::kOtherLibrary
                    : answer.is_shared()   ? Kind::kReaders
                    : answer.is_capped()   ? Kind::kCap
                    : answer.has_permits() ? Kind::kPermits
                                           : Kind::kHolder;
  return {kind, {}, answer.pttl_ms};
}

}  // namespace

void Waiters::start(const std::shared_ptr<Request> &request, Nanos now) {
  if (is_misused(*request, now)) return;
  if (const auto known = locks_.find(request->name, request->options.format);
      known && take_retained(*known, request, now)) {
    return;
  }
  prepare(*request, now);
  const auto lock = locks_.find_or_add(request->name, request->options.format, *request->server);
  set_lock(*request, lock);
  TokenRecord *created = open_place(*request, lock);
  if (request->wait_ms > 0) {
    request->wait_until = after(now, request->wait_ms * kMs);
    timers_.set(*request, now + timing::slow_after(request->wait_ms * kMs));
  }
  if (request->wait_ms == 0) {
    // Nodes of a cluster may redirect it to each other: then no connection and no answer ends it.
    const Nanos limit = settings_.connect_timeout + settings_.command_timeout;
    const bool may_be_redirected = settings_.is_cluster() || lock->server->settings.is_of_cluster;
    if (may_be_redirected) timers_.set(*request, after(now, limit));
    lock->server->session.connect_soon(now);
  }
  join(request, created, now);
}

void Waiters::prepare(Request &request, Nanos now) {
  request.lease->token.reserve(protocol::kTokenSize);  // a grant must not fail for want of memory
  if (request.options.min_replicas > 0) {
    request.replicas =
        std::make_unique<Confirmation>(request.options.min_replicas, request.options.sync_timeout);
  }
  request.lease->asked_at = now;
}

void Waiters::set_lock(Request &request, const std::shared_ptr<LockState> &lock) noexcept {
  request.lock = lock;
  request.lease->name = std::move(request.name);
}

// @return the record of a new place in the server's queue; nullptr: callers of this client have
// one.
TokenRecord *Waiters::open_place(const Request &request, const std::shared_ptr<LockState> &lock) {
  const bool has_place = request.shares_place() && lock->waitlist->place() != nullptr;
  return has_place ? nullptr : &locks_.new_record(lock, request);
}

// `created`: by open_place().
void Waiters::join(const std::shared_ptr<Request> &request, TokenRecord *created, Nanos now) {
  if (!request->shares_place()) {
    created->caller = request;
    request->record = created;
  } else if (!request->lock->join(created, request)) {
    if (created != nullptr) cleanups_.start(*created, now);
    return results_.finish(*request, Status::kInternal, results_.report_defect(Machine::kWaitlist));
  }
  if (created != nullptr) ask(*created, now);
}

void Waiters::ask(TokenRecord &record, Nanos now, protocol::EvalMode eval) {
  if (!record.acquisition->may_ask(redirects_.is_up(*record.lock)) || record.is_throttled) return;
  const bool may_wait = eval == protocol::EvalMode::kDigest;
  if (may_wait && record.server().throttle.delay(record, record.server().session.has_room()))
    return timers_.remove(record);
  send_ask(record, now, eval);
}

void Waiters::send_ask(TokenRecord &record, Nanos now, protocol::EvalMode eval) {
  Checked<Acquisition> &acquisition = record.acquisition;
  acquisition.give(&Acquisition::prepare, record.front_terms());
  const Nanos ttl = acquisition->ttl();
  if (const Request *front = record.front()) {
    record.yield_policy = front->options.yield_policy();
  }
  std::string &member = record.identity.member;
  if (!member.empty() && !acquisition->was_sent()) {
    protocol::set_polls(member, !record.server().channel.hears(record.identity.token));
  }
  const std::string &candidate = record.identity.candidate;
  std::string candidates_key;
  if (!candidate.empty()) candidates_key = protocol::candidates_key(record.lock->keys);
  protocol::Command command;
  protocol::acquire(command, record.server().features, eval, record.lock->keys,
                    {record.identity.mode, record.proof(), ttl / kMs, member, acquisition->ticket(),
                     record.sibling(), record.is_unfenced, candidate, candidates_key});
  timers_.remove(record);
  if (record.server().session.try_send(
          command, Call{&acquire_, eval, now, ttl, record.shared_from_this()})) {
    return acquisition.give(&Acquisition::sent);
  }
  const auto step = acquisition.give(&Acquisition::not_sent, now);
  if (step.transition != Acquisition::Transition::kFailed) return follow(record, step, now);
  fail_callers(record, Status::kNoMemory, {}, now);
}

// If cleanups follow, the first ACQUIRE of each script is sent as text: repeated after NOSCRIPT, it
// would come after them.
void Waiters::resume(Server &server, const Moves *slots, Nanos now) {
  const bool has_cleanup =
      std::any_of(locks_.records().begin(), locks_.records().end(), [&](const auto &entry) {
        return entry.second->phase == Phase::kCleanup &&
               redirects_.is_to_resume(*entry.second->lock, server, slots);
      });
  uint32_t known = has_cleanup ? 0 : ~0U;  // scripts, by bits: a set would need memory
  locks_.for_each([&](TokenRecord &record) {
    if (!Locks::is_waiting(record.phase) || !redirects_.is_to_resume(*record.lock, server, slots))
      return;
    record.watcher.on_connected();
    if (!record.acquisition->may_ask(true)) return;
    const auto format = static_cast<unsigned>(record.lock->keys.format);
    const bool is_reader = record.identity.mode == protocol::Mode::kRead;
    static_assert((std::size(protocol::kFormats) + 1) * 4 <= 32);
    const uint32_t script = 1U << (format * 4 + (is_reader ? 2 : 0) + (record.is_unfenced ? 1 : 0));
    const bool is_known = (known & script) != 0;
    known |= script;
    send_ask(record, now, is_known ? protocol::EvalMode::kDigest : protocol::EvalMode::kText);
  });
}

void Waiters::send_throttled(Server &server, Nanos now) {
  while (server.session.is_up() && server.session.has_room()) {
    const auto record = server.throttle.take();
    if (!record) return;
    if (record->is_gone || !Locks::is_waiting(record->phase) || redirects_.is_moving(*record->lock))
      continue;
    send_ask(*record, now, protocol::EvalMode::kDigest);
  }
}

void Waiters::on_acquire_reply(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  record.acquisition.give(&Acquisition::on_answered);
  protocol::AcquireAnswer answer;
  const auto refusal = record.is_unfenced ? decode_vote(reply, answer) : decode(reply, answer);
  if (!refusal) leases_.note_time(record.server(), call.sent_at, now, answer.server_ms);
  if (record.is_gone) return;
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      if (refusal) return on_acquire_refused(record, refusal, now);
      if (!answer.is_granted) return on_queued(record, call, answer, now);
      if (record.phase == Phase::kAsking) cleanups_.saw_free(record);
      if (record.phase == Phase::kQueued) note_late_grant(record, answer, now);
      return on_granted(record, call, answer, now);
    case Phase::kHeld:
      // A poll that crossed a pushed grant. Refused, it may have put the token back into the queue.
      if (record.held()->is_over(now)) return leases_.on_due(record, now);
      if (!refusal && answer.is_granted && tells_of_others(record) &&
          answer.fence != record.held()->granted_fence()) {
        return leases_.lose(record, LossReason::kForced, false, now);
      }
      if (!refusal && answer.is_granted) leases_.prolong(record, call.sent_at, call.lease, now);
      if (!refusal && !answer.is_granted) record.acquisition.give(&Acquisition::on_requeued);
      // An upgrade that was started meanwhile has waited for this answer.
      if (record.upgrader) leases_.resume_upgrade(record, now);
      return;
    case Phase::kRetained:
      return;  // what is retained was granted by an answer, and asks no more
    case Phase::kDetaching:
      if (!refusal && !answer.is_granted) record.acquisition.give(&Acquisition::on_requeued);
      return;
    case Phase::kCleanup:
      return;  // what was sent behind it decides
  }
}

void Waiters::on_granted(TokenRecord &record, const Call &call,
                         const protocol::AcquireAnswer &answer, Nanos now) {
  auto step = record.acquisition.give(&Acquisition::on_granted,
                                      {call.sent_at, call.lease, answer.fence, answer.server_ms},
                                      record.front_terms(), now);
  if (step.transition == Acquisition::Transition::kTooShort) {
    const Nanos ttl = record.front()->options.ttl;
    return fail_front(record, Status::kInvalid,
                      words::ttl_too_short((now - call.sent_at) / kMs, ttl / kMs), now);
  }
  if (step.transition == Acquisition::Transition::kGranted) {
    const bool has_owner = record.lock->keys.traits().has_owner;
    if (has_owner) record.front()->lease->hold_count = answer.hold_count;
    if (!has_owner && record.is_recallable() && answer.fence_count > 0) {
      step.grant.fence_count = static_cast<int16_t>(answer.fence_count);
      record.retention.give(&Retention::grant, call.sent_at);
    }
  }
  follow(record, step, now);
}

void Waiters::follow(TokenRecord &record, const Acquisition::Step &step, Nanos now) {
  using Transition = Acquisition::Transition;
  assert(step.transition != Transition::kDefect);
  switch (step.transition) {
    case Transition::kNone:
      break;
    case Transition::kGranted:
      return serve_front(record, step.grant, now);
    case Transition::kUnwanted:
      return leases_.give_back(record, nullptr, now);
    default:
      // The event may have been a grant.
      return fail_callers(record, Status::kInternal, results_.report_defect(Machine::kAcquisition),
                          now, true);
  }
  if (step.command == Acquisition::Command::kAcquire) return ask(record, now);
  if (step.due != kNever) timers_.set(record, step.due);
}

// The first time only: it shows that a deployment has changed the limit, or that two programs mean
// different things by one name.
void Waiters::note_other_limit(const TokenRecord &record,
                               const protocol::AcquireAnswer &answer) noexcept {
  const int64_t own = protocol::limit_in(record.identity.permits);
  const int64_t other = protocol::limit_in(answer.has_permits() ? answer.holder : "");
  if (has_noted_limit_ || own == 0 || other == 0 || own == other) return;
  has_noted_limit_ = true;
  output_.warn(words::other_limit(record.lock->name, own, other));
}

void Waiters::on_queued(TokenRecord &record, const Call &call,
                        const protocol::AcquireAnswer &answer, Nanos now) {
  // One call drops a limited number of dead waiters: the next call continues at once.
  Checked<Acquisition> &acquisition = record.acquisition;
  if (!acquisition->is_queueable() && answer.has_more) return ask(record, now);
  LockState &lock = *record.lock;
  if (answer.is_wrong_type()) {
    const std::string message = protocol::wrong_type_message(lock.name, answer.type);
    if (!acquisition->is_queueable()) return refuse_try(record, Status::kWrongType, message, now);
    return fail_callers(record, Status::kWrongType, message, now);
  }
  note_other_limit(record, answer);
  lock.blocker = answer.token().substr(0, protocol::kCidSize);
  lock.obstacle = obstacle_in(answer, lock.keys.traits().has_permits);
  cleanups_.saw_busy(lock, now);
  if (!acquisition->is_queueable()) {
    if (answer.is_recalled && await_recall(record, call.sent_at, now)) return;
    if (awaits_name(record, now)) return;
    const auto holder = record.server().names.holder(lock.blocker);
    return refuse_try(record, Status::kBusy, words::busy(lock.name, lock.obstacle, holder), now);
  }
  ask_wanted_name(lock, now);
  record.server().names.announce_by(now);
  const auto queued = acquisition.give(&Acquisition::on_queued, answer.ticket, answer.key_digest);
  if (queued.transition != Acquisition::Transition::kNone) return follow(record, queued, now);
  record.trouble = {};
  locks_.set_phase(record, Phase::kQueued);
  // Later callers of this client find the place queued.
  if (record.front() != nullptr) results_.queued(*record.front());
  record.watcher.set_rank(std::max<int64_t>(answer.rank, 0));
  const Nanos delay = plan_recheck(record, answer, now);
  follow(record,
         acquisition.give(&Acquisition::wait, delay, answer.has_more, record.front_terms(), now),
         now);
}

void Waiters::on_acquire_refused(TokenRecord &record, const protocol::Refusal &refusal, Nanos now) {
  const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
  const bool is_moving = record.server().settings.is_of_cluster && refusal.is_of_slot;
  if (!may_pass || !record.acquisition->is_queueable()) {
    if (!is_moving) {
      return fail_callers(record, refusal.status(), refusal_message(record.lock->name, refusal),
                          now);
    }
    return fail_callers(record, Status::kUnavailable,
                        words::not_acquired_in_move(record.lock->name), now);
  }
  record.trouble = {refusal.message, is_moving};
  follow(record, record.acquisition.give(&Acquisition::on_postponed, now, entropy_.next()), now);
}

// ---- messages ----------------------------------------------------------------------------------

// True if one of our scripts can have minted the fence of a pushed grant. Other users of the server
// may be allowed to publish on our channel; an invented fence must not reach a resource, which
// would then refuse all later holders.
bool Waiters::is_fence_plausible(const TokenRecord &record, const protocol::Push &push) {
  const int64_t us = push.server_ms * 1000;
  if (push.fence > us + kLargestFenceLead) return false;
  // Readers, and the holds of one owner, share a fence that was minted earlier.
  const bool is_shared =
      record.identity.mode == protocol::Mode::kRead || record.lock->keys.traits().has_owner;
  if (is_shared) return push.fence >= record.lock->highest_fence;
  // Grants of permits come in any order.
  if (record.lock->keys.traits().has_permits) return push.fence >= us;
  return push.fence > record.lock->highest_fence && push.fence >= us;
}

void Waiters::on_grant_push(TokenRecord &record, const protocol::Push &push, Nanos now) {
  if (record.phase == Phase::kDetaching) return;
  if (record.phase == Phase::kCleanup) {
    return cleanups_.on_grant(record, now);
  }
  if (record.phase == Phase::kRetained) {
    // A late copy, or a grant that follows one which the client does not know to be gone.
    if (push.fence > record.held()->server_fence()) cleanups_.leave_retained(record, now);
    return;
  }
  if (push.mode == protocol::Mode::kUpgrade) return leases_.on_upgrade_push(record, now);
  if (push.mode != record.identity.mode) return;
  if (record.phase == Phase::kHeld) {
    const bool is_later = tells_of_others(record) && push.fence > record.held()->granted_fence();
    if (is_later && push.key_digest == record.acquisition->key_digest())
      leases_.lose(record, LossReason::kForced, false, now);
    return;
  }
  const auto granted_at = record.server().clock.local_time(push.server_ms, now);
  const Acquisition::Message message{.key_digest = push.key_digest,
                                     .provisional_ms = push.ms,
                                     .granted_at = granted_at,
                                     .fence = push.fence,
                                     .server_ms = push.server_ms,
                                     .is_plausible = is_fence_plausible(record, push),
                                     .is_counted = record.server().channel.is_counted()};
  follow(record,
         record.acquisition.give(&Acquisition::on_message, message, record.front_terms(), now),
         now);
}

void Waiters::on_value_push(TokenRecord &record, Nanos now) {
  if (!Locks::is_waiting(record.phase)) return;
  const Request *front = record.front();
  if (front != nullptr && front->options.awaits_value) {
    fail_callers(record, Status::kSkipped, {}, now);
  }
}

// ---- kinds of calls ----------------------------------------------------------------------------

void Waiters::Kind::ask_again(const Call &call, Nanos now) const {
  waiters.locks_.repeat_soon(record_of(call), now);
}

const LockState *Waiters::Kind::lock(const Call &call) const { return record_of(call).lock.get(); }

void Waiters::Acquire::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  record.acquisition.give(&Acquisition::on_answered);
  if (record.is_gone) return;
  if (Locks::is_waiting(record.phase)) return waiters.ask(record, now, protocol::EvalMode::kText);
  if (record.phase != Phase::kHeld) return;
  // A poll that crossed a pushed grant.
  if (record.held()->is_over(now)) return waiters.leases_.on_due(record, now);
  if (record.upgrader) waiters.leases_.resume_upgrade(record, now);
}

void Waiters::Acquire::on_lost(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  const Nanos until = call.sent_at + call.lease;
  if (Checked<Cleanup> *cleanup = record.started_cleanup()) {
    cleanup->give(&Cleanup::on_acquire_lost, until);
  }
  const auto step = record.acquisition.give(&Acquisition::on_answer_lost, until);
  if (step.transition == Acquisition::Transition::kFailed) {
    waiters.fail_callers(record, Status::kOutcomeUnknown, record.server().session.lost().message,
                         now);
  }
}

void Waiters::Acquire::on_not_done(const Call &call, Nanos) const {
  record_of(call).acquisition.give(&Acquisition::on_answered);
}

}  // namespace redlatch::lock
