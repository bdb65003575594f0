// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Engine: from the call to the grant.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "lock/engine.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

// .. and granted to the same token again: others held in between.
constexpr char kForced[] = "it was taken by force";

constexpr char kHeldAlone[] = "held";

// How far a fence may be ahead of the server's clock, in us: as far as the clock may have gone back
// while the fence key lives. A fence further ahead is taken from an answer only.
constexpr int64_t kLargestFenceLead = 3600LL * 1'000'000;

// Why a caller does not get the lock.
std::string obstacle_in(const protocol::AcquireAnswer &answer) {
  if (answer.is_left_to_others()) return "it is left to other lock libraries";
  if (answer.type == "none") return "others wait for it";
  if (answer.holder.empty()) {
    return "its key holds a " + std::string(answer.type) + ": no lock, or one of another format";
  }
  if (answer.is_foreign()) return "held by another lock library";
  return answer.is_shared() ? "held by readers" : kHeldAlone;
}

std::string busy_message(const LockName &lock, const protocol::AcquireAnswer &answer) {
  const std::string message = "lock " + quoted(lock.name) + " is busy: " + lock.obstacle;
  const std::string left = std::to_string(answer.pttl_ms) + " ms";
  if (answer.is_left_to_others()) return message + " for " + left;
  if (answer.holder.empty()) return message;
  if (answer.pttl_ms < 0) return message + " without a time limit";
  return message + ", its lease ends in " + left;
}

}  // namespace

void Engine::set_phase(Hold &hold, Phase phase) {
  const auto is_waiting = [](Phase p) { return p == Phase::kAsking || p == Phase::kQueued; };
  if (is_waiting(hold.phase)) waiting_hold_count_--;
  if (is_waiting(phase)) waiting_hold_count_++;
  if (phase == Phase::kHeld) {
    if (hold.is_sharing) hold.lock->has_sharers = true;
    if (!hold.is_sharing) hold.lock->holder = &hold;
  } else if (hold.lock->holder == &hold) {
    hold.lock->holder = nullptr;
  }
  hold.phase = phase;
  note_waiting(hold);
}

std::shared_ptr<LockName> Engine::name_of(std::string_view name, protocol::Format format) {
  if (const auto found = names_.find({format, name}); found != names_.end()) return found->second;
  auto lock = std::make_shared<LockName>(settings_.name_space, name, format);
  names_.emplace(id_of(*lock), lock);
  return lock;
}

Hold &Engine::new_hold(const std::shared_ptr<LockName> &lock, const Request &caller) {
  const bool is_shared = shares_place(caller);
  // Before the hold is known: what follows may fail, and costs no more than a slot.
  timers_.admit();
  last_id_ = std::max(last_id_ + 1, caller.rid);
  auto hold = std::make_shared<Hold>(last_id_);
  hold->lock = lock;
  hold->is_vote = caller.rid != 0;
  hold->is_shared = is_shared;
  hold->token = protocol::make_token(cid_, hold->is_vote ? caller.rid : hold->id);
  const AcquireOptions &options = caller.options;
  const bool is_hash = options.format == protocol::Format::kHash;
  hold->mode = options.mode;
  hold->is_sharing =
      options.format != protocol::Format::kString || options.mode == protocol::Mode::kRead;
  hold->owner = is_hash && options.owner.empty() ? hold->token : options.owner;
  // A shared place outlives the caller that opened it; it is cancelled when no caller is left.
  const int64_t provisional_ms = std::min(options.lease / kMs, kClaimMs);
  hold->acquisition.open(waits(caller)
                             ? protocol::make_member(hold->token, options.mode, provisional_ms,
                                                     is_shared ? -1 : caller.wait_ms,
                                                     is_hash ? options.owner : std::string_view())
                             : std::string(),
                         provisional_ms, options.lease);
  hold->is_unfenced = options.is_unfenced;
  hold->foreign = caller.options.foreign;
  holds_.emplace_hint(holds_.end(), hold->id, hold);
  lock->hold_count++;
  waiting_hold_count_++;
  return *hold;
}

Request *Engine::front_of(const Hold &hold) {
  if (!hold.is_shared) return hold.caller.get();
  const Waitlist &waitlist = hold.lock->waitlist;
  return waitlist.is_empty() ? nullptr : &request_of(*waitlist.front());
}

Acquisition::Front Engine::front_terms(const Hold &hold) {
  const Request *front = front_of(hold);
  if (front == nullptr) return {};
  return {true, front->options.is_confirmed, front->options.lease};
}

std::shared_ptr<Request> Engine::take_front(Hold &hold) {
  if (hold.is_shared) return taken(*hold.lock, hold.lock->waitlist.take());
  auto caller = std::exchange(hold.caller, nullptr);
  caller->hold = nullptr;
  return caller;
}

// The caller that a step takes off the waitlist; null: the step is a defect.
std::shared_ptr<Request> Engine::taken(const LockName &lock, const Waitlist::Step &step) {
  verify(lock.waitlist);
  assert(step.transition != Waitlist::Transition::kDefect);
  if (step.caller != nullptr) return std::exchange(request_of(*step.caller).listed, nullptr);
  (void)report_defect("waitlist");
  return nullptr;
}

// Whether the owner has the lock already, so that it would wait for itself; then the request is
// finished with why.
bool Engine::is_misused(Request &request, Nanos now) {
  const AcquireOptions &options = request.options;
  if (options.owner.empty() || options.format == protocol::Format::kHash) return false;
  const auto found = names_.find({options.format, request.name});
  const Hold *hold = found == names_.end() ? nullptr : found->second->owned;
  const auto is_in_the_way = [&](const Hold &other) {
    const bool both_read = other.mode == protocol::Mode::kRead && !other.upgrader &&
                           options.mode == protocol::Mode::kRead;
    return other.owner == options.owner && !both_read && other.lease->state_at(now) == Lease::kHeld;
  };
  while (hold != nullptr && !is_in_the_way(*hold)) hold = hold->next_owned;
  if (hold == nullptr) return false;
  const char *what = hold->mode == protocol::Mode::kRead ? "reads already: upgrade that lease"
                     : options.mode == protocol::Mode::kRead
                         ? "writes already: downgrade that lease"
                         : "has it already, and it is not reentrant";
  finish(request, Status::kAlreadyHeld, "lock " + quoted(request.name) + ": its owner " + what);
  return true;
}

// Another lease by which the owner of `hold` reads already.
std::string_view Engine::sibling_of(const Hold &hold) {
  if (hold.mode != protocol::Mode::kRead || hold.owner.empty()) return {};
  const Hold *other = hold.lock->owned;
  while (other != nullptr && (other->owner != hold.owner || other->mode != protocol::Mode::kRead)) {
    other = other->next_owned;
  }
  return other == nullptr ? std::string_view() : other->token;
}

void Engine::start_acquire(const std::shared_ptr<Request> &request, Nanos now) {
  if (is_misused(*request, now)) return;
  const auto lock = name_of(request->name, request->options.format);
  request->lock = lock;
  request->lease->name = std::move(request->name);
  request->lease->token.reserve(protocol::kTokenSize);  // a grant must not fail for want of memory
  const bool is_shared = shares_place(*request);
  Hold *created = nullptr;
  try {
    const bool has_place = is_shared && lock->waitlist.place() != nullptr;
    if (!has_place) created = &new_hold(lock, *request);
    if (is_shared) {
      if (created != nullptr) (void)lock->waitlist.open(*created);
      if (!join(*lock, request)) {
        return finish(*request, Status::kInternal, report_defect("waitlist"));
      }
    } else {
      created->caller = request;
      request->hold = created;
    }
  } catch (...) {
    if (lock->hold_count == 0) names_.erase(id_of(*lock));
    throw;
  }
  if (request->wait_ms > 0) {
    request->wait_until = after(now, request->wait_ms * kMs);
    timers_.set(*request, now + timing::slow_after(request->wait_ms * kMs));
  }
  if (request->wait_ms == 0) connect_soon(now);
  if (created != nullptr) ask(*created, now);
}

bool Engine::join(LockName &lock, const std::shared_ptr<Request> &caller) {
  const auto step = lock.waitlist.join(*caller);
  verify(lock.waitlist);
  assert(step.transition != Waitlist::Transition::kDefect);
  if (step.transition == Waitlist::Transition::kDefect) return false;
  caller->listed = caller;
  return true;
}

// Send ACQUIRE: the first time, as a poll, or after a lost answer. The same token each time.
void Engine::ask(Hold &hold, Nanos now, protocol::EvalMode eval) {
  if (!hold.acquisition.may_ask(is_up()) || hold.is_lined_up) return;
  if (eval == protocol::EvalMode::kDigest && must_line_up(hold)) return;
  send_ask(hold, now, eval);
}

void Engine::send_ask(Hold &hold, Nanos now, protocol::EvalMode eval) {
  Acquisition &acquisition = hold.acquisition;
  acquisition.prepare(front_terms(hold));
  const Nanos ttl = acquisition.ttl();
  if (const Request *front = front_of(hold)) {
    hold.foreign = front->options.foreign;
  }
  protocol::Command command;
  protocol::acquire(command, features_, eval, hold.lock->keys,
                    {hold.mode, hold.identity(), ttl / kMs, acquisition.member(),
                     acquisition.ticket(), sibling_of(hold), hold.is_unfenced});
  timers_.remove(hold);
  if (try_send(command, InFlight{Ask::kAcquire, eval, now, ttl, hold.shared_from_this()})) {
    return acquisition.sent();
  }
  const auto step = acquisition.not_sent(now);
  if (step.transition != Acquisition::Transition::kFailed) return perform(hold, step, now);
  fail_callers(hold, Status::kNoMemory, {}, now);
}

// Whether others have to be answered first. First come, first asked for.
bool Engine::must_line_up(Hold &hold) {
  while (!lined_up_.empty() && lined_up_.back()->is_gone) lined_up_.pop_back();
  const bool is_room = in_flight_.size() < kMaxInFlight && lined_up_.empty();
  if (is_room) return false;
  try {
    lined_up_.push_back(hold.shared_from_this());
  } catch (const std::bad_alloc &) {
    return false;  // a limit is a courtesy, a place is not
  }
  hold.is_lined_up = true;
  timers_.remove(hold);
  return true;
}

void Engine::ask_next(Nanos now) {
  while (!lined_up_.empty() && in_flight_.size() < kMaxInFlight) {
    const auto hold = std::move(lined_up_.front());
    lined_up_.pop_front();
    hold->is_lined_up = false;
    const bool is_wanted = hold->phase == Phase::kAsking || hold->phase == Phase::kQueued;
    if (hold->is_gone || !is_wanted) continue;
    send_ask(*hold, now, protocol::EvalMode::kDigest);
  }
}

void Engine::on_acquire_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  hold.acquisition.on_answered();
  protocol::AcquireAnswer answer;
  const auto refusal = hold.is_unfenced ? decode_vote(reply, answer) : decode(reply, answer);
  if (!refusal) note_time(in_flight.sent_at, now, answer.server_ms);
  if (hold.is_gone) return;
  switch (hold.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      if (wants_text(refusal, in_flight)) return ask(hold, now, protocol::EvalMode::kText);
      if (refusal) return on_acquire_refused(hold, refusal, now);
      return answer.is_granted ? on_granted(hold, in_flight, answer, now)
                               : on_queued(hold, answer, now);
    case Phase::kHeld:
      // A poll that crossed a pushed grant. Refused, it may have put the token back into the queue.
      if (hold.held().is_over(now)) return on_hold_due(hold, now);
      if (!refusal && answer.is_granted && answer.fence != hold.held().granted_fence()) {
        return lose(hold, kForced, false, now);
      }
      if (!refusal && answer.is_granted) prolong(hold, in_flight.sent_at, in_flight.lease, now);
      if (!refusal && !answer.is_granted) hold.acquisition.on_requeued();
      // An upgrade that was started meanwhile has waited for this answer.
      if (hold.upgrader) resume_upgrade(hold, now);
      return;
    case Phase::kDetaching:
      if (!refusal && !answer.is_granted) hold.acquisition.on_requeued();
      return;
    case Phase::kLeaving:
      return;  // what was sent behind it decides
  }
}

void Engine::on_granted(Hold &hold, const InFlight &in_flight,
                        const protocol::AcquireAnswer &answer, Nanos now) {
  const auto step = hold.acquisition.on_granted(
      {in_flight.sent_at, in_flight.lease, answer.fence, answer.server_ms}, front_terms(hold), now);
  if (step.transition == Acquisition::Transition::kTooShort) {
    return fail_front(hold, Status::kInvalid,
                      "lease of " + std::to_string(front_of(hold)->options.lease / kMs) +
                          " ms is too short for this network: the answer took " +
                          std::to_string((now - in_flight.sent_at) / kMs) + " ms",
                      now);
  }
  if (step.transition == Acquisition::Transition::kGranted) {
    front_of(hold)->lease->hold_count = answer.hold_count;
  }
  perform(hold, step, now);
}

void Engine::perform(Hold &hold, const Acquisition::Step &step, Nanos now) {
  using Transition = Acquisition::Transition;
  verify(hold.acquisition);
  assert(step.transition != Transition::kDefect);
  switch (step.transition) {
    case Transition::kNone:
      break;
    case Transition::kGranted:
      return serve_front(hold, step.grant, now);
    case Transition::kUnwanted:
      return give_back(hold, nullptr, now);
    default:
      return fail_callers(hold, Status::kInternal, report_defect("acquisition"), now);
  }
  if (step.command == Acquisition::Command::kAcquire) return ask(hold, now);
  if (step.due != kNever) timers_.set(hold, step.due);
}

void Engine::on_queued(Hold &hold, const protocol::AcquireAnswer &answer, Nanos now) {
  // One call drops a limited number of dead waiters: the next call continues at once.
  Acquisition &acquisition = hold.acquisition;
  if (!acquisition.is_queueable() && answer.has_more) return ask(hold, now);
  LockName &lock = *hold.lock;
  lock.blocker = answer.token().substr(0, protocol::kCidSize);
  lock.obstacle = obstacle_in(answer);
  if (!acquisition.is_queueable()) {
    const std::string message = busy_message(lock, answer);
    if (awaits_name(hold, message, now)) return;
    return refuse_try(hold, message + words_of_blocker(lock.blocker), now);
  }
  ask_wanted_name(lock, now);
  announce_by(now);
  const auto queued = acquisition.on_queued(answer.ticket, answer.key_digest);
  if (queued.transition != Acquisition::Transition::kNone) return perform(hold, queued, now);
  hold.trouble.clear();
  set_phase(hold, Phase::kQueued);
  hold.watcher.set_rank(std::max<int64_t>(answer.rank, 0));
  const Nanos delay = watch_key(hold, answer, now);
  perform(hold, acquisition.wait(delay, answer.has_more, front_terms(hold), now), now);
}

void Engine::refuse_try(Hold &hold, std::string_view message, Nanos now) {
  finish(*take_front(hold), Status::kBusy, message);
  if (hold.is_vote) return give_back(hold, nullptr, now);
  clean_up_gone(hold, now);
}

void Engine::on_acquire_refused(Hold &hold, const protocol::Refusal &refusal, Nanos now) {
  const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
  if (!may_pass || !hold.acquisition.is_queueable()) {
    return fail_callers(hold, refusal.status(), refusal.message, now);
  }
  hold.trouble = refusal.message;
  perform(hold, hold.acquisition.on_postponed(now, entropy_.next()), now);
}

// Whether a script of ours can have minted the fence of a pushed grant. Other users of the server
// may be allowed to publish on our channel; an invented fence must not reach a resource, which
// would then refuse all later holders.
bool Engine::is_fence_plausible(const Hold &hold, const protocol::Push &push) {
  const int64_t us = push.server_ms * 1000;
  if (push.fence > us + kLargestFenceLead) return false;
  // Readers, and the holds of one owner, share a fence that was minted earlier.
  const bool is_shared =
      hold.mode == protocol::Mode::kRead || hold.lock->keys.format == protocol::Format::kHash;
  if (is_shared) return push.fence >= hold.lock->highest_fence;
  return push.fence > hold.lock->highest_fence && push.fence >= us;
}

void Engine::on_grant_push(Hold &hold, const protocol::Push &push, Nanos now) {
  if (hold.phase == Phase::kDetaching) return;
  if (hold.phase == Phase::kLeaving) {
    return perform(hold, hold.cleanup().on_grant(now, is_up()), now);
  }
  if (push.mode == protocol::Mode::kUpgrade) return on_upgrade_push(hold, now);
  if (push.mode != hold.mode) return;
  if (hold.phase == Phase::kHeld) {
    const bool is_later = push.fence > hold.held().granted_fence();
    if (is_later && push.key_digest == hold.acquisition.key_digest())
      lose(hold, kForced, false, now);
    return;
  }
  const auto granted_at = clock_offset_.local_time(push.server_ms, now);
  const Acquisition::Message message{.key_digest = push.key_digest,
                                     .provisional_ms = push.ms,
                                     .granted_at = granted_at,
                                     .fence = push.fence,
                                     .server_ms = push.server_ms,
                                     .is_plausible = is_fence_plausible(hold, push)};
  perform(hold, hold.acquisition.on_message(message, front_terms(hold), now), now);
}

// The first caller leaves the queue, and uses up `hold`. The others get a new place in the server's
// queue, to be asked for afterwards.
Engine::Served Engine::take_with_place(Hold &hold) {
  if (!hold.is_shared) return {take_front(hold), nullptr};
  LockName &lock = *hold.lock;
  Waitlist::Caller *second = lock.waitlist.second();
  Hold *next = second == nullptr ? nullptr : &new_hold(hold.lock, request_of(*second));
  return {taken(lock, lock.waitlist.serve(hold, next)), next};
}

void Engine::serve_front(Hold &hold, const Grant &grant, Nanos now) {
  lose_predecessor(hold, now);
  const auto [caller, next] = take_with_place(hold);
  if (!caller) return give_back(hold, nullptr, now);
  hold.acquisition.served();
  set_phase(hold, Phase::kHeld);
  give_lease(hold, *caller, &grant, now);
  if (next != nullptr) ask(*next, now);
}

// `grant`: of the server; null: handed off by the caller before.
void Engine::give_lease(Hold &hold, Request &caller, const Grant *grant, Nanos now) {
  auto &options = caller.options;
  Lease &lease = *caller.lease;
  const LeaseTerms terms{.ttl = options.lease,
                         .end_at = options.max_hold > 0 ? after(now, options.max_hold) : kNever,
                         .is_renewed = options.is_renewed,
                         .is_described = !hold.is_sharing};
  const auto step = grant != nullptr ? hold.held().start(*grant, terms, options.label, now, is_up())
                                     : hold.held().hand_off(terms, options.label, now, is_up());
  lease.fence = hold.held().fence();
  hold.lock->highest_fence = std::max(hold.lock->highest_fence, lease.fence.load());
  lease.mode = hold.mode;
  lease.token = hold.token;
  lease.end_at = terms.end_at;
  lease.hold = &hold;
  hold.lease = caller.lease;
  hold.foreign = options.foreign;
  if (hold.lock->keys.format != protocol::Format::kHash) hold.owner.swap(caller.options.owner);
  if (!hold.owner.empty()) hold.next_owned = std::exchange(hold.lock->owned, &hold);
  lease.state.store(Lease::kHeld, std::memory_order_release);
  announce_held(now);
  schedule(hold, now);
  finish(caller, Status::kOk);
  const bool is_quiet =
      step.command == HeldLease::Command::kNone && step.transition == HeldLease::Transition::kNone;
  if (!is_quiet) send_extend(hold, step, now);
}

void Engine::fail_front(Hold &hold, Status status, std::string_view message, Nanos now) {
  const auto [caller, next] = take_with_place(hold);
  if (caller) finish(*caller, status, message);
  clean_up(hold, now, true);
  if (next != nullptr) ask(*next, now);
}

void Engine::fail_callers(Hold &hold, Status status, std::string_view message, Nanos now) {
  while (front_of(hold) != nullptr) finish(*take_front(hold), status, message);
  clean_up(hold, now);
}

// `caller` is finished; its place goes to the others, or back to the server.
void Engine::leave_queue(Request &caller, Nanos now) {
  LockName &lock = *caller.lock;
  Hold &hold = caller.hold != nullptr ? *caller.hold : *place_of(lock);
  const auto keep = hold.is_shared ? taken(lock, lock.waitlist.leave(caller)) : take_front(hold);
  if (front_of(hold) == nullptr) clean_up(hold, now);
}

bool Engine::is_queued(const Request &request) {
  if (request.op == Request::Op::kUpgrade && request.hold != nullptr) {
    return request.hold->upgrade->is_queued();
  }
  if (request.op != Request::Op::kAcquire || !request.lock) return false;
  if (request.hold != nullptr) return request.hold->phase == Phase::kQueued;
  const LockName &lock = *request.lock;
  const Hold *place = place_of(lock);
  if (place == nullptr) return false;
  return place->phase == Phase::kQueued || lock.waitlist.front() != &request;
}

Outcome Engine::why_not_yet(const Request &request, const Hold &hold) const {
  if (!hold.trouble.empty()) return failure(Status::kServer, hold.trouble);
  if (hold.phase == Phase::kAsking && hold.acquisition.is_outcome_unknown()) {
    return failure(Status::kOutcomeUnknown, "sent to " + settings_.address() +
                                                ", but no answer came within the wait; a clean-up "
                                                "goes on in the background");
  }
  if (link_ != Link::kUp) return link_failure_;
  const LockName &lock = *hold.lock;
  const std::string holder = waits_for_itself(request) ? "; holder: the thread that waits"
                                                       : words_of_blocker(lock.blocker);
  const bool is_obvious = lock.obstacle.empty() || (lock.obstacle == kHeldAlone && !holder.empty());
  return failure(Status::kTimeout, "lock " + quoted(lock.name) + " was not granted within " +
                                       in_seconds(request.wait_ms) +
                                       (is_obvious ? "" : ": " + lock.obstacle) + holder);
}

}  // namespace redlatch::lock
