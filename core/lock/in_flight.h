// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// InFlight: a command that LockClient has sent, and what its answer is about. DelegatedCommand: one
// that it sends for the client of another node. Checkup: one pass of questions about the health.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "lock/lock_state.h"
#include "protocol/health.h"
#include "protocol/lock_trial.h"
#include "protocol/scripts.h"

namespace redlatch::lock {

class LockClient;
struct DelegatedCommand;

enum class CommandKind : uint8_t {
  kAcquire,
  kRelease,
  kCancel,
  kServeQueue,
  kExtend,
  kUpgrade,
  kRollBack,  // an upgrade
  kRequest,
  kTrack,    // prepares kFindKey
  kFindKey,  // is the key that is tracked from now on still there?
  kAnnounce,
  kName,
  kInspectKey,  // at a key that a listing has found
  kUndoAttach,
  kDelegated,  // a command for a client of another node
  kAsking,     // prepares kDelegated
  kHealth,
  kWait,  // for replicas, on the connection at the side
};

// One pass of questions about the health of the server.
struct Checkup {
  protocol::HealthCheck check;
  std::optional<protocol::LockTrial> trial;
  std::shared_ptr<Request> request;  // nullptr: in the background, without a trial
  bool is_lost = false;

  bool is_over() const { return check.is_over() && (!trial || trial->is_over()); }
};

// The keys that an extension names. While their slot moves only one at a time: the lock key, and
// if several hold the lock, behind it the readers' key, in the hash_rw format after the key that
// Redisson reads.
enum class Extent : uint8_t { kAll, kLock, kReaderKey, kReaders };

struct InFlight {
  CommandKind kind;
  protocol::EvalMode eval;
  Nanos sent_at;
  Nanos lease;  // that was asked for
  // What the reply is about; a null record if that is nothing.
  std::variant<std::shared_ptr<TokenRecord>, std::shared_ptr<Request>, std::shared_ptr<LockState>,
               std::shared_ptr<NameQuery>, std::shared_ptr<Checkup>,
               std::shared_ptr<DelegatedCommand>>
      subject;
  bool is_description = false;   // an extension that says who holds
  Extent extent = Extent::kAll;  // of an extension
  bool is_delegated = false;     // another server has answered
  // Of a request about a lease, which may end before the answer comes.
  std::shared_ptr<LockState> lock = nullptr;

  template <class T>
  const std::shared_ptr<T> &about() const {
    const auto *found = std::get_if<std::shared_ptr<T>>(&subject);
    assert(found != nullptr && *found != nullptr);
    return *found;
  }
  TokenRecord &record() const { return *about<TokenRecord>(); }
};

// A command that the client of one node gives to the client of another one. The owner outlives it.
struct DelegatedCommand {
  LockClient &owner;
  InFlight in_flight;
  std::shared_ptr<LockState> lock = nullptr;  // once it was sent
  bool is_over = false;
};

}  // namespace redlatch::lock
