// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Engine: from the grant to the end.
#include "base/text.h"
#include "lock/engine.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

// ---- held --------------------------------------------------------------------------------------

// Set the lease's deadline and the hold's timer from what is known now.
void Engine::schedule(Hold &hold, Nanos now) {
  Lease &lease = *hold.lease;
  const Nanos end = hold.held().deadline();
  lease.deadline.store(end, std::memory_order_release);
  const Nanos due = std::min(hold.held().due(is_up()), hold.upgrade_due());
  timers_.set(hold, std::min(std::max(now, due), end));
  output_.lease_moved(lease);
}

void Engine::write_extend(protocol::Command &out, const Hold &hold, Nanos lease,
                          protocol::EvalMode eval, const protocol::HolderInfo *info) const {
  if (hold.is_sharing) {
    return protocol::extend_shared(out, features_, eval, hold.lock->keys, hold.identity(),
                                   lease / kMs, hold.held().attach_count() > 0);
  }
  protocol::extend(out, features_, eval, hold.lock->keys, hold.token, lease / kMs,
                   hold.held().is_described() || info != nullptr, info);
}

void Engine::send_extend(Hold &hold, const HeldLease::Step &step, Nanos now,
                         protocol::EvalMode eval) {
  verify(hold.held());
  assert(step.transition != HeldLease::Transition::kDefect);
  if (step.transition == HeldLease::Transition::kDefect) {
    return lose(hold, std::string(report_defect("held lease")), false, now);
  }
  if (step.command == HeldLease::Command::kNone) return;
  const protocol::HolderInfo info{settings_.holder, hold.held().label(), hold.held().since_ms()};
  protocol::Command command;
  write_extend(command, hold, step.ttl, eval, step.is_description ? &info : nullptr);
  const bool is_sent = try_send(command, InFlight{Ask::kExtend, eval, now, step.ttl,
                                                  hold.shared_from_this(), step.is_description});
  if (is_sent) {
    hold.held().sent(step.is_description);
  } else {
    hold.held().not_sent(now);
  }
  verify(hold.held());
  schedule(hold, now);
}

void Engine::on_extend_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  if (HeldLease *held = hold.held_lease()) held->on_answered();
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(in_flight.sent_at, now, answer.server_ms);
  if (hold.is_gone || hold.phase != Phase::kHeld) return;
  HeldLease &held = hold.held();
  // Callers were notified that it is lost: an answer that comes later does not bring it back.
  if (held.is_over(now)) return on_hold_due(hold, now);
  if (wants_text(refusal, in_flight)) {
    const auto step = held.on_unknown_script(in_flight.is_description, now, is_up());
    return send_extend(hold, step, now, protocol::EvalMode::kText);
  }
  if (refusal) {
    hold.trouble = refusal.message;
    held.on_refused(in_flight.is_description, now);
    verify(held);
    return schedule(hold, now);
  }
  if (answer.result < 1) return lose(hold, kTakenAway, true, now);
  note_mode(hold, answer.result == 2, now);
  hold.trouble.clear();
  const auto step = held.on_confirmed(
      {in_flight.sent_at, in_flight.lease, answer.server_ms, in_flight.is_description}, now,
      is_up(), entropy_.next());
  schedule(hold, now);
  send_extend(hold, step, now);
}

// The server has confirmed `lease` to a message sent at `sent_at`.
void Engine::prolong(Hold &hold, Nanos sent_at, Nanos lease, Nanos now) {
  const auto step = hold.held().prolong(sent_at, lease, now, entropy_.next());
  schedule(hold, now);
  send_extend(hold, step, now);
}

void Engine::on_hold_due(Hold &hold, Nanos now) {
  switch (hold.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      return front_of(hold) == nullptr ? clean_up(hold, now) : ask(hold, now);
    case Phase::kLeaving:
      return perform(hold, hold.cleanup().on_due(now, is_up()), now);
    case Phase::kDetaching:
      return;  // the answer, or the end of the request, decides
    case Phase::kHeld:
      break;
  }
  if (!hold.held().is_over(now)) {
    timers_.set(hold, hold.held().deadline());
    const bool is_upgrade_due = hold.upgrade_due() <= now;
    if (is_upgrade_due) resume_upgrade(hold, now);
    const bool is_renewal_due = !is_upgrade_due || hold.held().renewal_at() <= now;
    if (is_renewal_due) send_extend(hold, hold.held().on_due(now, is_up()), now);
    return;
  }
  timers_.set(hold, now + 10 * kMs);  // should the end fail for want of memory
  lose(hold, why_over(hold, now), false, now);
}

// A watch is notified of the end even without memory for the reason.
std::string Engine::why_over(const Hold &hold, Nanos now) const noexcept {
  try {
    if (now >= hold.held().end_at()) return "the longest hold was over";
    std::string reason = "the lease ended before a renewal was confirmed";
    if (!hold.held().is_renewed()) reason = "the lease ended, and renewal is off";
    if (!hold.trouble.empty()) reason += ": " + hold.trouble;
    if (link_ != Link::kUp) reason += ": " + link_failure_.message;
    return reason;
  } catch (const std::bad_alloc &) {
    return "its time ended";  // short: this needs no memory
  }
}

void Engine::start_extend(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  const bool is_rw_hash = request->lease->hold->lock->keys.format == protocol::Format::kHashRw;
  if (is_rw_hash && request->extend_to > kMaxHashRwLeaseMs * kMs) {
    return finish(*request, Status::kInvalid,
                  "lease of " + std::to_string(request->extend_to / kMs) +
                      " ms: allowed in RL_FORMAT_HASH_RW are at most " +
                      std::to_string(kMaxHashRwLeaseMs));
  }
  start_plain(request, now);
}

void Engine::on_extended(Request &request, Nanos sent_at, bool is_held, Nanos now) {
  Hold *hold = request.lease->hold;
  if (hold != nullptr && hold->phase == Phase::kHeld) {
    if (hold->held().is_over(now)) {
      on_hold_due(*hold, now);
    } else if (!is_held) {
      lose(*hold, kTakenAway, true, now);
    } else {
      const auto step = hold->held().change_ttl(sent_at, request.extend_to, now, entropy_.next());
      schedule(*hold, now);
      send_extend(*hold, step, now);
      if (!hold->held().is_over(now)) return finish_plain(request, Status::kOk);
      lose(*hold, "the answer to an extension came after the lease had ended", false, now);
    }
  }
  auto why = why_not_held(*request.lease);
  finish_plain(request, why.status, why.message);
}

// ---- the end -----------------------------------------------------------------------------------

// Whether the lease that `request` is about is still held; if not, the request is finished with
// why.
bool Engine::is_held(Request &request, Nanos now) {
  Lease &lease = *request.lease;
  if (lease.hold != nullptr && now >= lease.deadline.load()) on_hold_due(*lease.hold, now);
  if (lease.hold != nullptr && lease.hold->phase == Phase::kHeld) return true;
  const auto why = why_not_held(lease);
  finish(request, why.status, why.message);
  return false;
}

Outcome Engine::why_not_held(const Lease &lease) {
  const auto state = lease.state.load();
  if (state == Lease::kLost || state == Lease::kHeld) {
    const std::string reason = state == Lease::kHeld ? "its lease ended" : lease.reason;
    return failure(Status::kLost, "lock " + quoted(lease.name) + " was lost: " + reason);
  }
  return failure(Status::kNotHeld,
                 "lock " + quoted(lease.name) + " was released or detached before");
}

void Engine::end_lease(Hold &hold, Lease::State state, std::string reason) {
  const auto lease = std::move(hold.lease);
  lease->reason = std::move(reason);
  lease->hold = nullptr;
  lease->state.store(state, std::memory_order_release);
  Hold **at = &hold.lock->owned;
  while (*at != nullptr && *at != &hold) at = &(*at)->next_owned;
  if (*at != nullptr) *at = hold.next_owned;
  // The entry of an upgrade goes with what the token has: the scripts drop one that does not read.
  const bool is_lost = state == Lease::kLost;
  finish_upgrade(hold, is_lost ? Status::kLost : Status::kNotHeld,
                 is_lost ? std::string_view(lease->reason) : "released or detached meanwhile");
  if (hold.upgrade) {
    hold.upgrade->end();
    verify(*hold.upgrade);
  }
  output_.lease_ended(*lease);
}

void Engine::start_release(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  Hold &hold = *request->lease->hold;
  if (pass_on(hold, now)) return finish(*request, Status::kOk);
  give_back(hold, request, now);
}

// Give the lock to the next caller of this client without asking the server, if its turn allows.
bool Engine::pass_on(Hold &hold, Nanos now) {
  LockName &lock = *hold.lock;
  if (!hold.is_shared || hold.is_sharing || lock.waitlist.is_empty() || is_shut_) return false;
  const AcquireOptions &next = request_of(*lock.waitlist.front()).options;
  const int64_t limit = Waitlist::handoff_limit(next.local_burst, next.foreign.burst);
  if (!hold.held().may_hand_off(next.lease, next.is_confirmed, limit, now)) return false;
  end_lease(hold, Lease::kReleased, {});
  const auto step = lock.waitlist.hand_off(now);
  const auto caller = taken(lock, step);
  if (!caller) {
    give_back(hold, nullptr, now);
    return true;
  }
  Hold *place = place_of(lock);
  if (step.due != kNever && !place->acquisition.is_unanswered()) {
    timers_.set(*place, std::min(place->due, step.due));
  }
  give_lease(hold, *caller, nullptr, now);
  return true;
}

// A place in the queue without a caller must be cancelled before the release, which would grant it.
void Engine::leave_vacant(LockName &lock, Nanos now) {
  if (lock.waitlist.state() == Waitlist::State::kVacant) clean_up(*place_of(lock), now);
}

void Engine::give_back(Hold &hold, std::shared_ptr<Request> releaser, Nanos now) {
  if (hold.lease) end_lease(hold, Lease::kReleased, {});
  hold.releaser = std::move(releaser);
  if (hold.releaser) {
    hold.releaser->hold = &hold;
    if (link_ != Link::kUp) timers_.set(*hold.releaser, now + settings_.timeout);
  }
  if (hold.lock->waitlist.place() != &hold) leave_vacant(*hold.lock, now);
  clean_up(hold, now, true);
}

// `hold` is given up, with its place and its lock.
void Engine::clean_up(Hold &hold, Nanos now, bool may_be_held, Nanos not_before) {
  const bool is_unanswered = hold.upgrade && hold.upgrade->is_unanswered();
  ServerFootprint left = hold.acquisition.give_up(is_unanswered, now);
  left.may_be_held = left.may_be_held || may_be_held;
  start_cleanup(hold, left, not_before, now);
}

// The server has just said that it knows nothing of `hold`.
void Engine::clean_up_gone(Hold &hold, Nanos now) {
  ServerFootprint left = hold.acquisition.give_up(false, now);
  left.may_be_queued = left.may_be_held = false;
  start_cleanup(hold, left, 0, now);
}

void Engine::start_cleanup(Hold &hold, ServerFootprint left, Nanos not_before, Nanos now) {
  if (const HeldLease *held = hold.held_lease()) {
    if (held->state() == HeldLease::State::kHeld) held->leave(left);
    hold.stage.emplace<Cleanup>();
  }
  left.is_detached = hold.phase == Phase::kDetaching;
  hold.lock->waitlist.close(hold);
  verify(hold.lock->waitlist);
  set_phase(hold, Phase::kLeaving);
  perform(hold, hold.cleanup().start(left, not_before, now, is_up()), now);
}

void Engine::perform(Hold &hold, const Cleanup::Step &step, Nanos now, protocol::EvalMode eval) {
  verify(hold.cleanup());
  assert(step.result != Cleanup::Result::kDefect);
  if (step.result != Cleanup::Result::kNone) answer_release(hold, step.result);
  if (step.result == Cleanup::Result::kDefect) return;
  if (step.is_over) return forget(hold);
  timers_.set(hold, step.due);
  if (step.command == Cleanup::Command::kNone) return;
  const bool is_cancel = step.command == Cleanup::Command::kCancel;
  protocol::Command command;
  if (is_cancel) {
    protocol::cancel(command, features_, eval, hold.lock->keys, hold.acquisition.member(),
                     hold.owner);
  } else {
    protocol::release(command, features_, eval, hold.lock->keys, hold.identity(), hold.foreign,
                      1 + hold.cleanup().handoff_count());
  }
  const Ask what = is_cancel ? Ask::kCancel : Ask::kRelease;
  if (!try_send(command, InFlight{what, eval, now, 0, hold.shared_from_this()})) return;
  hold.cleanup().sent(step.command);
  verify(hold.cleanup());
}

// The answer to CANCEL or RELEASE.
void Engine::on_cleanup_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (hold.is_gone) return;
  Cleanup &cleanup = hold.cleanup();
  if (wants_text(refusal, in_flight)) {
    return perform(hold, cleanup.on_unknown_script(now, is_up()), now, protocol::EvalMode::kText);
  }
  const bool is_cancel = in_flight.ask == Ask::kCancel;
  if (refusal) {
    perform(hold, cleanup.on_refused(), now);
    if (!is_cancel) answer_releaser(hold, refusal.status(), refusal.message);
    return;
  }
  note_time(in_flight.sent_at, now, answer.server_ms);
  maybe_serve_queue(hold.lock, answer.has_more, now);
  perform(hold,
          is_cancel ? cleanup.on_cancel_answer(answer.result, now, is_up())
                    : cleanup.on_release_answer(answer.result, now, is_up()),
          now);
}

// The cleanup is over, or goes another way: the caller is answered even without memory for the
// reason.
void Engine::answer_lost_release(Hold &hold) noexcept {
  if (!hold.releaser) return;
  try {
    const std::string message =
        "lock " + quoted(hold.lock->name) +
        " was lost: before its release the server had another owner or none";
    answer_releaser(hold, Status::kLost, message);
  } catch (const std::bad_alloc &) {
    answer_releaser(hold, Status::kLost, {});
  }
}

void Engine::answer_release(Hold &hold, Cleanup::Result result) {
  switch (result) {
    case Cleanup::Result::kNone:
      return;
    case Cleanup::Result::kReleased:
      return answer_releaser(hold, Status::kOk);
    case Cleanup::Result::kStillHeld:
      return answer_releaser(hold, Status::kStillHeld);
    case Cleanup::Result::kLost:
      return answer_lost_release(hold);
    case Cleanup::Result::kUnknown:
      return answer_releaser(hold, Status::kOutcomeUnknown, "no answer until the lease had ended");
    case Cleanup::Result::kDefect:
      return answer_releaser(hold, Status::kInternal, report_defect("cleanup"));
  }
}

void Engine::answer_releaser(Hold &hold, Status status, std::string_view message) {
  if (!hold.releaser) return;
  const auto releaser = std::move(hold.releaser);
  releaser->hold = nullptr;
  finish(*releaser, status, message);
}

void Engine::lose(Hold &hold, std::string reason, bool is_gone, Nanos now) {
  const auto keep = hold.shared_from_this();
  // A token may still be queued if a message granted it that no script of ours may have sent, and
  // queued again if a poll crossed the grant.
  Acquisition &acquisition = hold.acquisition;
  if (is_gone && hold.held().is_provisional()) acquisition.on_requeued();
  const bool may_be_queued = acquisition.may_be_queued();
  hold.lease->is_gone = is_gone && !may_be_queued && acquisition.late_apply_until() <= now;
  end_lease(hold, Lease::kLost, std::move(reason));
  leave_vacant(*hold.lock, now);
  if (is_gone && !may_be_queued) return clean_up_gone(hold, now);
  clean_up(hold, now, !is_gone, is_gone ? 0 : now + timing::notice_of(hold.held().ttl()));
}

// `hold` was granted a lock that this client believes to hold already: that one was forced or
// evicted, and would otherwise not know before its next renewal.
void Engine::lose_predecessor(const Hold &hold, Nanos now) {
  Hold *before = hold.lock->holder;
  if (before != nullptr && before != &hold) lose(*before, kTakenAway, true, now);
}

void Engine::drop(Lease &lease, Nanos now) {
  if (lease.hold == nullptr) return;
  const auto hold = lease.hold->shared_from_this();
  end_lease(*hold, Lease::kDetached, {});
  leave_vacant(*hold->lock, now);
  forget(*hold);
}

void Engine::abandon(Lease &lease, Nanos now) {
  if (lease.hold == nullptr || lease.hold->phase == Phase::kDetaching) return;
  if (now < lease.deadline.load() && pass_on(*lease.hold, now)) return;
  give_back(*lease.hold, nullptr, now);
}

void Engine::abandon_lost(Lease &lease, Nanos now) {
  if (lease.hold == nullptr || lease.hold->phase == Phase::kDetaching) return;
  lose(*lease.hold, {}, false, now);
}

void Engine::forget(Hold &hold) {
  const auto keep = hold.shared_from_this();
  if (hold.phase != Phase::kLeaving) set_phase(hold, Phase::kLeaving);
  hold.is_gone = true;
  timers_.remove(hold);
  timers_.dismiss();
  hold.lock->waitlist.close(hold);
  if (--hold.lock->hold_count == 0) names_.erase(id_of(*hold.lock));
  holds_.erase(hold.id);
}

}  // namespace redlatch::lock
