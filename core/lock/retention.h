// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Retention: whether the client keeps a lock that its caller has released, until another client
// asks for it, so that the next acquisition here needs no call (callbacks of AFS, Howard 1988;
// delegations of NFSv4, RFC 7530). The lease on the server stays as it is, and is not renewed
// meanwhile.
//
//   kOff --grant--> kInUse <--take, release--> kIdle      all --recall--> kOver
//   kInUse --release too late--> kOver
//
// It counts from the grant of the server, not from each release: a caller in a loop could else
// starve a waiter whose message is lost.
#pragma once

#include <cassert>
#include <cstdint>

#include "base/clock.h"

namespace redlatch::lock {

class Retention {
 public:
  enum class State : uint8_t {
    kOff,    // not granted yet, or not to be retained
    kInUse,  // a caller has the lock
    kIdle,   // the client has it, and no caller
    kOver,   // the next release is one on the server
  };

  // The server granted the lock to a message sent at `sent_at`, and it is known that no other
  // client waits and that a recall would arrive. A recall may have overtaken the answer.
  void grant(Nanos sent_at) {
    assert(state_ != State::kInUse && state_ != State::kIdle);
    if (state_ == State::kOff) state_ = State::kInUse;
    granted_at_ = sent_at;
  }
  // Another client asks for the lock, or messages may not arrive any more.
  void recall() { state_ = State::kOver; }
  // A caller has the lock that wants it retained for so long after the grant; 0: not at all.
  void want(Nanos retain) { retain_ = retain; }
  // The caller releases it.
  // @return whether it is kept, until until(). If not, it is released on the server.
  [[nodiscard]] bool release(Nanos now) {
    if (state_ != State::kInUse) return false;
    until_ = after(granted_at_, retain_);
    state_ = retain_ > 0 && now < until_ ? State::kIdle : State::kOver;
    return state_ == State::kIdle;
  }
  // The next caller has the lock.
  void take() {
    assert(state_ == State::kIdle);
    state_ = State::kInUse;
  }

  State state() const { return state_; }
  bool is_wanted() const { return retain_ > 0; }
  bool is_idle() const { return state_ == State::kIdle; }
  bool may_release() const { return state_ == State::kInUse; }
  Nanos until() const { return until_; }
  bool is_idle_until(Nanos now) const { return is_idle() && now < until_; }

  // The sentence of the model that does not hold, or null.
  const char *check() const {
    switch (state_) {
      case State::kOff:
        return granted_at_ == 0 ? nullptr : "what is off was not granted";
      case State::kInUse:
        return granted_at_ != 0 ? nullptr : "what is in use was granted";
      case State::kIdle:
        return until_ > granted_at_ && granted_at_ != 0 ? nullptr : "an idle lock has an end";
      case State::kOver:
        return nullptr;
    }
    return "there is no such state";
  }

 private:
  State state_ = State::kOff;
  Nanos granted_at_ = 0;
  Nanos retain_ = 0;
  Nanos until_ = 0;
};

}  // namespace redlatch::lock
