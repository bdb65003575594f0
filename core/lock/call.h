// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Call: a kind of command that LockClient sends, and what it does with the answer or without one.
// InFlight: one such command that was sent. DelegatedCommand: one that is sent for the client of
// another node. Checkup: one pass of questions about the health.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/reply.h"
#include "lock/lock_state.h"
#include "protocol/health.h"
#include "protocol/lock_trial.h"
#include "protocol/scripts.h"

namespace redlatch::lock {

class LockClient;
struct InFlight;

// It has no state: two commands of one kind may be under way for one subject, such as an extension
// at another node and, after a new connection, the next one here.
class Call {
 public:
  // Not for an answer that says that the script is not known.
  virtual void on_answer(LockClient &client, const InFlight &in_flight, const Reply &reply,
                         Nanos now) const = 0;
  // The server does not know the script: it is sent again as text, if it is still wanted.
  virtual void on_unknown_script(LockClient &, const InFlight &, Nanos) const {}
  // The connection ended before the answer. The rest is done when it is needed again.
  virtual void on_lost(LockClient &, const InFlight &, Nanos) const {}
  // It was refused, and nothing was carried out. It is sent again on another connection.
  virtual void on_not_done(LockClient &, const InFlight &, Nanos) const {}
  // The server cannot serve the slot until `retry_at`. @return false: it is a refusal as others.
  virtual bool on_postponed(LockClient &, const InFlight &, Nanos, Nanos) const { return false; }
  // After on_lost(), while the connection stays: ask again soon.
  virtual void ask_again(LockClient &, const InFlight &, Nanos) const {}
  // One of several keys of an extension is not there now: extend the lock key alone.
  virtual void extend_lock_key(LockClient &, const InFlight &, Nanos) const { assert(false); }

  // nullptr: it is about no lock, no request.
  virtual const LockState *lock(const InFlight &) const { return nullptr; }
  virtual Request *request(const InFlight &) const { return nullptr; }
  virtual bool is_extension(const InFlight &) const { return false; }
  // True if a lease is marked again for the next attach.
  virtual bool undoes_attach(const InFlight &) const { return false; }

 protected:
  Call() = default;
  ~Call() = default;
};

// The keys that an extension names. While their slot moves only one at a time: the lock key, and
// if several hold the lock, behind it the readers' key, in the hash_rw format after the key that
// Redisson reads.
enum class Extent : uint8_t { kAll, kLock, kReaderKey, kReaders };

struct InFlight {
  const Call *call;
  protocol::EvalMode eval;
  Nanos sent_at;
  Nanos lease;                    // that was asked for
  std::shared_ptr<void> subject;  // of the type that the call has; may be null
  bool is_description = false;    // an extension that says who holds
  Extent extent = Extent::kAll;   // of an extension
  bool is_delegated = false;      // another server has answered
  // Of a request about a lease, which may end before the answer comes.
  std::shared_ptr<LockState> lock = nullptr;

  template <class T>
  T &about() const {
    assert(subject != nullptr);
    return *static_cast<T *>(subject.get());
  }
  template <class T>
  std::shared_ptr<T> shared() const {
    return std::static_pointer_cast<T>(subject);
  }
  TokenRecord &record() const { return about<TokenRecord>(); }
};

// One pass of questions about the health of the server.
struct Checkup {
  protocol::HealthCheck check;
  std::optional<protocol::LockTrial> trial;
  std::shared_ptr<Request> request;  // nullptr: in the background, without a trial
  bool is_lost = false;

  bool is_over() const { return check.is_over() && (!trial || trial->is_over()); }
};

// A command that the client of one node gives to the client of another one. The owner outlives it.
struct DelegatedCommand {
  LockClient &owner;
  InFlight in_flight;
  std::shared_ptr<LockState> lock = nullptr;  // once it was sent
  bool is_over = false;
};

}  // namespace redlatch::lock
