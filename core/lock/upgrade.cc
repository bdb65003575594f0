// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/upgrade.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/limits.h"

namespace redlatch::lock {

namespace {

constexpr Nanos kRollbackRetry = 1000 * kMs;
constexpr Nanos kNotSentRetry = 20 * kMs;

}  // namespace

Upgrade::Step Upgrade::start(bool is_one_try, Nanos now, Readiness ready) {
  if (stage_ != Stage::kIdle) return defect();
  stage_ = Stage::kWanted;
  is_one_try_ = is_one_try;
  return resume(now, ready);
}

// A rollback goes first: UPGRADE ahead of CANCEL would be cancelled with it.
Upgrade::Step Upgrade::resume(Nanos now, Readiness ready) {
  due_ = kNever;  // a connection or an answer continues, if not the timer
  if (!is_unanswered_) poll_hint_at_ = kNever;
  if (!ready.is_up) return {};
  if (rollback_ != Rollback::kNone) {
    if (is_rolling_back_) return {};
    due_ = now + kRollbackRetry;
    return {.command = rollback_ == Rollback::kCancel ? Command::kCancel : Command::kDowngrade};
  }
  if (!is_wanted() || is_unanswered_ || ready.is_acquire_unanswered) return {};
  due_ = now + kNotSentRetry;
  return {.command = Command::kUpgrade};
}

void Upgrade::sent(Command command) {
  if (command != Command::kUpgrade) {
    assert(rollback_ != Rollback::kNone && !is_rolling_back_);
    is_rolling_back_ = true;
    return;
  }
  assert(is_wanted() && !is_unanswered_ && rollback_ == Rollback::kNone);
  stage_ = Stage::kAsked;
  is_unanswered_ = true;
  poll_hint_at_ = kNever;
  due_ = kNever;
}

void Upgrade::on_answered() {
  assert(is_unanswered_);
  is_unanswered_ = false;
  if (!awaits_answer()) poll_hint_at_ = kNever;
  if (stage_ == Stage::kOver) stage_ = Stage::kIdle;
}

Upgrade::Step Upgrade::on_unanswered(Command command) {
  if (command != Command::kUpgrade) {
    is_rolling_back_ = false;
    return {};
  }
  on_answered();
  poll_hint_at_ = kNever;
  if (stage_ != Stage::kAsked || !is_one_try_) return {};
  return ended(kNever, {});
}

Upgrade::Step Upgrade::give_up(Nanos now, Readiness ready) {
  Step step = ended(now, ready);
  step.transition = Transition::kNone;
  return step;
}

// The traces on the server are removed: a place in the queue, or a writer.
Upgrade::Step Upgrade::ended(Nanos now, Readiness ready) {
  if (stage_ == Stage::kAsked && rollback_ == Rollback::kNone) {
    rollback_ = is_one_try_ ? Rollback::kDowngrade : Rollback::kCancel;
  }
  stage_ = Stage::kIdle;
  ticket_.clear();
  poll_hint_at_ = kNever;
  Step step = resume(now, ready);
  step.transition = Transition::kEnded;
  return step;
}

// The scripts drop the queue entry of a token that does not read.
void Upgrade::end() {
  const bool is_unanswered = is_unanswered_;
  const bool was_used = stage_ != Stage::kIdle || rollback_ != Rollback::kNone || due_ != kNever ||
                        is_unanswered || is_rolling_back_ || !member_.empty();
  if (!was_used) return;  // most leases are not upgraded
  *this = Upgrade();
  is_unanswered_ = is_unanswered;
  if (is_unanswered) stage_ = Stage::kOver;
}

Upgrade::Step Upgrade::on_granted() {
  if (!awaits_answer()) return defect();
  stage_ = Stage::kIdle;
  ticket_.clear();
  poll_hint_at_ = kNever;
  due_ = kNever;
  return {.transition = Transition::kGranted};
}

Upgrade::Step Upgrade::on_queued(std::string_view ticket, Nanos poll_at) {
  if (!awaits_answer() || is_one_try_) return defect();
  ticket_ = ticket;
  due_ = std::min(poll_at, std::exchange(poll_hint_at_, kNever));
  return {};
}

Upgrade::Step Upgrade::on_denied(Nanos now, Readiness ready) {
  if (!awaits_answer()) return defect();
  stage_ = Stage::kWanted;  // as if not asked: there is nothing to roll back
  return ended(now, ready);
}

Upgrade::Step Upgrade::on_refused(Nanos now, Readiness ready) {
  if (!awaits_answer()) return defect();
  return ended(now, ready);
}

Upgrade::Step Upgrade::on_postponed(Nanos now, uint64_t random) {
  if (!awaits_answer() || is_one_try_) return defect();
  poll_hint_at_ = kNever;
  due_ = now + retry_.next(random);
  return {};
}

Upgrade::Step Upgrade::on_rolled_back(int64_t result, Nanos now, Readiness ready) {
  if (rollback_ == Rollback::kNone) return defect();
  const bool was_cancel = rollback_ == Rollback::kCancel;
  // CANCEL came too late: the token writes.
  rollback_ = was_cancel && result == 2 ? Rollback::kDowngrade : Rollback::kNone;
  if (!was_cancel && result != 1) {
    due_ = kNever;
    return {.transition = Transition::kLost};
  }
  return resume(now, ready);
}

Upgrade::Step Upgrade::on_rollback_refused(Nanos now) {
  if (rollback_ == Rollback::kNone) return defect();
  due_ = now + kRollbackRetry;
  return {};
}

Upgrade::Step Upgrade::on_grant_pushed(Nanos now, Readiness ready) {
  if (!is_wanted()) {
    // Rolled back, and granted all the same by a late copy.
    roll_back();
    return resume(now, ready);
  }
  if (is_unanswered_) {
    poll_hint_at_ = now;
  } else if (!ready.is_acquire_unanswered) {
    due_ = now;
  }
  return {};
}

void Upgrade::on_hint(Nanos at) {
  if (!is_wanted()) return;
  Nanos &when = is_unanswered_ ? poll_hint_at_ : due_;
  when = std::min(when, at);
}

void Upgrade::on_downgrade_failed() { roll_back(); }

Upgrade::Step Upgrade::on_found_writing(Nanos now, Readiness ready) {
  // An upgrade that is wanted or cancelled finds that out by itself.
  if (is_wanted() || rollback_ == Rollback::kCancel) return {};
  roll_back();
  return resume(now, ready);
}

// The answer to a CANCEL says whether a DOWNGRADE must follow.
void Upgrade::roll_back() {
  if (rollback_ == Rollback::kNone) rollback_ = Rollback::kDowngrade;
}

const char *Upgrade::check() const {
  // The legal values, for each stage and rollback.
  struct Legal {
    Stage stage;
    Rollback rollback;
    bool may_be_unanswered, may_have_ticket, may_be_due;
  };
  static constexpr Legal kTable[] = {
      {Stage::kIdle, Rollback::kNone, false, false, false},
      {Stage::kIdle, Rollback::kCancel, true, false, true},
      {Stage::kIdle, Rollback::kDowngrade, true, false, true},
      {Stage::kWanted, Rollback::kNone, false, false, true},
      {Stage::kWanted, Rollback::kCancel, true, false, true},
      {Stage::kWanted, Rollback::kDowngrade, true, false, true},
      {Stage::kAsked, Rollback::kNone, true, true, true},
      // A DOWNGRADE that failed while the next upgrade was asked for already.
      {Stage::kAsked, Rollback::kDowngrade, true, true, true},
      {Stage::kOver, Rollback::kNone, true, false, false},
  };
  const auto *legal = std::find_if(std::begin(kTable), std::end(kTable), [this](const Legal &row) {
    return row.stage == stage_ && row.rollback == rollback_;
  });
  if (legal == std::end(kTable)) return "what was asked for is not cancelled";
  if (is_unanswered_ && !legal->may_be_unanswered) {
    return "an answer is outstanding that nothing waits for or rolls back";
  }
  if (is_rolling_back_ && rollback_ == Rollback::kNone) {
    return "a rollback is outstanding that nothing needs";
  }
  if (!ticket_.empty() && !legal->may_have_ticket)
    return "only an upgrade that was asked for has a ticket";
  if (!ticket_.empty() && is_one_try_) return "one try is never queued";
  if (due_ != kNever && !legal->may_be_due) return "a timer without anything to do";
  if (rollback_ == Rollback::kCancel && member_.empty()) return "no member to cancel";
  // The answer itself, behind on_answered(), takes it up.
  const bool is_taken_up = is_unanswered_ || awaits_answer();
  if (poll_hint_at_ != kNever && !is_taken_up) return "a hint that no answer takes up";
  return nullptr;
}

}  // namespace redlatch::lock
