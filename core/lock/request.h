// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Request: what a caller has started, until it is finished. Lease: what an acquire gave it, until
// it ends. Both are shared with that caller. All but the fields marked atomic are guarded by the
// mutex of core/runtime.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "lock/replication.h"
#include "lock/timer_queue.h"
#include "lock/waitlist.h"
#include "lock/words.h"
#include "operate/operation.h"
#include "protocol/answer.h"
#include "protocol/command.h"

namespace redlatch::lock {

struct AcquireOptions : AcquireSettings {
  protocol::Format format = protocol::Format::kString;
  protocol::Mode mode = protocol::Mode::kWrite;
  bool is_unfenced = false;   // by VOTE
  bool awaits_value = false;  // of a flight: once it is there, the acquire ends with kSkipped

  protocol::YieldPolicy yield_policy() const { return {yield_every, yield_for / kMs}; }
};

struct Loss {
  Loss() = default;
  Loss(LossReason why) : reason(why), text(words::same(words::loss(why))) {}
  Loss(LossReason why, std::string what) : reason(why), text(std::move(what)) {}

  LossReason reason = LossReason::kNone;
  std::string text;
};

// `result` is the answer of a script that extends a lease.
inline constexpr LossReason loss_by(int64_t result) {
  return result < 0 ? LossReason::kTakenOver : LossReason::kGone;
}

// The delay of a retry after memory ran out.
inline constexpr Nanos kNoMemoryRetry = 20 * kMs;

struct LockState;
struct Server;
struct TokenRecord;

// A caller's view of an acquisition that was granted, and its deadline. It outlives the client.
struct Lease {
  enum State : int32_t { kHeld = 1, kReleased = 2, kLost = 3, kDetached = 4 };

  std::atomic<int32_t> state{0};   // 0: not granted yet
  std::atomic<Nanos> deadline{0};  // certain until then
  Nanos end_at = kNever;           // of max_hold
  std::atomic<int64_t> fence{0};   // rises when a reader becomes the writer
  std::atomic<protocol::Mode> mode{protocol::Mode::kWrite};
  int64_t hold_count = 1;  // of the owner, when it was granted; constant then
  int permits = 1;         // of a semaphore; constant once granted
  // Of several names, in the order of the caller; empty: of one. Constant once granted.
  std::vector<int64_t> part_fences;
  std::string name, token;  // constant once granted
  std::string reason;       // of a loss; written before the state
  LossReason loss = LossReason::kNone;
  bool is_gone = false;           // of kLost: the server has said so, and is sent no RELEASE
  Nanos asked_at = 0;             // when its acquire began; 0: it was attached
  uint64_t starter = 0;           // the number of the thread that started the acquire; 0: not known
  TokenRecord *record = nullptr;  // while kHeld
  bool is_abandoned = false;      // freed by its caller while the server was asked to detach it
  bool is_of_composite = false;   // a part of a lease of several names
  int64_t recall_count = 0;       // how often others have asked it to finish
  std::string recall_reason;      // the last one's, for people

  bool is_composite() const { return !part_fences.empty(); }

  // The state as of `now`: a deadline that has passed is a loss, noticed or not.
  State state_at(Nanos now) const {
    const auto known = static_cast<State>(state.load(std::memory_order_acquire));
    const bool is_over = known == kHeld && now >= deadline.load(std::memory_order_relaxed);
    return is_over ? kLost : known;
  }
  // lost_words() is only for a lease that is lost, noticed or not.
  std::string lost_words() const;
  Outcome why_not_held() const;
  // Why it is lost as of `now`; kNone if it is not. Also of one that was released, and was lost
  // before that, as the release has shown.
  LossReason loss_at(Nanos now) const {
    const bool is_noticed = state.load(std::memory_order_acquire) != kHeld;
    if (is_noticed || state_at(now) != kLost) return loss;
    return now >= end_at ? LossReason::kMaxHold : LossReason::kExpired;
  }
};

// Arguments of attach, raise fence and begin run; of a release that writes a note; of an acquire
// of a flight.
struct RequestArguments {
  std::string token;         // attach
  std::string call;          // attach: a name that no other call has
  int64_t fence = 0;         // to raise; attach: what the lease shows
  std::string period;        // begin run, release: the text that names it
  Nanos remembered_for = 0;  // begin run
  int64_t tries = 0;         // begin run
  bool must_end_lease =
      false;  // detach: of a lease that no caller has; if it fails, the ttl ends it
  // A release of a flight: the value to store. An acquire of a flight: the value that it found,
  // instead of a lease.
  std::shared_ptr<const protocol::FlightValue> value = nullptr;
  Nanos value_ttl = 0;                               // release; 0: it is of a run
  std::shared_ptr<Lease> (*make_lease)() = nullptr;  // acquire: for a lease of its type
};

// One of the names of an acquire of several.
struct NamedMode {
  std::string name;
  protocol::Mode mode = protocol::Mode::kWrite;
};

struct Request;

// The fields of a request that is about several names.
struct OfSeveral {
  std::unique_ptr<const std::vector<NamedMode>> names;  // acquire: all of them; nullptr: of one
  const Request *awaited = nullptr;                     // .. and the part that it waits for
  bool is_part = false;                                 // it is about one of several
};

// The thread that waits for a request.
struct WaitingThread {
  uint64_t number = 0;      // 0: not known
  bool was_warned = false;  // it waits for itself
};

// The confirmation by replicas: first of a grant, then of its lease again after an outage.
struct Confirmation : Replication::Entry {
  using Entry::Entry;

  TokenRecord *record = nullptr;  // once granted
  bool is_reported = false;       // the log has that too few confirmed a lease that is held
};

// The purpose of a request: an operation with a record of the lock, or a task.
struct RequestWhat {
  enum class Op : uint8_t {
    kConnect,
    kAcquire,
    kRelease,
    kExtend,
    kUpgrade,
    kDowngrade,
    kAttach,
    kRaiseFence,
    kBeginRun,
    kDetach,
    kCheck,
    kOperate  // it has a task
  };
  constexpr RequestWhat(Op what) : op(what) {}
  template <class Task>
  static constexpr RequestWhat ask() {
    RequestWhat what(Op::kOperate);
    what.make_task = []() -> std::unique_ptr<operate::Operation> {
      return std::make_unique<Task>();
    };
    return what;
  }

  Op op;
  std::unique_ptr<operate::Operation> (*make_task)() = nullptr;
};

// Something a caller started. Finished once; the result does not change afterwards. Ten thousand of
// them may wait: it is kept small.
struct Request : Timed, Waitlist::Caller {
  using What = RequestWhat;
  using Op = What::Op;

  explicit Request(What what)
      : Timed(Timed::Kind::kRequest),
        op(what.op),
        task(what.make_task ? what.make_task() : nullptr) {
    assert((op == Op::kOperate) == (task != nullptr));
    const bool has_arguments = op == Op::kAttach || op == Op::kRaiseFence || op == Op::kBeginRun;
    if (has_arguments) arguments = std::make_unique<RequestArguments>();
  }

  // Its task, which has this type.
  template <class T>
  T &as() const {
    return static_cast<T &>(*task);
  }

  // Set the result; once. Without memory the message stays empty: the status says enough.
  void complete(Status result, std::string_view why) noexcept {
    assert(!is_finished() && result != Status::kPending);
    if (!why.empty()) message = words::cleaned(why);
    status.store(result, std::memory_order_release);
  }

  static Request &of(Waitlist::Caller &caller) { return static_cast<Request &>(caller); }
  bool waits_for_lock() const { return op == Op::kAcquire && wait_ms != 0; }
  // Its result is a value, or the lease of the caller that computes it.
  bool is_flight() const { return op == Op::kAcquire && arguments != nullptr; }
  // It shares one place in the server's queue with other callers of its client.
  bool shares_place() const {
    return waits_for_lock() && options.max_local_handoffs > 0 &&
           options.mode == protocol::Mode::kWrite && protocol::traits(options.format).has_handoff;
  }
  // A command about what is held: it may outlast a short outage.
  bool is_about_lease() const {
    return op == Op::kExtend || op == Op::kDowngrade || op == Op::kRaiseFence ||
           op == Op::kDetach || op == Op::kBeginRun;
  }
  // It waits for another client, such as for its release, and not for a reply.
  bool is_queued() const;
  // This client holds the lock that it waits for. The thread that releases it then most likely
  // finishes the request.
  bool is_held_here() const;
  // It waits, and is next.
  bool is_head() const;
  // The latest end of the request. Its timer may be due earlier, to ask for the holder's name.
  Nanos limit() const { return std::max(due, wait_until); }

  const Op op;
  const std::unique_ptr<operate::Operation> task;  // of kOperate
  std::atomic<Status> status{Status::kPending};
  std::string message;  // written before the status

  int64_t wait_ms = -1;             // acquire, upgrade, connect, check
  Nanos wait_until = 0;             // acquire
  AcquireOptions options;           // acquire
  std::shared_ptr<Lease> lease;     // acquire, attach: the result; else the lease it is about
  Nanos extend_to = 0;              // extend
  uint64_t rid = 0;                 // acquire: a vote, and the number of its token; 0: none
  std::string name;                 // acquire (until started: then the lease has it), attach, ..
  std::shared_ptr<LockState> lock;  // acquire, attach: its keys; inspect, force: its slot
  Server *server = nullptr;         // where it was started
  std::unique_ptr<RequestArguments> arguments;  // see there
  std::unique_ptr<Confirmation> replicas;       // acquire: that must confirm the grant
  OfSeveral several;

  // While it waits.
  TokenRecord *record = nullptr;    // release, upgrade; acquire: its own place, if not shared
  std::shared_ptr<Request> listed;  // itself, in a waitlist, which keeps no caller alive
  std::list<std::shared_ptr<Request>>::iterator place;  // in Requests::open_
  bool is_sent = false;                                 // the server may have carried it out
  bool is_unanswered = false;                           // .. and an earlier copy got no answer
  bool is_postponed = false;  // the server could not serve the slot: to be sent again
  WaitingThread waiter;
  bool is_part = false;       // check: of a request for all nodes of a cluster
  bool is_recalling = false;  // acquire: a try that waits for a holder that was recalled

  bool is_finished() const { return status.load(std::memory_order_acquire) != Status::kPending; }
  // It waits for a server that is away, without a limit of its own.
  bool is_of_observer() const { return several.is_part && task && task->is_election(); }
  // It goes to all primaries of a cluster, one after the other.
  bool is_list() const { return task && task->as_listing() != nullptr; }
  // If the answer is lost, it is sent again.
  bool is_repeatable() const { return !task || task->is_repeatable(); }
};

// The lock that `request` is about; nullptr: none. A list is about no lock.
const LockState *lock_of(const Request &request);
// The server that the lock is at; without a lock: where the request was started.
Server &server_of(const Request &request);

}  // namespace redlatch::lock
