// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The things that the engine keeps: requests of callers, leases of callers, and holds.
//
// Requests and leases are shared with the callers that made them; holds belong to the engine alone.
// All but the fields marked atomic are guarded by the mutex of core/runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/limits.h"
#include "base/status.h"
#include "lock/acquisition.h"
#include "lock/cleanup.h"
#include "lock/held_lease.h"
#include "lock/key_watch.h"
#include "lock/lock_types.h"
#include "lock/timer_queue.h"
#include "lock/upgrade.h"
#include "lock/waitlist.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/keys.h"
#include "timing/backoff.h"
#include "timing/waiting.h"

namespace redlatch::lock {

struct AcquireOptions {
  Nanos lease = kDefaultLeaseMs * kMs;
  Nanos max_hold = 0;  // 0: no limit
  bool is_renewed = true;
  bool is_confirmed = false;
  int local_burst = kDefaultLocalBurst;
  protocol::ForeignTurn foreign{protocol::ForeignTurn::kAutomatic, kDefaultForeignWindowMs};
  protocol::Format format = protocol::Format::kString;
  protocol::Mode mode = protocol::Mode::kWrite;
  bool is_unfenced = false;  // by VOTE
  std::string owner;         // may acquire it again; empty: no owner
  std::string label;
};

// Why a lease was lost, and when to try again what there was no memory for.
inline constexpr char kTakenAway[] =
    "the server has another owner or none: it expired there, was forced or evicted";
inline constexpr Nanos kNoMemoryRetry = 20 * kMs;

// What a reply in flight is about.
struct Subject {
  virtual ~Subject() = default;
};

struct Hold;
struct Request;

// One name that this client has something to do with.
struct LockName : Subject {
  LockName(std::string_view name_space, std::string_view name_, protocol::Format format)
      : name(name_), keys(name_space, name_, format) {}

  const std::string name;
  const protocol::LockKeys keys;
  size_t hold_count = 0;  // the engine forgets the name at 0

  Waitlist waitlist;          // of callers that share a place, which is a hold
  Hold *holder = nullptr;     // the hold that has the lock alone, as far as this client knows
  bool has_sharers = false;   // this client has shared the lock
  Hold *owned = nullptr;      // the holds of named owners, by Hold::next_owned
  int64_t highest_fence = 0;  // the highest that a caller of this client got
  KeyWatch key_watch;
  std::string blocker;          // cid of the last known holder, for messages; empty: not known
  std::string obstacle;         // .. and how it was kept then: "held by readers"
  bool is_name_wanted = false;  // ask for its name at the next refusal
  Nanos blocker_due = 0;        // earliest time of the next such poll
};

// A caller's view of a hold, and its clock. Outlives the engine.
struct Lease : Subject {
  enum State : int32_t { kHeld = 1, kReleased = 2, kLost = 3, kDetached = 4 };

  std::atomic<int32_t> state{0};   // 0: not granted yet
  std::atomic<Nanos> deadline{0};  // certain until then
  Nanos end_at = kNever;           // of max_hold
  std::atomic<int64_t> fence{0};   // rises when a reader becomes the writer
  std::atomic<protocol::Mode> mode{protocol::Mode::kWrite};
  int64_t hold_count = 1;   // of the owner, when it was granted; constant then
  std::string name, token;  // constant once granted
  std::string reason;       // of kLost; written before the state
  bool is_gone = false;     // of kLost: the server has said so, and is sent no RELEASE
  uint64_t starter = 0;     // the number of the thread that started the acquire; 0: not known
  Hold *hold = nullptr;     // while kHeld

  // The state as of `now`: a deadline that has passed is a loss, whoever has noticed.
  State state_at(Nanos now) const {
    const auto known = static_cast<State>(state.load(std::memory_order_acquire));
    const bool is_over = known == kHeld && now >= deadline.load(std::memory_order_relaxed);
    return is_over ? kLost : known;
  }
};

// What only some requests ask and find out.
struct Inquiry {
  std::string token;                // attach, force
  std::string call;                 // attach: a name that no other call has
  int64_t fence = 0;                // raise fence
  protocol::InspectAnswer earlier;  // inspect: what the format asked for before said
  protocol::InspectAnswer info;     // inspect: the result
  std::string pattern;              // list: of lock names
  protocol::ListAnswer list;        // list: the cursor to go on from, then the result
  protocol::Format format = protocol::Format::kString;  // inspect, force: as far as is known
  size_t unnamed_count = 0;  // inspect: names of clients that are asked for
};

// Something a caller started. Finished once; the result does not change afterwards. Ten thousand of
// them may wait: it is kept small.
struct Request : Subject, Timed, Waitlist::Caller {
  enum class Op : uint8_t {
    kConnect,
    kAcquire,
    kRelease,
    kExtend,
    kUpgrade,
    kDowngrade,
    kAttach,
    kInspect,
    kForce,
    kList,
    kRaiseFence,
    kDetach
  };

  explicit Request(Op what) : Timed(Timed::Kind::kRequest), op(what) {
    const bool is_inquiry = op == Op::kAttach || op == Op::kInspect || op == Op::kForce ||
                            op == Op::kList || op == Op::kRaiseFence;
    if (is_inquiry) inquiry = std::make_unique<Inquiry>();
  }

  const Op op;
  std::atomic<Status> status{Status::kPending};
  std::string message;  // written before the status

  int64_t wait_ms = -1;              // acquire, upgrade, connect
  Nanos wait_until = 0;              // acquire
  AcquireOptions options;            // acquire
  std::shared_ptr<Lease> lease;      // acquire, attach: the result; else the subject
  Nanos extend_to = 0;               // extend
  uint64_t rid = 0;                  // acquire: a vote, and the number of its token; 0: none
  std::string name;                  // acquire (until started: then the lease has it), attach, ..
  std::shared_ptr<LockName> lock;    // acquire, attach, inspect, force: its keys
  std::unique_ptr<Inquiry> inquiry;  // attach, inspect, force, list, raise fence

  // While it waits.
  Hold *hold = nullptr;  // release, upgrade: its hold; acquire: its own place, if not shared
  std::shared_ptr<Request> listed;  // itself, in a waitlist, which keeps no caller alive
  std::list<std::shared_ptr<Request>>::iterator place;  // without a hold: in the list of these
  bool is_sent = false;                                 // the server may have carried it out
  bool is_unanswered = false;                           // .. and an earlier copy got no answer
  uint64_t waiter = 0;                                  // the number of the thread that waits
  bool was_warned = false;  // the caller waits for itself and was warned

  bool is_finished() const { return status.load(std::memory_order_acquire) != Status::kPending; }
};

// A GET of a client's name, for an inspection, a refused try, or a later message.
struct NameQuery : Subject {
  std::string cid;
  std::shared_ptr<Request> request;
  std::shared_ptr<Hold> hold;
  std::string message;  // of the refusal
};

// One token and what becomes of it: the state machine of one acquisition (docs/wire.md, "States").
//
//   kAsking --granted--> kHeld --release, loss--> kLeaving --> forgotten
//      |  \--queued--> kQueued --pushed--^ |          ^
//      \-------------------\------ cancel -|---------/
//                             refused ^   | detach
//                                     |   v
//                                   kDetaching --> forgotten
//
// A reader that waits to be the writer stays kHeld: see upgrade.h.
//
// A lock that passes on inside the client keeps its hold; only the lease changes.
struct Hold : Subject, Timed, Waitlist::Place, std::enable_shared_from_this<Hold> {
  enum class Phase : uint8_t { kAsking, kQueued, kHeld, kDetaching, kLeaving };

  explicit Hold(uint64_t id_) : Timed(Timed::Kind::kHold), id(id_), watcher(id_) {}

  const uint64_t id;  // the rid of its token, unless that was attached or asked for before
  std::shared_ptr<LockName> lock;
  std::string token;
  std::string owner;                             // hash format: never empty; else of the caller
  protocol::Mode mode = protocol::Mode::kWrite;  // what it asks for, or has
  bool is_sharing = false;  // others may have it, too: extended as one of several
  Phase phase = Phase::kAsking;
  bool is_gone = false;             // forgotten; only a reply in flight still refers to it
  bool is_shared = false;           // for the callers of LockName::waitlist
  bool is_vote = false;             // one of several: a no is followed by a RELEASE as well
  bool is_unfenced = false;         // acquired by VOTE
  std::shared_ptr<Request> caller;  // else for this one
  KeyWatch::Watcher watcher;        // while queued, and while it waits to upgrade

  // While asking and queued.
  Acquisition acquisition;
  bool is_lined_up = false;
  std::string trouble;  // the server's last refusal
  protocol::ForeignTurn foreign;

  protocol::Identity identity() const { return {token, owner}; }
  bool is_head() const { return watcher.is_head(); }

  // While held.
  std::shared_ptr<Lease> lease;
  std::unique_ptr<Upgrade> upgrade;   // since the first; most leases have none
  std::shared_ptr<Request> upgrader;  // the request that waits to write
  Hold *next_owned = nullptr;
  Nanos looked_at = 0;  // when its timer last ran

  // While leaving.
  std::shared_ptr<Request> releaser;  // the release whose result is not known yet

  // One excludes the other. The cleanup begins when the lease, if there was one, has ended.
  std::variant<HeldLease, Cleanup> stage;

  HeldLease *held_lease() { return std::get_if<HeldLease>(&stage); }  // null: it is cleaned up
  Cleanup *started_cleanup() { return std::get_if<Cleanup>(&stage); }
  // Where the phase says which of them it is.
  HeldLease &held() { return std::get<HeldLease>(stage); }
  const HeldLease &held() const { return std::get<HeldLease>(stage); }
  Cleanup &cleanup() { return std::get<Cleanup>(stage); }
  const Cleanup &cleanup() const { return std::get<Cleanup>(stage); }
  Nanos upgrade_due() const { return upgrade ? upgrade->due() : kNever; }
};

}  // namespace redlatch::lock
