// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waiters: which caller gets the lock, or why it does not.
#include <algorithm>
#include <utility>

#include "lock/waiters.h"

namespace redlatch::lock {

// True if the owner has the lock already, so that it would wait for itself; then the request is
// finished with why.
bool Waiters::is_misused(Request &request, Nanos now) {
  const AcquireOptions &options = request.options;
  if (options.owner.empty() || protocol::traits(options.format).has_owner) return false;
  const auto found = locks_.find(request.name, options.format);
  const TokenRecord *record = found ? found->owned : nullptr;
  const auto is_in_the_way = [&](const TokenRecord &other) {
    const bool both_read = other.identity.mode == protocol::Mode::kRead && !other.upgrader &&
                           options.mode == protocol::Mode::kRead;
    return other.identity.owner == options.owner && !both_read &&
           other.lease->state_at(now) == Lease::kHeld;
  };
  while (record != nullptr && !is_in_the_way(*record)) record = record->next_listed;
  if (record == nullptr) return false;
  results_.finish(request, Status::kAlreadyHeld,
                  words::owner_has_it(request.name, record->identity.mode, options.mode));
  return true;
}

// A thread that waits for a lock that it shares waits as well, unless both read or share by one
// owner.
bool Waiters::waits_for_itself(const Request &request) const {
  // A part that is only tried waits next.
  const bool is_waiting =
      request.op == Request::Op::kAcquire && (request.wait_ms != 0 || request.several.is_part);
  if (!is_waiting || request.waiter.number == 0 || !request.lock || is_confirming(request))
    return false;
  const LockState &lock = *request.lock;
  // It may wait for the permits of other holders, which release theirs.
  if (lock.keys.traits().has_permits) return false;
  const auto is_in_the_way = [&](const TokenRecord &record) {
    if (record.lock.get() != &lock || record.phase != Phase::kHeld) return false;
    if (!record.lease || record.lease->starter != request.waiter.number) return false;
    const AcquireOptions &options = request.options;
    const bool is_again = lock.keys.traits().has_owner;
    return is_again ? record.identity.owner != options.owner
                    : record.identity.mode != protocol::Mode::kRead ||
                          options.mode != protocol::Mode::kRead;
  };
  if (lock.holder != nullptr) return is_in_the_way(*lock.holder);
  return lock.has_sharers &&
         std::any_of(locks_.records().begin(), locks_.records().end(),
                     [&](const auto &entry) { return is_in_the_way(*entry.second); });
}

void Waiters::forget_callers(TokenRecord &record) {
  Checked<Waitlist> &waitlist = record.lock->waitlist;
  while (!waitlist->is_empty()) taken(waitlist.give(&Waitlist::take));
  record.caller = nullptr;
}

std::shared_ptr<Request> Waiters::take_front(TokenRecord &record) {
  if (record.is_shared) return taken(record.lock->waitlist.give(&Waitlist::take));
  auto caller = std::exchange(record.caller, nullptr);
  caller->record = nullptr;
  return caller;
}

// The caller that a step takes off the waitlist; null: the step is a defect.
std::shared_ptr<Request> Waiters::taken(const Waitlist::Step &step) {
  assert(step.transition != Waitlist::Transition::kDefect);
  if (step.caller != nullptr) return std::exchange(Request::of(*step.caller).listed, nullptr);
  (void)results_.report_defect(Machine::kWaitlist);
  return nullptr;
}

// The first caller leaves the queue, and uses up `record`. The others get a new place in the
// server's queue, to be asked for afterwards.
Waiters::Served Waiters::take_with_place(TokenRecord &record) {
  if (!record.is_shared) return {take_front(record), nullptr};
  LockState &lock = *record.lock;
  Waitlist::Caller *second = lock.waitlist->second();
  TokenRecord *next = nullptr;
  if (second != nullptr) {
    next = &locks_.new_record(record.lock, Request::of(*second));
  }
  return {taken(lock.waitlist.give(&Waitlist::serve, record, next)), next};
}

void Waiters::serve_front(TokenRecord &record, const Grant &grant, Nanos now) {
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

void Waiters::give_lease(TokenRecord &record, const std::shared_ptr<Request> &request,
                         const Grant *grant, Nanos now) {
  Request &caller = *request;
  auto &options = caller.options;
  Lease &lease = *caller.lease;
  const LeaseTerms terms{.ttl = options.ttl,
                         .end_at = options.max_hold > 0 ? after(now, options.max_hold) : kNever,
                         .is_renewed = options.is_renewed,
                         .is_described = !record.is_sharing,
                         .is_fence_shared = record.identity.mode == protocol::Mode::kRead};
  const bool is_up = redirects_.is_up(*record.lock);
  Checked<HeldLease> &held = record.held();
  const auto step = grant == nullptr
                        ? held.give(&HeldLease::hand_off, terms, options.label, now, is_up)
                        : held.give(&HeldLease::start, *grant, terms, options.label, now, is_up);
  // The fence of an attached lease is the caller's word: scripts and checks do not rely on it.
  const bool is_attached = caller.op == Request::Op::kAttach;
  lease.fence = is_attached ? caller.arguments->fence : record.held()->fence();
  record.lock->highest_fence = std::max(record.lock->highest_fence, record.held()->fence());
  lease.mode = record.identity.mode;
  if (!record.identity.permits.empty()) lease.permits = options.permits;
  lease.token = record.identity.token;
  lease.end_at = terms.end_at;
  lease.record = &record;
  record.lease = caller.lease;
  record.retention.give(&Retention::want, options.retain);
  if (caller.is_recalling) caller.wait_ms = 0;
  record.yield_policy = options.yield_policy();
  std::string &owner = record.identity.owner;
  if (!record.lock->keys.traits().has_owner) owner.swap(options.owner);
  if (!owner.empty()) record.next_listed = std::exchange(record.lock->owned, &record);
  lease.state.store(Lease::kHeld, std::memory_order_release);
  record.server().names.announce_by(now + operate::Names::kMoment);
  leases_.schedule(record, now);
  // A local hand-off changes nothing on the server: what replicas have of the token, they have.
  if (grant != nullptr) record.replicas.count = 0;
  if (!record.server().confirmations.start(record, request)) results_.finish(caller, Status::kOk);
  const bool is_quiet =
      step.command == HeldLease::Command::kNone && step.transition == HeldLease::Transition::kNone;
  if (!is_quiet) leases_.send_extend(record, step, now);
}

bool Waiters::hand_off_locally(TokenRecord &record, Nanos now) {
  LockState &lock = *record.lock;
  if (!record.is_shared || record.is_sharing || lock.waitlist->is_empty() || !may_hand_off_)
    return false;
  const AcquireOptions &next = Request::of(*lock.waitlist->front()).options;
  const int64_t limit = Waitlist::handoff_limit(next.max_local_handoffs, next.yield_every);
  if (!record.held()->may_hand_off(next.ttl, next.is_confirmed, limit, now)) return false;
  leases_.end_lease(record, Lease::kReleased, {});
  const auto step = lock.waitlist.give(&Waitlist::hand_off, now);
  const auto caller = taken(step);
  if (!caller) {
    leases_.give_back(record, nullptr, now);
    return true;
  }
  TokenRecord *place = lock.place();
  if (step.due != kNever && !place->acquisition->is_unanswered()) {
    timers_.set(*place, std::min(place->due, step.due));
  }
  give_lease(record, caller, nullptr, now);
  return true;
}

namespace {

// When a value ends, by the server's clock: its ttl counts from `now`, however late the release
// arrives. For a lease of unknown age: its ttl, from the release on.
int64_t end_of_value(const HeldLease &held, int64_t ttl_ms, Nanos now) {
  const bool is_dated = held.since_ms() > 0 && held.handoff_count() == 0;
  return is_dated ? held.since_ms() + (now - held.granted_at()) / kMs + ttl_ms : ttl_ms;
}

std::unique_ptr<const protocol::Note> note_of(const Request &release, const TokenRecord &record,
                                              Nanos now) {
  const RequestArguments &what = *release.arguments;
  const protocol::LockKeys &keys = record.lock->keys;
  using protocol::Note;
  if (what.value_ttl == 0) {
    return std::make_unique<const Note>(Note{Note::Kind::kRun, protocol::mark_key(keys),
                                             what.period, record.held()->handoff_count()});
  }
  return std::make_unique<const Note>(
      Note{Note::Kind::kValue, protocol::value_key(keys),
           protocol::flight_text(*what.value, release.lease->fence.load()),
           end_of_value(record.held().get(), what.value_ttl / kMs, now)});
}

}  // namespace

void Waiters::release(const std::shared_ptr<Request> &request, Nanos now) {
  if (!leases_.is_held(*request, now)) return;
  TokenRecord &record = *request->lease->record;
  if (request->arguments) {
    if (!leases_.may_run(*request)) return;
    record.note = note_of(*request, record, now);
  } else if (hand_off_locally(record, now) || retain(record, now)) {
    return results_.finish(*request, Status::kOk);
  }
  leases_.give_back(record, request, now);
}

void Waiters::release_async(Lease &lease, Nanos now) {
  if (lease.record == nullptr) return;
  if (lease.record->phase == Phase::kDetaching) {
    lease.is_abandoned = true;  // the answer decides: Detach::on_refused()
    return;
  }
  TokenRecord &record = *lease.record;
  const bool is_held = now < lease.deadline.load();
  if (is_held && (hand_off_locally(record, now) || retain(record, now))) return;
  leases_.give_back(*lease.record, nullptr, now);
}

void Waiters::refuse_try(TokenRecord &record, Status status, std::string_view message, Nanos now) {
  if (const auto caller = take_front(record)) results_.finish(*caller, status, message);
  if (record.is_vote) return leases_.give_back(record, nullptr, now);
  cleanups_.start_gone(record, now);
}

void Waiters::fail_front(TokenRecord &record, Status status, std::string_view message, Nanos now) {
  const auto [caller, next] = take_with_place(record);
  if (caller) results_.finish(*caller, status, message);
  cleanups_.start(record, now, true);
  if (next != nullptr) ask(*next, now);
}

void Waiters::fail_callers(TokenRecord &record, Status status, std::string_view message, Nanos now,
                           bool may_be_held) {
  while (record.front() != nullptr) {
    const auto caller = take_front(record);
    if (!caller) break;  // a defect
    results_.finish(*caller, status, message);
  }
  cleanups_.start(record, now, may_be_held);
}

void Waiters::remove(Request &caller, Nanos now) {
  LockState &lock = *caller.lock;
  TokenRecord &record = caller.record != nullptr ? *caller.record : *lock.place();
  const auto keep =
      record.is_shared ? taken(lock.waitlist.give(&Waitlist::leave, caller)) : take_front(record);
  if (record.front() == nullptr) cleanups_.start(record, now);
}

Outcome Waiters::why_not_yet(const Request &request, const TokenRecord &record) const noexcept {
  const LockState &lock = *record.lock;
  const Server &server = *lock.server;
  if (request.is_recalling) {
    return {Status::kBusy,
            words::busy(lock.name, lock.obstacle, server.names.holder(lock.blocker))};
  }
  // No error of the server: the wait ran out, as behind a holder.
  if (record.trouble.is_slot_moving) {
    return {Status::kTimeout, words::not_granted_in_move(lock.name, request.wait_ms)};
  }
  if (!record.trouble.text.empty()) return {Status::kServer, words::same(record.trouble.text)};
  if (record.phase == Phase::kAsking && record.acquisition->is_outcome_unknown()) {
    return {Status::kOutcomeUnknown, words::acquire_unanswered(server.settings)};
  }
  if (redirects_.is_moving(lock) || (request.wait_ms == 0 && server.session.is_up())) {
    return {Status::kUnavailable, words::redirected_in_vain(lock.name, server.settings)};
  }
  if (!server.session.is_up()) return copy_of(server.session.failure());
  auto holder = server.names.holder(lock.blocker);
  if (waits_for_itself(request)) holder.kind = operate::Holder::Kind::kThread;
  return {Status::kTimeout, words::not_granted(lock.name, request.wait_ms, lock.obstacle, holder)};
}

}  // namespace redlatch::lock
