// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Engine: from reading to writing, and back. It gives the events to Upgrade and carries out what
// that returns.
#include <new>

#include "base/text.h"
#include "lock/engine.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

Upgrade &Engine::upgrade_of(Hold &hold) {
  if (!hold.upgrade) hold.upgrade = std::make_unique<Upgrade>();
  return *hold.upgrade;
}

void Engine::start_upgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  Hold &hold = *request->lease->hold;
  if (hold.mode == protocol::Mode::kWrite) return finish(*request, Status::kOk);
  if (hold.upgrade && hold.upgrade->is_wanted()) {
    return finish(*request, Status::kDeadlock,
                  "lock " + quoted(request->lease->name) + ": this lease waits to upgrade already");
  }
  for (const Hold *other = hold.lock->owned; other != nullptr; other = other->next_owned) {
    if (other == &hold || other->owner != hold.owner) continue;
    if (other->lease->state_at(now) != Lease::kHeld) continue;
    return finish(*request, Status::kDeadlock,
                  "lock " + quoted(request->lease->name) +
                      ": its owner reads by another lease as well, and would wait for itself");
  }
  Upgrade &upgrade = upgrade_of(hold);
  hold.upgrader = request;
  note_waiting(hold);
  request->hold = &hold;
  waiting_hold_count_++;
  const Nanos limit = request->wait_ms == 0 ? settings_.timeout : request->wait_ms * kMs;
  if (request->wait_ms >= 0) timers_.set(*request, after(now, limit));
  if (request->wait_ms == 0) connect_soon(now);
  const auto step = upgrade.start(request->wait_ms == 0, now, link_of(hold));
  const bool is_later = step.command == Upgrade::Command::kNone;
  if (is_later && step.transition == Upgrade::Transition::kNone) return;
  try {
    carry_out(hold, step, now);
  } catch (const std::bad_alloc &) {
    return;  // the timer asks again
  }
}

void Engine::carry_out(Hold &hold, Upgrade::Step step, Nanos now, protocol::EvalMode eval) {
  using Command = Upgrade::Command;
  assert(step.transition != Upgrade::Transition::kDefect);
  if (step.transition == Upgrade::Transition::kDefect) {
    finish_upgrade(hold, Status::kInternal, report_defect("upgrade"));
    step = hold.upgrade->give_up(now, link_of(hold));
  }
  verify(*hold.upgrade);
  schedule(hold, now);
  if (step.command == Command::kNone) return;
  const bool is_upgrade = step.command == Command::kUpgrade;
  const Nanos lease =
      is_upgrade ? timing::lease_within(hold.held().ttl(), now, hold.held().end_at()) : 0;
  protocol::Command command;
  write_upgrade(command, hold, step.command, lease, eval);
  const Ask ask = is_upgrade ? Ask::kUpgrade : Ask::kRollBack;
  if (try_send(command, InFlight{ask, eval, now, lease, hold.shared_from_this()})) {
    hold.upgrade->sent(step.command);
  } else {
    hold.upgrade->not_sent(step.command);
  }
  verify(*hold.upgrade);
  schedule(hold, now);
}

void Engine::write_upgrade(protocol::Command &out, Hold &hold, Upgrade::Command what, Nanos lease,
                           protocol::EvalMode eval) const {
  const protocol::LockKeys &keys = hold.lock->keys;
  Upgrade &upgrade = *hold.upgrade;
  if (what == Upgrade::Command::kCancel) {
    return protocol::cancel(out, features_, eval, keys, upgrade.member(), hold.owner);
  }
  if (what == Upgrade::Command::kDowngrade) {
    return protocol::downgrade(out, features_, eval, keys, hold.token, hold.held().ttl() / kMs, 0);
  }
  if (upgrade.needs_member()) {
    upgrade.set_member(upgrade.is_one_try()
                           ? std::string()
                           : protocol::make_member(hold.token, protocol::Mode::kUpgrade,
                                                   std::min(hold.held().ttl() / kMs, kClaimMs),
                                                   hold.upgrader->wait_ms));
  }
  protocol::acquire(
      out, features_, eval, keys,
      {protocol::Mode::kUpgrade, hold.identity(), lease / kMs, upgrade.member(), upgrade.ticket()});
}

void Engine::on_upgrade_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  hold.upgrade->on_answered();
  protocol::AcquireAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(in_flight.sent_at, now, answer.server_ms);
  if (hold.is_gone || hold.phase != Phase::kHeld) return;
  if (hold.held().is_over(now)) return on_hold_due(hold, now);
  // Given up, or to be rolled back: what was sent behind this decides.
  if (!hold.upgrade->awaits_answer()) return;
  if (wants_text(refusal, in_flight)) return resume_upgrade(hold, now, protocol::EvalMode::kText);
  if (refusal) return on_upgrade_refused(hold, refusal, now);
  if (answer.is_lost) return lose(hold, kTakenAway, true, now);
  if (answer.is_granted) {
    const auto step = hold.upgrade->on_granted();
    verify(*hold.upgrade);
    if (step.transition == Upgrade::Transition::kDefect) return carry_out(hold, step, now);
    become_writer(hold, answer.fence, answer.server_ms);
    return prolong(hold, in_flight.sent_at, in_flight.lease, now);
  }
  if (answer.is_deadlock || hold.upgrade->is_one_try()) {
    const auto status = answer.is_deadlock ? Status::kDeadlock : Status::kBusy;
    const char *why = answer.is_deadlock ? ": another reader waits to upgrade, and would wait for "
                                           "this one: release or downgrade it first"
                                         : " is busy: others read as well";
    const auto step = hold.upgrade->on_denied(now, link_of(hold));
    finish_upgrade(hold, status, "lock " + quoted(hold.lock->name) + why);
    return carry_out(hold, step, now);
  }
  hold.watcher.set_rank(0);  // before all other waiters
  const Nanos delay = watch_key(hold, answer, now);
  carry_out(hold, hold.upgrade->on_queued(answer.ticket, now + delay), now);
}

void Engine::on_upgrade_refused(Hold &hold, const protocol::Refusal &refusal, Nanos now) {
  const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
  if (may_pass && !hold.upgrade->is_one_try()) {
    return carry_out(hold, hold.upgrade->on_postponed(now, entropy_.next()), now);
  }
  const auto step = hold.upgrade->on_refused(now, link_of(hold));
  finish_upgrade(hold, refusal.status(), refusal.message);
  carry_out(hold, step, now);
}

void Engine::on_upgrade_push(Hold &hold, Nanos now) {
  if (hold.phase != Phase::kHeld || hold.mode == protocol::Mode::kWrite) return;
  if (hold.held().is_over(now)) return on_hold_due(hold, now);
  carry_out(hold, upgrade_of(hold).on_grant_pushed(now, link_of(hold)), now);
}

void Engine::become_writer(Hold &hold, int64_t fence, int64_t server_ms) {
  hold.mode = protocol::Mode::kWrite;
  hold.held().on_upgraded(fence, server_ms);
  hold.lease->fence = fence;
  hold.lock->highest_fence = std::max(hold.lock->highest_fence, fence);
  hold.lease->mode = hold.mode;
  hold.lock->holder = &hold;
  finish_upgrade(hold, Status::kOk);
}

void Engine::finish_upgrade(Hold &hold, Status status, std::string_view message) {
  if (!hold.upgrader) return;
  const auto request = std::move(hold.upgrader);
  note_waiting(hold);
  request->hold = nullptr;
  waiting_hold_count_--;
  finish(*request, status, message);
}

// The upgrade has failed, and the lease reads on.
void Engine::give_up_upgrade(Hold &hold, Status status, std::string_view message, Nanos now) {
  finish_upgrade(hold, status, message);
  carry_out(hold, hold.upgrade->give_up(now, link_of(hold)), now);
}

void Engine::on_rollback_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  hold.upgrade->on_rollback_answered();
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(in_flight.sent_at, now, answer.server_ms);
  if (!refusal) maybe_serve_queue(hold.lock, answer.has_more, now);
  if (hold.is_gone || hold.phase != Phase::kHeld) return;
  if (wants_text(refusal, in_flight)) return resume_upgrade(hold, now, protocol::EvalMode::kText);
  if (refusal) return carry_out(hold, hold.upgrade->on_rollback_refused(now), now);
  const auto step = hold.upgrade->on_rolled_back(answer.result, now, link_of(hold));
  if (step.transition == Upgrade::Transition::kLost) return lose(hold, kTakenAway, true, now);
  carry_out(hold, step, now);
}

void Engine::start_downgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  Hold &hold = *request->lease->hold;
  if (hold.lock->keys.format == protocol::Format::kHash) {
    return finish(*request, Status::kInvalid,
                  "lock " + quoted(hold.lock->name) + " is reentrant: it has no readers");
  }
  if (hold.mode == protocol::Mode::kRead) return finish(*request, Status::kOk);
  (void)upgrade_of(hold);  // should it fail, it is rolled back, which must not need memory
  hold.is_sharing = true;
  hold.held().on_downgrade();
  start_plain(request, now);
  // From here on it is only certain that it reads; readers may enter before the answer comes.
  if (hold.lease) become_reader(hold);
}

// The answer to a downgrade no longer has a caller, or was a refusal: it continues by itself.
void Engine::leave_downgrade(Request &request, Nanos now) {
  if (request.op != Request::Op::kDowngrade) return;
  Hold *hold = request.lease->hold;
  if (hold == nullptr) return;
  hold->upgrade->on_downgrade_failed();
  if (hold->phase == Phase::kHeld) resume_upgrade(*hold, now);
}

void Engine::on_downgraded(Request &request, const InFlight &in_flight, bool is_held, Nanos now) {
  Hold *hold = request.lease->hold;
  if (hold != nullptr && hold->phase == Phase::kHeld) {
    if (hold->held().is_over(now)) {
      on_hold_due(*hold, now);
    } else if (!is_held) {
      lose(*hold, kTakenAway, true, now);
    } else {
      prolong(*hold, in_flight.sent_at, in_flight.lease, now);
      return finish_plain(request, Status::kOk);
    }
  }
  auto why = why_not_held(*request.lease);
  finish_plain(request, why.status, why.message);
}

void Engine::become_reader(Hold &hold) {
  hold.mode = protocol::Mode::kRead;
  hold.lease->mode = hold.mode;
  if (hold.lock->holder == &hold) hold.lock->holder = nullptr;
}

// What the answer to an extension says of a hold that may share: the answer to DOWNGRADE may have
// been lost, or a late copy of UPGRADE have come into effect.
void Engine::note_mode(Hold &hold, bool is_reader, Nanos now) {
  if (!hold.is_sharing || hold.lock->keys.format == protocol::Format::kHash) return;
  if (is_reader == (hold.mode == protocol::Mode::kRead)) return;
  if (is_reader) return become_reader(hold);
  carry_out(hold, upgrade_of(hold).on_found_writing(now, link_of(hold)), now);
}

}  // namespace redlatch::lock
