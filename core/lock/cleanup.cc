// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/cleanup.h"

#include <algorithm>
#include <cassert>

namespace redlatch::lock {

namespace {

constexpr Nanos kRetry = 1000 * kMs;

}  // namespace

Cleanup::Step Cleanup::start(const ServerFootprint &footprint, Nanos not_before, Nanos now,
                             bool is_up) {
  if (state_ != State::kIdle) return defect();
  left_ = footprint;
  if (left_.is_detached) left_.may_be_held = false;
  not_before_ = not_before;
  if (is_anything_due()) expires_at_ = std::max(left_.held_until, now) + left_.ttl;
  return next(now, is_up);
}

// CANCEL first: its answer says whether the token holds the key.
Cleanup::Step Cleanup::next(Nanos now, bool is_up) {
  if (!is_anything_due()) return finish(Result::kReleased, now);
  if (now < not_before_) {
    state_ = State::kNotice;
    due_ = not_before_;
    return {.due = due_};
  }
  due_ = now + kRetry;
  if (state_ == State::kSent) return {.due = due_};
  state_ = State::kDue;
  const Command command = left_.may_be_queued ? Command::kCancel : Command::kRelease;
  return {.command = is_up ? command : Command::kNone, .due = due_};
}

// An old ACQUIRE may still arrive, and would hold the lock for no caller: until that is over,
// everything is due again.
Cleanup::Step Cleanup::finish(Result result, Nanos now) {
  was_answered_ = true;
  if (left_.late_apply_until <= now || left_.is_detached) {
    state_ = State::kOver;
    return {.result = result, .is_over = true};
  }
  left_.may_be_queued = left_.has_member;
  left_.may_be_held = true;
  state_ = State::kDue;
  due_ = std::min(now + kRetry, left_.late_apply_until);
  return {.result = result, .due = due_};
}

void Cleanup::sent(Command command) {
  assert(state_ == State::kDue && is_anything_due());
  assert(command == (left_.may_be_queued ? Command::kCancel : Command::kRelease));
  state_ = State::kSent;
  sent_ = command;
}

Cleanup::Step Cleanup::on_cancel_answer(int64_t result, Nanos now, bool is_up) {
  if (!is_answer_to(Command::kCancel)) return defect();
  state_ = State::kDue;
  left_.may_be_queued = false;
  if (result == 2) left_.may_be_held = !left_.is_detached;
  return next(now, is_up);
}

Cleanup::Step Cleanup::on_release_answer(int64_t result, Nanos now, bool is_up) {
  if (!is_answer_to(Command::kRelease)) return defect();
  state_ = State::kDue;
  if (result == 0) return finish(Result::kStillHeld, now);
  if (result > 0 || was_release_lost_) return finish(Result::kReleased, now);
  if (!left_.is_provisional || !left_.has_member) return finish(Result::kLost, now);
  // The message that granted it may not have come from our scripts: the token may still be queued.
  left_.is_provisional = left_.may_be_held = false;
  left_.may_be_queued = true;
  Step step = next(now, is_up);
  step.result = Result::kLost;
  return step;
}

Cleanup::Step Cleanup::on_refused() {
  if (state_ != State::kSent) return defect();
  state_ = State::kDue;
  return {.due = due_};
}

Cleanup::Step Cleanup::on_postponed(Nanos retry_at) {
  if (state_ != State::kSent) return defect();
  state_ = State::kDue;
  due_ = retry_at;
  return {.due = due_};
}

Cleanup::Step Cleanup::on_unknown_script(Nanos now, bool is_up) {
  if (state_ != State::kSent) return defect();
  state_ = State::kDue;
  return next(now, is_up);
}

void Cleanup::on_answer_lost(Nanos sent_at) {
  if (state_ != State::kSent) return;
  const bool was_in_time = sent_ == Command::kRelease && sent_at < left_.held_until;
  was_release_lost_ = was_release_lost_ || was_in_time;
  state_ = State::kDue;
}

void Cleanup::on_acquire_lost(Nanos late_apply_until) {
  assert(state_ != State::kIdle);
  left_.late_apply_until = std::max(left_.late_apply_until, late_apply_until);
}

void Cleanup::on_new_server() {
  const bool is_waiting = state_ == State::kDue || state_ == State::kNotice;
  if (is_waiting) left_.may_be_queued = left_.may_be_queued || left_.was_queued;
}

Cleanup::Step Cleanup::on_grant(Nanos now, bool is_up) {
  if (state_ == State::kIdle || state_ == State::kOver) return defect();
  if (left_.is_detached) return {.due = due_};
  left_.may_be_held = true;
  return next(now, is_up);
}

Cleanup::Step Cleanup::on_due(Nanos now, bool is_up) {
  if (state_ == State::kIdle || state_ == State::kOver) return defect();
  if (now < std::max(expires_at_, left_.late_apply_until)) return next(now, is_up);
  state_ = State::kOver;
  return {.result = Result::kUnknown, .is_over = true};
}

Cleanup::Step Cleanup::retry_now(Nanos now, bool is_up) {
  if (state_ == State::kIdle || state_ == State::kOver) return defect();
  not_before_ = 0;
  return next(now, is_up);
}

const char *Cleanup::check() const {
  if (left_.may_be_queued && !left_.has_member) return "only a member can be queued";
  if (left_.is_detached && left_.may_be_held) return "what is detached is never released";
  if (was_release_lost_ && sent_ == Command::kNone) return "a RELEASE is lost behind its sending";
  switch (state_) {
    case State::kIdle:
      if (sent_ != Command::kNone || was_answered_) return "nothing is sent before the start";
      return is_anything_due() || due_ != kNever ? "nothing is due before the start" : nullptr;
    case State::kNotice:
      if (!is_anything_due()) return "notice is only given before a command";
      if (sent_ != Command::kNone) return "a holder gets notice before the first command";
      return due_ != not_before_ ? "the notice ends when it is due" : nullptr;
    case State::kDue:
      if (!is_anything_due()) return "something is due";
      return due_ == kNever ? "a command that is due has a time" : nullptr;
    case State::kSent:
      if (due_ == kNever) return "a command that was sent is repeated";
      if (sent_ == Command::kCancel && left_.may_be_queued) return nullptr;
      if (sent_ == Command::kRelease && left_.may_be_held && !left_.may_be_queued) return nullptr;
      return "what was sent is still due";
    case State::kOver:
      // Answered, or expired while something was due.
      return was_answered_ || is_anything_due() ? nullptr : "an end without a reason";
  }
  return "there is no such state";
}

}  // namespace redlatch::lock
