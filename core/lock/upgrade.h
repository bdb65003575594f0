// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Upgrade: a reader on its way to be the writer, and back.
//
// The reader keeps its lease and its renewals; UPGRADE is sent beside them, with the same token. An
// upgrade that its caller gave up is rolled back: CANCEL, and DOWNGRADE if the grant was faster.
//
//   stage      kIdle --start--> kWanted --sent--> kAsked --answer, give_up--> kIdle
//   rollback   kNone --give_up--> kCancel --granted before--> kDowngrade --answer--> kNone
//
// A new upgrade may be wanted while the one before it is rolled back; it is asked for afterwards.
// The machine sends nothing itself. Each event returns the next command; sent() or not_sent() must
// follow, and one of the events named on_.. when the answer is there or lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "timing/backoff.h"

namespace redlatch::lock {

class Upgrade {
 public:
  enum class Command : uint8_t { kNone, kUpgrade, kCancel, kDowngrade };
  enum class Transition : uint8_t {
    kNone,
    kGranted,  // it writes
    kEnded,    // the caller gets the status of the answer, and the lease reads on
    kLost,     // the server does not know the lease
    kDefect,   // an event that the state does not allow
  };
  struct Step {
    Command command = Command::kNone;
    Transition transition = Transition::kNone;
  };
  static_assert(sizeof(Step) <= 64);
  // The conditions under which a command may be sent now.
  struct Readiness {
    bool is_up = false;
    bool is_acquire_unanswered = false;  // of the same token: its answer comes first
  };

  // ---- the caller
  // `is_one_try`: busy instead of queued.
  Step start(bool is_one_try, Nanos now, Readiness ready);
  // The caller does not want it any more: it timed out or was cancelled.
  Step give_up(Nanos now, Readiness ready);
  // The lease has ended, and with it all that belongs to it on the server.
  void end();

  // ---- the link
  // A new connection, an answer that was waited for, or the timer.
  Step resume(Nanos now, Readiness ready);
  void sent(Command command);
  void not_sent(Command) {}  // for want of memory: the timer tries again
  // The connection ended before the answer.
  Step on_unanswered(Command command);

  // ---- answers to UPGRADE. After on_answered() the others only if awaits_answer().
  void on_answered();
  Step on_granted();
  Step on_queued(std::string_view ticket, Nanos poll_at);
  // Busy or a deadlock: the server has kept nothing of it.
  Step on_denied(Nanos now, Readiness ready);
  Step on_refused(Nanos now, Readiness ready);
  // As refused, but it may pass. Not for one try.
  Step on_postponed(Nanos now, uint64_t random);

  // ---- answers to CANCEL and DOWNGRADE
  void on_rollback_answered() { is_rolling_back_ = false; }
  Step on_rolled_back(int64_t result, Nanos now, Readiness ready);
  Step on_rollback_refused(Nanos now);

  // ---- messages and findings
  // A message does not say which upgrade of this token it grants: it may be an earlier one. The
  // answer to UPGRADE is certain.
  Step on_grant_pushed(Nanos now, Readiness ready);
  // It pays to ask at `at`.
  void on_hint(Nanos at);
  // A DOWNGRADE of the caller has failed, or got no answer.
  void on_downgrade_failed();
  // The server says that the lease writes. This client believes that it reads.
  Step on_found_writing(Nanos now, Readiness ready);

  // ---- what is known
  bool is_wanted() const { return stage_ == Stage::kWanted || stage_ == Stage::kAsked; }
  bool is_unanswered() const { return is_unanswered_; }
  // True if an answer to UPGRADE counts: a rollback that was sent behind it decides otherwise.
  bool awaits_answer() const { return stage_ == Stage::kAsked && rollback_ == Rollback::kNone; }
  bool is_queued() const { return !is_unanswered_ && !ticket_.empty(); }
  bool is_one_try() const { return is_one_try_; }
  Nanos due() const { return due_; }  // of resume()

  // The queue member that UPGRADE and CANCEL name. It is made anew for each upgrade, and never
  // changed once it was sent.
  bool needs_member() const { return stage_ == Stage::kWanted; }
  void set_member(std::string member) { member_ = std::move(member); }
  const std::string &member() const { return member_; }
  const std::string &ticket() const { return ticket_; }

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  // kOver: the lease has ended; an answer is outstanding.
  enum class Stage : uint8_t { kIdle, kWanted, kAsked, kOver };
  enum class Rollback : uint8_t { kNone, kCancel, kDowngrade };

  static Step defect() { return {.transition = Transition::kDefect}; }
  Step ended(Nanos now, Readiness ready);
  void roll_back();

  Stage stage_ = Stage::kIdle;
  Rollback rollback_ = Rollback::kNone;
  bool is_one_try_ = false;
  bool is_unanswered_ = false;    // UPGRADE
  bool is_rolling_back_ = false;  // CANCEL or DOWNGRADE is unanswered
  Nanos due_ = kNever;
  Nanos poll_hint_at_ = kNever;  // a message that came before the answer
  timing::Backoff retry_ = timing::kServerRetry;
  std::string member_, ticket_;
};

}  // namespace redlatch::lock
