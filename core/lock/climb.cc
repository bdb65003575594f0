// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Engine, part 4 of 4: from reading to writing, and back.
//
// A reader that waits to be the writer keeps its lease and its renewals; UPGRADE is asked for
// beside them, with the same token. Whoever does not want it any more takes it back: CANCEL, and
// DOWNGRADE if it was granted meanwhile.
#include <new>
#include <utility>

#include "base/text.h"
#include "lock/engine.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

constexpr Nanos kDescendRetry = 1000 * kMs;

}  // namespace

void Engine::start_upgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  Hold &hold = *request->lease->hold;
  if (hold.mode == protocol::Mode::kWrite) return finish(*request, Status::kOk);
  if (hold.climb.request) {
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
  hold.climb.request = request;
  request->hold = &hold;
  waiting_hold_count_++;
  const Nanos limit = request->wait_ms == 0 ? settings_.timeout : request->wait_ms * kMs;
  if (request->wait_ms >= 0) timers_.set(*request, after(now, limit));
  if (request->wait_ms == 0) connect_soon(now);
  try {
    ask_upgrade(hold, now);
  } catch (const std::bad_alloc &) {
    return;  // the timer asks again
  }
}

void Engine::ask_upgrade(Hold &hold, Nanos now, protocol::Form form) {
  Climb &climb = hold.climb;
  climb.due = kNever;  // a connection, or an answer, goes on with it
  if (link_ != Link::kUp || hold.is_ask_pending) return;
  if (climb.is_cancel_due || climb.is_descent_due) return;
  climb.due = now + kNoMemoryRetry;
  schedule(hold, now);
  if (!climb.was_asked) {
    const bool may_wait = climb.request->wait_ms != 0;
    climb.member = may_wait ? protocol::make_member(hold.token, protocol::Mode::kUpgrade,
                                                    std::min(hold.lease_time / kMs, kClaimMs),
                                                    climb.request->wait_ms)
                            : std::string();
    climb.ticket.clear();
  }
  hold.told_due = kNever;
  const Nanos lease = timing::lease_within(hold.lease_time, now, hold.lease->end_at);
  protocol::Command command;
  protocol::acquire(
      command, dialect_, form, hold.lock->keys,
      {protocol::Mode::kUpgrade, hold.claimant(), lease / kMs, climb.member, climb.ticket});
  hold.is_ask_pending =
      try_send(command, InFlight{Ask::kUpgrade, form, now, lease, hold.shared_from_this()});
  if (!hold.is_ask_pending) return;
  climb.was_asked = true;
  climb.due = kNever;
  schedule(hold, now);
}

void Engine::on_upgrade_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  hold.is_ask_pending = false;
  protocol::AcquireAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(in_flight.sent_at, now, answer.server_ms);
  if (hold.is_gone || hold.phase != Phase::kHeld) return;
  if (now >= hold.lease->deadline.load()) return on_hold_due(hold, now);
  // Nobody wants it any more, or a message was faster: what was sent behind this decides.
  if (!hold.climb.request) return;
  if (hold.climb.is_cancel_due || hold.climb.is_descent_due) return;
  if (wants_text(refusal, in_flight)) return ask_upgrade(hold, now, protocol::Form::kText);
  if (refusal) {
    const bool may_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
    if (!may_pass || hold.climb.member.empty()) {
      return end_upgrade(hold, refusal.status(), refusal.message, now);
    }
    hold.climb.due = now + hold.retry.next(entropy_.next());
    return schedule(hold, now);
  }
  const std::string name = quoted(hold.lock->name);
  if (answer.is_lost) return lose(hold, kTakenAway, true, now);
  if (answer.is_granted) {
    become_writer(hold, answer.fence, answer.server_ms);
    return prolong(hold, in_flight.sent_at, in_flight.lease, now);
  }
  if (answer.is_deadlock || hold.climb.member.empty()) {
    hold.climb.was_asked = false;
    const auto status = answer.is_deadlock ? Status::kDeadlock : Status::kBusy;
    const char *why = answer.is_deadlock ? ": another reader waits to upgrade, and would wait for "
                                           "this one: release or downgrade it first"
                                         : " is busy: others read as well";
    return end_upgrade(hold, status, "lock " + name + why, now);
  }
  hold.climb.ticket = answer.ticket;
  hold.rank = 0;  // it stands in front of all others
  Nanos delay = timing::poll_delay(answer.pttl_ms, answer.rank);
  if (answer.is_foreign()) {
    watch_key(hold, now);
    delay = std::min(delay, hold.foreign_poll.next(entropy_.next()));
  } else {
    hold.foreign_poll.reset();
  }
  hold.climb.due = std::min(now + delay, std::exchange(hold.told_due, kNever));
  schedule(hold, now);
}

// A message does not say which upgrade of this token it grants: it may be a late one, of an upgrade
// that was taken back or has ended since. The answer to UPGRADE is certain.
void Engine::on_upgrade_push(Hold &hold, Nanos now) {
  if (hold.phase != Phase::kHeld || hold.mode == protocol::Mode::kWrite) return;
  if (now >= hold.lease->deadline.load()) return on_hold_due(hold, now);
  if (!hold.climb.request) {
    // Taken back, and granted all the same by a late copy.
    if (!hold.climb.is_cancel_due) hold.climb.is_descent_due = true;
    return descend(hold, now);
  }
  if (hold.is_ask_pending) {
    hold.told_due = now;
    return;
  }
  hold.climb.due = now;
  schedule(hold, now);
}

void Engine::become_writer(Hold &hold, int64_t fence, int64_t server_ms) {
  hold.mode = protocol::Mode::kWrite;
  hold.fence = fence;
  hold.since_ms = server_ms;
  hold.lease->fence = fence;
  hold.lock->highest_fence = std::max(hold.lock->highest_fence, fence);
  hold.lease->mode = hold.mode;
  hold.lock->holder = &hold;
  hold.climb.was_asked = false;
  hold.climb.due = kNever;
  finish_upgrade(hold, Status::kOk);
}

void Engine::finish_upgrade(Hold &hold, Status status, std::string_view message) {
  if (!hold.climb.request) return;
  const auto request = std::move(hold.climb.request);
  request->hold = nullptr;
  waiting_hold_count_--;
  finish(*request, status, message);
}

// It did not become the writer, and goes on reading.
void Engine::end_upgrade(Hold &hold, Status status, std::string_view message, Nanos now) {
  finish_upgrade(hold, status, message);
  Climb &climb = hold.climb;
  if (climb.was_asked && !climb.is_descent_due) {
    climb.is_cancel_due = !hold.climb.member.empty();
    climb.is_descent_due = hold.climb.member.empty();
  }
  climb.was_asked = false;
  descend(hold, now);
}

// Take an upgrade back, as far as it went.
void Engine::descend(Hold &hold, Nanos now, protocol::Form form) {
  Climb &climb = hold.climb;
  climb.due = kNever;
  if (climb.is_descending || link_ != Link::kUp) return schedule(hold, now);
  if (!climb.is_cancel_due && !climb.is_descent_due) {
    schedule(hold, now);
    if (climb.request) ask_upgrade(hold, now);
    return;
  }
  protocol::Command command;
  if (climb.is_cancel_due) {
    protocol::cancel(command, dialect_, form, hold.lock->keys, climb.member, hold.owner);
  } else {
    protocol::downgrade(command, dialect_, form, hold.lock->keys, hold.token, hold.lease_time / kMs,
                        0);
  }
  climb.is_descending =
      try_send(command, InFlight{Ask::kDescend, form, now, 0, hold.shared_from_this()});
  climb.due = now + kDescendRetry;
  schedule(hold, now);
}

void Engine::on_descend_reply(const InFlight &in_flight, const Reply &reply, Nanos now) {
  auto &hold = static_cast<Hold &>(*in_flight.subject);
  Climb &climb = hold.climb;
  climb.is_descending = false;
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(in_flight.sent_at, now, answer.server_ms);
  if (!refusal) maybe_kick(hold.lock, answer.has_more, now);
  if (hold.is_gone || hold.phase != Phase::kHeld) return;
  if (wants_text(refusal, in_flight)) return descend(hold, now, protocol::Form::kText);
  if (refusal) {
    climb.due = now + kDescendRetry;
    return schedule(hold, now);
  }
  if (climb.is_cancel_due) {
    climb.is_cancel_due = false;
    climb.is_descent_due = answer.result == 2;
  } else {
    climb.is_descent_due = false;
    if (answer.result != 1) return lose(hold, kTakenAway, true, now);
  }
  descend(hold, now);
}

void Engine::on_climb_due(Hold &hold, Nanos now) {
  const Climb &climb = hold.climb;
  if (climb.is_cancel_due || climb.is_descent_due) return descend(hold, now);
  if (climb.request) ask_upgrade(hold, now);
}

void Engine::start_downgrade(const std::shared_ptr<Request> &request, Nanos now) {
  if (!is_held(*request, now)) return;
  Hold &hold = *request->lease->hold;
  if (hold.lock->keys.format == protocol::Format::kHash) {
    return finish(*request, Status::kInvalid,
                  "lock " + quoted(hold.lock->name) + " is reentrant: it has no readers");
  }
  if (hold.mode == protocol::Mode::kRead) return finish(*request, Status::kOk);
  hold.is_sharing = true;
  hold.must_describe = false;
  start_plain(request, now);
  // From here on it is only certain that it reads; readers may enter before the answer comes.
  if (hold.lease) become_reader(hold);
}

// Nobody waits for the answer to a downgrade any more, or it was refused: it goes on by itself.
void Engine::leave_downgrade(Request &request, Nanos now) {
  if (request.op != Request::Op::kDowngrade) return;
  Hold *hold = request.lease->hold;
  if (hold == nullptr) return;
  hold->climb.is_descent_due = true;
  if (hold->phase == Phase::kHeld) descend(*hold, now);
}

void Engine::on_downgraded(Request &request, const InFlight &in_flight, bool is_held, Nanos now) {
  Hold *hold = request.lease->hold;
  if (hold != nullptr && hold->phase == Phase::kHeld) {
    if (now >= request.lease->deadline.load()) {
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
  if (hold.climb.request || hold.climb.is_cancel_due) return;  // which finds out
  hold.climb.is_descent_due = true;
  descend(hold, now);
}

}  // namespace redlatch::lock
