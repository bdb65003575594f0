// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: from the call to the grant.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "lock/calls.h"
#include "lock/lock_client.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

// .. and granted to the same token again: others held in between.
constexpr LossText kForced{LossReason::kForced, "it was taken by force"};

constexpr char kHeldAlone[] = "held";

// How far a fence may be ahead of the server's clock, in us: as far as the clock may have gone back
// while the fence key lives. A fence further ahead is taken from an answer only.
constexpr int64_t kLargestFenceLead = 3600LL * 1'000'000;

// Why a caller does not get the lock.
std::string obstacle_in(const protocol::AcquireAnswer &answer) {
  if (answer.is_left_to_others()) return "it is left to other lock libraries";
  if (answer.type == "none") return "others wait for it";
  if (answer.holder.empty()) {
    return "its key is a " + std::string(answer.type) + ": a lock of another format";
  }
  if (answer.is_foreign()) return "held by another lock library";
  return answer.is_shared() ? "held by readers" : kHeldAlone;
}

std::string busy_message(const LockState &lock, const protocol::AcquireAnswer &answer) {
  const std::string message = "lock " + quoted(lock.name) + " is busy: " + lock.obstacle;
  const std::string left = std::to_string(answer.pttl_ms) + " ms";
  if (answer.is_left_to_others()) return message + " for " + left;
  if (answer.holder.empty()) return message;
  if (answer.pttl_ms < 0) return message + " without a time limit";
  return message + ", its lease ends in " + left;
}

}  // namespace

std::shared_ptr<Request> LockClient::take_front(TokenRecord &record) {
  if (record.is_shared) return taken(record.lock->waitlist.give(&Waitlist::take));
  auto caller = std::exchange(record.caller, nullptr);
  caller->record = nullptr;
  return caller;
}

// The caller that a step takes off the waitlist; null: the step is a defect.
std::shared_ptr<Request> LockClient::taken(const Waitlist::Step &step) {
  assert(step.transition != Waitlist::Transition::kDefect);
  if (step.caller != nullptr) return std::exchange(Request::of(*step.caller).listed, nullptr);
  (void)report_defect("waitlist");
  return nullptr;
}

// True if the owner has the lock already, so that it would wait for itself; then the request is
// finished with why.
bool LockClient::is_misused(Request &request, Nanos now) {
  const AcquireOptions &options = request.options;
  if (options.owner.empty() || options.format == protocol::Format::kHash) return false;
  const auto found = locks_.find(request.name, options.format);
  const TokenRecord *record = found ? found->owned : nullptr;
  const auto is_in_the_way = [&](const TokenRecord &other) {
    const bool both_read = other.identity.mode == protocol::Mode::kRead && !other.upgrader &&
                           options.mode == protocol::Mode::kRead;
    return other.identity.owner == options.owner && !both_read &&
           other.lease->state_at(now) == Lease::kHeld;
  };
  while (record != nullptr && !is_in_the_way(*record)) record = record->next_owned;
  if (record == nullptr) return false;
  const char *what =
      record->identity.mode == protocol::Mode::kRead ? "reads already: upgrade that lease"
      : options.mode == protocol::Mode::kRead        ? "writes already: downgrade that lease"
                                                     : "has it already, and it is not reentrant";
  finish(request, Status::kAlreadyHeld, "lock " + quoted(request.name) + ": its owner " + what);
  return true;
}

void LockClient::start_acquire(const std::shared_ptr<Request> &request, Nanos now) {
  if (is_misused(*request, now)) return;
  if (request->options.min_replicas > 0) {
    request->replicas = std::make_unique<Confirmation>(request->options.min_replicas,
                                                       request->options.sync_timeout);
  }
  request->lease->token.reserve(protocol::kTokenSize);  // a grant must not fail for want of memory
  const auto lock = locks_.find_or_add(request->name, request->options.format);
  request->lock = lock;
  request->lease->name = std::move(request->name);
  const bool is_shared = request->shares_place();
  TokenRecord *created = nullptr;
  const bool has_place = is_shared && lock->waitlist->place() != nullptr;
  if (!has_place) created = &locks_.new_record(lock, *request, channel_.cid());
  if (is_shared) {
    if (!lock->join(created, request)) {
      if (created != nullptr) cleanups_.start(*created, now);
      return finish(*request, Status::kInternal, report_defect("waitlist"));
    }
  } else {
    created->caller = request;
    request->record = created;
  }
  if (request->wait_ms > 0) {
    request->wait_until = after(now, request->wait_ms * kMs);
    timers_.set(*request, now + timing::slow_after(request->wait_ms * kMs));
  }
  if (request->wait_ms == 0) {
    // Nodes of a cluster may redirect it to each other: then no connection and no answer ends it.
    const Nanos limit = settings_.connect_timeout + settings_.command_timeout;
    const bool may_be_redirected = settings_.is_cluster() || settings_.is_of_cluster;
    if (may_be_redirected) timers_.set(*request, after(now, limit));
    connect_soon(now);
  }
  if (created != nullptr) ask(*created, now);
}

// Send ACQUIRE: the first time, as a poll, or after a lost answer. The same token each time.
void LockClient::ask(TokenRecord &record, Nanos now, protocol::EvalMode eval) {
  if (!record.acquisition->may_ask(is_up(*record.lock)) || record.is_throttled) return;
  const bool may_wait = eval == protocol::EvalMode::kDigest;
  if (may_wait && throttle_.delay(record, session_.has_room())) return timers_.remove(record);
  send_ask(record, now, eval);
}

void LockClient::send_ask(TokenRecord &record, Nanos now, protocol::EvalMode eval) {
  Checked<Acquisition> &acquisition = record.acquisition;
  acquisition.give(&Acquisition::prepare, record.front_terms());
  const Nanos ttl = acquisition->ttl();
  if (const Request *front = record.front()) {
    record.yield_policy = front->options.yield_policy();
  }
  std::string &member = record.identity.member;
  if (!member.empty() && !acquisition->was_sent()) {
    protocol::set_polls(member, !channel_.hears(record.identity.token));
  }
  protocol::Command command;
  protocol::acquire(command, features_, eval, record.lock->keys,
                    {record.identity.mode, record.proof(), ttl / kMs, member, acquisition->ticket(),
                     record.sibling(), record.is_unfenced});
  timers_.remove(record);
  if (session_.try_send(command,
                        Call{&calls_->acquire, eval, now, ttl, record.shared_from_this()})) {
    return acquisition.give(&Acquisition::sent);
  }
  const auto step = acquisition.give(&Acquisition::not_sent, now);
  if (step.transition != Acquisition::Transition::kFailed) return follow(record, step, now);
  fail_callers(record, Status::kNoMemory, {}, now);
}

void LockClient::send_throttled(Nanos now) {
  while (session_.is_up() && session_.has_room()) {
    const auto record = throttle_.take();
    if (!record) return;
    if (record->is_gone || !Locks::is_waiting(record->phase) || is_moving(*record->lock)) continue;
    send_ask(*record, now, protocol::EvalMode::kDigest);
  }
}

void LockClient::on_acquire_reply(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  record.acquisition.give(&Acquisition::on_answered);
  protocol::AcquireAnswer answer;
  const auto refusal = record.is_unfenced ? decode_vote(reply, answer) : decode(reply, answer);
  if (!refusal) note_time(call.sent_at, now, answer.server_ms);
  if (record.is_gone) return;
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      if (refusal) return on_acquire_refused(record, refusal, now);
      if (!answer.is_granted) return on_queued(record, answer, now);
      if (record.phase == Phase::kAsking) cleanups_.saw_free(record);
      if (record.phase == Phase::kQueued) note_late_grant(record, answer, now);
      return on_granted(record, call, answer, now);
    case Phase::kHeld:
      // A poll that crossed a pushed grant. Refused, it may have put the token back into the queue.
      if (record.held()->is_over(now)) return on_record_due(record, now);
      if (!refusal && answer.is_granted && answer.fence != record.held()->granted_fence()) {
        return leases_.lose(record, kForced, false, now);
      }
      if (!refusal && answer.is_granted) leases_.prolong(record, call.sent_at, call.lease, now);
      if (!refusal && !answer.is_granted) record.acquisition.give(&Acquisition::on_requeued);
      // An upgrade that was started meanwhile has waited for this answer.
      if (record.upgrader) leases_.resume_upgrade(record, now);
      return;
    case Phase::kDetaching:
      if (!refusal && !answer.is_granted) record.acquisition.give(&Acquisition::on_requeued);
      return;
    case Phase::kCleanup:
      return;  // what was sent behind it decides
  }
}

void LockClient::on_granted(TokenRecord &record, const Call &call,
                            const protocol::AcquireAnswer &answer, Nanos now) {
  const auto step = record.acquisition.give(
      &Acquisition::on_granted, {call.sent_at, call.lease, answer.fence, answer.server_ms},
      record.front_terms(), now);
  if (step.transition == Acquisition::Transition::kTooShort) {
    return fail_front(record, Status::kInvalid,
                      "ttl must be well above the " + std::to_string((now - call.sent_at) / kMs) +
                          " ms that the answer took (got " +
                          std::to_string(record.front()->options.ttl / kMs) + " ms)",
                      now);
  }
  if (step.transition == Acquisition::Transition::kGranted) {
    record.front()->lease->hold_count = answer.hold_count;
  }
  follow(record, step, now);
}

void LockClient::follow(TokenRecord &record, const Acquisition::Step &step, Nanos now) {
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
      return fail_callers(record, Status::kInternal, report_defect("acquisition"), now, true);
  }
  if (step.command == Acquisition::Command::kAcquire) return ask(record, now);
  if (step.due != kNever) timers_.set(record, step.due);
}

void LockClient::on_queued(TokenRecord &record, const protocol::AcquireAnswer &answer, Nanos now) {
  // One call drops a limited number of dead waiters: the next call continues at once.
  Checked<Acquisition> &acquisition = record.acquisition;
  if (!acquisition->is_queueable() && answer.has_more) return ask(record, now);
  LockState &lock = *record.lock;
  if (answer.is_wrong_type()) {
    const std::string message = protocol::wrong_type_message(lock.name, answer.type);
    if (!acquisition->is_queueable()) return refuse_try(record, Status::kWrongType, message, now);
    return fail_callers(record, Status::kWrongType, message, now);
  }
  lock.blocker = answer.token().substr(0, protocol::kCidSize);
  lock.obstacle = obstacle_in(answer);
  cleanups_.saw_busy(lock, now);
  if (!acquisition->is_queueable()) {
    const std::string message = busy_message(lock, answer);
    if (awaits_name(record, message, now)) return;
    return refuse_try(record, Status::kBusy, message + client_names_.holder_text(lock.blocker),
                      now);
  }
  ask_wanted_name(lock, now);
  client_names_.announce_by(now);
  const auto queued = acquisition.give(&Acquisition::on_queued, answer.ticket, answer.key_digest);
  if (queued.transition != Acquisition::Transition::kNone) return follow(record, queued, now);
  record.trouble.clear();
  record.is_slot_moving = false;
  locks_.set_phase(record, Phase::kQueued);
  record.watcher.set_rank(std::max<int64_t>(answer.rank, 0));
  const Nanos delay = plan_recheck(record, answer, now);
  follow(record,
         acquisition.give(&Acquisition::wait, delay, answer.has_more, record.front_terms(), now),
         now);
}

void LockClient::refuse_try(TokenRecord &record, Status status, std::string_view message,
                            Nanos now) {
  if (const auto caller = take_front(record)) finish(*caller, status, message);
  if (record.is_vote) return leases_.give_back(record, nullptr, now);
  cleanups_.start_gone(record, now);
}

void LockClient::on_acquire_refused(TokenRecord &record, const protocol::Refusal &refusal,
                                    Nanos now) {
  const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
  const bool is_moving = settings_.is_of_cluster && refusal.is_of_slot;
  if (!may_pass || !record.acquisition->is_queueable()) {
    if (!is_moving) {
      return fail_callers(record, refusal.status(), refusal_message(record.lock->name, refusal),
                          now);
    }
    const std::string what = "lock " + quoted(record.lock->name) + " cannot be acquired now";
    return fail_callers(record, Status::kUnavailable, slot_moves_message(what), now);
  }
  record.trouble = refusal.message;
  record.is_slot_moving = is_moving;
  follow(record, record.acquisition.give(&Acquisition::on_postponed, now, entropy_.next()), now);
}

// True if one of our scripts can have minted the fence of a pushed grant. Other users of the server
// may be allowed to publish on our channel; an invented fence must not reach a resource, which
// would then refuse all later holders.
bool LockClient::is_fence_plausible(const TokenRecord &record, const protocol::Push &push) {
  const int64_t us = push.server_ms * 1000;
  if (push.fence > us + kLargestFenceLead) return false;
  // Readers, and the holds of one owner, share a fence that was minted earlier.
  const bool is_shared = record.identity.mode == protocol::Mode::kRead ||
                         record.lock->keys.format == protocol::Format::kHash;
  if (is_shared) return push.fence >= record.lock->highest_fence;
  return push.fence > record.lock->highest_fence && push.fence >= us;
}

void LockClient::on_grant_push(TokenRecord &record, const protocol::Push &push, Nanos now) {
  if (record.phase == Phase::kDetaching) return;
  if (record.phase == Phase::kCleanup) {
    return cleanups_.on_grant(record, now);
  }
  if (push.mode == protocol::Mode::kUpgrade) return leases_.on_upgrade_push(record, now);
  if (push.mode != record.identity.mode) return;
  if (record.phase == Phase::kHeld) {
    const bool is_later = push.fence > record.held()->granted_fence();
    if (is_later && push.key_digest == record.acquisition->key_digest())
      leases_.lose(record, kForced, false, now);
    return;
  }
  const auto granted_at = clock_.local_time(push.server_ms, now);
  const Acquisition::Message message{.key_digest = push.key_digest,
                                     .provisional_ms = push.ms,
                                     .granted_at = granted_at,
                                     .fence = push.fence,
                                     .server_ms = push.server_ms,
                                     .is_plausible = is_fence_plausible(record, push),
                                     .is_counted = channel_.is_counted()};
  follow(record,
         record.acquisition.give(&Acquisition::on_message, message, record.front_terms(), now),
         now);
}

// A new primary may not know that the acquisition has ended, and has granted the lock to it. The
// answer says only whether more of the queue waits. If it is lost, the grant ends by itself.
void LockClient::give_back_stale(const protocol::Push &push, Nanos now) {
  const auto *place = locks_.ended(push.rid);
  const bool is_grant = push.kind == protocol::Push::Kind::kGrant;
  if (place == nullptr || !is_grant || !is_up(*place->lock)) return;
  // The slot may have moved since. That of a name in use is here.
  if (settings_.is_of_cluster && !locks_.has(*place->lock)) return;
  const std::string token = protocol::make_token(channel_.cid(), push.rid);
  protocol::Command command;
  protocol::release(command, features_, protocol::EvalMode::kText, place->lock->keys,
                    {token, place->owner}, place->yield_policy, 1);
  (void)session_.try_send(
      command, Call{&calls_->serve_queue, protocol::EvalMode::kText, now, 0, place->lock});
}

// The first caller leaves the queue, and uses up `record`. The others get a new place in the
// server's queue, to be asked for afterwards.
LockClient::Served LockClient::take_with_place(TokenRecord &record) {
  if (!record.is_shared) return {take_front(record), nullptr};
  LockState &lock = *record.lock;
  Waitlist::Caller *second = lock.waitlist->second();
  TokenRecord *next = nullptr;
  if (second != nullptr) {
    next = &locks_.new_record(record.lock, Request::of(*second), channel_.cid());
  }
  return {taken(lock.waitlist.give(&Waitlist::serve, record, next)), next};
}

void LockClient::serve_front(TokenRecord &record, const Grant &grant, Nanos now) {
  leases_.lose_predecessor(record, now);
  const auto [caller, next] = take_with_place(record);
  if (!caller) {  // a defect
    if (next != nullptr) cleanups_.start(*next, now);
    return leases_.give_back(record, nullptr, now);
  }
  record.acquisition.give(&Acquisition::served);
  locks_.set_phase(record, Phase::kHeld);
  give_lease(record, caller, &grant, now);
  if (next != nullptr) ask(*next, now);
}

// `grant`: of the server; null: handed off by the caller before.
void LockClient::give_lease(TokenRecord &record, const std::shared_ptr<Request> &request,
                            const Grant *grant, Nanos now) {
  Request &caller = *request;
  auto &options = caller.options;
  Lease &lease = *caller.lease;
  const LeaseTerms terms{.ttl = options.ttl,
                         .end_at = options.max_hold > 0 ? after(now, options.max_hold) : kNever,
                         .is_renewed = options.is_renewed,
                         .is_described = !record.is_sharing};
  const auto step = grant != nullptr ? record.held().give(&HeldLease::start, *grant, terms,
                                                          options.label, now, is_up(*record.lock))
                                     : record.held().give(&HeldLease::hand_off, terms,
                                                          options.label, now, is_up(*record.lock));
  // The fence of an attached lease is the caller's word: scripts and checks do not rely on it.
  const bool is_attached = caller.op == Request::Op::kAttach;
  lease.fence = is_attached ? caller.arguments->fence : record.held()->fence();
  record.lock->highest_fence = std::max(record.lock->highest_fence, record.held()->fence());
  lease.mode = record.identity.mode;
  lease.token = record.identity.token;
  lease.end_at = terms.end_at;
  lease.record = &record;
  record.lease = caller.lease;
  record.yield_policy = options.yield_policy();
  std::string &owner = record.identity.owner;
  if (record.lock->keys.format != protocol::Format::kHash) owner.swap(options.owner);
  if (!owner.empty()) record.next_owned = std::exchange(record.lock->owned, &record);
  lease.state.store(Lease::kHeld, std::memory_order_release);
  announce_held(now);
  leases_.schedule(record, now);
  // A local hand-off changes nothing on the server: what replicas have of the token, they have.
  if (grant != nullptr) record.replicas.count = 0;
  if (!leases_.confirmations().start(record, request)) finish(caller, Status::kOk);
  const bool is_quiet =
      step.command == HeldLease::Command::kNone && step.transition == HeldLease::Transition::kNone;
  if (!is_quiet) leases_.send_extend(record, step, now);
}

void LockClient::fail_front(TokenRecord &record, Status status, std::string_view message,
                            Nanos now) {
  const auto [caller, next] = take_with_place(record);
  if (caller) finish(*caller, status, message);
  cleanups_.start(record, now, true);
  if (next != nullptr) ask(*next, now);
}

void LockClient::fail_callers(TokenRecord &record, Status status, std::string_view message,
                              Nanos now, bool may_be_held) {
  while (record.front() != nullptr) {
    const auto caller = take_front(record);
    if (!caller) break;  // a defect
    finish(*caller, status, message);
  }
  cleanups_.start(record, now, may_be_held);
}

// `caller` is finished; its place goes to the others, or back to the server.
void LockClient::remove_from_waitlist(Request &caller, Nanos now) {
  LockState &lock = *caller.lock;
  TokenRecord &record = caller.record != nullptr ? *caller.record : *lock.place();
  const auto keep =
      record.is_shared ? taken(lock.waitlist.give(&Waitlist::leave, caller)) : take_front(record);
  if (record.front() == nullptr) cleanups_.start(record, now);
}

Outcome LockClient::why_not_yet(const Request &request, const TokenRecord &record) const {
  const std::string not_granted = "lock " + quoted(record.lock->name) + " was not granted within " +
                                  in_seconds(request.wait_ms);
  // No error of the server: the wait ran out, as behind a holder.
  if (record.is_slot_moving) return failure(Status::kTimeout, slot_moves_message(not_granted));
  if (!record.trouble.empty()) return failure(Status::kServer, record.trouble);
  if (record.phase == Phase::kAsking && record.acquisition->is_outcome_unknown()) {
    return failure(Status::kOutcomeUnknown, "sent to " + settings_.address() +
                                                ", but no answer came within the wait; a cleanup "
                                                "continues in the background");
  }
  if (is_moving(*record.lock) || (request.wait_ms == 0 && session_.is_up())) {
    return failure(Status::kUnavailable,
                   "no node serves lock " + quoted(record.lock->name) + ": " + settings_.address() +
                       " redirected it (MOVED) to a node that does not, or may not be used");
  }
  if (!session_.is_up()) return session_.failure();
  const LockState &lock = *record.lock;
  const std::string holder = waits_for_itself(request) ? "; holder: the thread that waits"
                                                       : client_names_.holder_text(lock.blocker);
  const bool is_obvious = lock.obstacle.empty() || (lock.obstacle == kHeldAlone && !holder.empty());
  return failure(Status::kTimeout, not_granted + (is_obvious ? "" : ": " + lock.obstacle) + holder);
}

}  // namespace redlatch::lock
