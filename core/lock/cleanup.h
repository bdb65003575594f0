// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Cleanup: removes from the server what an acquisition may have left there. CANCEL if its token may
// be queued, then RELEASE if it may hold the key; each is repeated until it is answered, or until
// the lease must have expired.
//
//   kIdle --start--> kNotice --> kDue <--> kSent     kDue, kSent --> kOver
//               \------------------^                 answered, or expired
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "lock/lock_types.h"

namespace redlatch::lock {

class Cleanup {
 public:
  enum class State : uint8_t {
    kIdle,    // not started
    kNotice,  // the holder is being notified of the loss; nothing is sent yet
    kDue,     // a command is to be sent
    kSent,    // a command waits for its answer
    kOver,    // nothing is left on the server, or it has expired there
  };
  enum class Command : uint8_t { kNone, kCancel, kRelease };
  // For the caller of the release. It is given once; the rest happens in the background.
  enum class Result : uint8_t {
    kNone,
    kReleased,
    kStillHeld,  // by the same owner
    kLost,       // the server had another holder, or none
    kUnknown,    // no answer before the lease expired
    kDefect,     // an event that the state does not allow: it continues as before
  };
  struct Step {
    Command command = Command::kNone;  // to send; then call sent(), unless that failed
    Result result = Result::kNone;
    bool is_over = false;
    Nanos due = kNever;  // when to call on_due()
  };
  static_assert(sizeof(Step) <= 64);

  // Nothing is sent before `not_before`.
  Step start(const ServerFootprint &footprint, Nanos not_before, Nanos now, bool is_up);
  void sent(Command command);

  Step on_cancel_answer(int64_t result, Nanos now, bool is_up);
  Step on_release_answer(int64_t result, Nanos now, bool is_up);
  // The server refused the command. It is sent again when due.
  Step on_refused();
  // The server could not serve the slot of the key, and has done nothing: it is sent again at
  // `retry_at`.
  Step on_postponed(Nanos retry_at);
  // The server does not know the script, and has done nothing.
  Step on_unknown_script(Nanos now, bool is_up);
  // The connection broke before the answer to what was sent at `sent_at`.
  void on_answer_lost(Nanos sent_at);
  // The same happened to an ACQUIRE of this token, sent before the cleanup started.
  void on_acquire_lost(Nanos late_apply_until);
  // Connected again, maybe to another server, where the token may still be queued.
  void on_new_server();
  // A message says that the token was granted.
  Step on_grant(Nanos now, bool is_up);
  // Also after each connect.
  Step on_due(Nanos now, bool is_up);
  // The client shuts down: holders get no more notice.
  Step retry_now(Nanos now, bool is_up);

  State state() const { return state_; }
  // True if the server has answered all that was due, so that a client may end.
  bool was_answered() const { return was_answered_; }
  // Local ones before: a release counts them.
  int handoff_count() const { return left_.handoff_count; }
  // A RELEASE that was sent in time got no answer.
  bool was_release_lost() const { return was_release_lost_; }
  bool is_detached() const { return left_.is_detached; }
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  bool is_anything_due() const { return left_.may_be_queued || left_.may_be_held; }
  bool is_answer_to(Command command) const { return state_ == State::kSent && sent_ == command; }
  Step next(Nanos now, bool is_up);
  Step finish(Result result, Nanos now);
  // Without a timer of its own the cleanup would never end: what was not started is over, too.
  Step defect() const {
    const bool is_over = state_ == State::kIdle || state_ == State::kOver;
    return {.result = Result::kDefect, .is_over = is_over, .due = due_};
  }

  State state_ = State::kIdle;
  Command sent_ = Command::kNone;  // last
  bool was_answered_ = false;
  bool was_release_lost_ = false;  // a RELEASE that was sent in time got no answer
  ServerFootprint left_;
  Nanos not_before_ = 0;
  Nanos expires_at_ = 0;  // the server's lease is over by then
  Nanos due_ = kNever;
};

}  // namespace redlatch::lock
