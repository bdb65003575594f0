// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockCallKind: a kind of command about a lock. DelegatedCommand: a command that is sent to another
// server than the lock's own.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/reply.h"
#include "lock/lock_state.h"
#include "session/call.h"

namespace redlatch::lock {

class Redirects;

using session::Call;

// Each command about a lock, or a request of a user, is one.
class LockCallKind : public session::CallKind {
 public:
  explicit LockCallKind(Redirects &redirects) : redirects_(redirects) {}

  bool take_redirect(const Call &call, const Reply &reply, Nanos now) const final;
  // The answer is a redirect. @return whether `call` needs nothing more.
  virtual bool on_left(const Call &, Nanos) const { return false; }
  // The server cannot serve the slot until `retry_at`. @return false: it is a refusal as others.
  virtual bool on_postponed(const Call &, Nanos, Nanos) const { return false; }
  // After on_lost(), while the connection stays: ask again soon.
  virtual void ask_again(const Call &, Nanos) const {}
  // One of several keys of an extension is not there now: extend the lock key alone.
  virtual void extend_lock_key(const Call &, Nanos) const { assert(false); }

  std::optional<uint16_t> slot(const Call &call) const final {
    const LockState *about = lock_of(call);
    return about == nullptr ? std::nullopt : std::optional(about->slot());
  }
  // nullptr: it is about no lock.
  const LockState *lock_of(const Call &call) const {
    return call.lock ? static_cast<const LockState *>(call.lock.get()) : lock(call);
  }
  // nullptr: it is about no lock, no request.
  virtual const LockState *lock(const Call &) const { return nullptr; }
  virtual Request *request(const Call &) const { return nullptr; }
  virtual bool is_extension(const Call &) const { return false; }

 protected:
  ~LockCallKind() = default;

 private:
  Redirects &redirects_;
};

inline const LockCallKind &kind_of(const Call &call) {
  return static_cast<const LockCallKind &>(*call.kind);
}

// The script stopped in the middle, because one of its keys had gone, or the answer of another node
// is lost. The outcome is not known; the next command finds out.
inline void on_half_done(const Call &call, Nanos now) {
  call.kind->on_lost(call, now);
  kind_of(call).ask_again(call, now);
}

// The server that a command about a lock or a request is for.
inline Server &server_of(const Call &call) {
  const LockState *lock = kind_of(call).lock_of(call);
  return lock != nullptr ? *lock->server : server_of(*kind_of(call).request(call));
}

// The record that a command is about.
inline TokenRecord &record_of(const Call &call) { return call.about<TokenRecord>(); }

// A command that is sent to another server than the lock's own.
struct DelegatedCommand {
  Call call;
  std::shared_ptr<LockState> lock = nullptr;  // when it is sent
  bool is_over = false;
};

}  // namespace redlatch::lock
