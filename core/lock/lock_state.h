// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// State of LockClient: a LockState for each name, a TokenRecord for each acquisition, the
// EndedPlaces of those that are forgotten, and a Throttle.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/checked.h"
#include "base/clock.h"
#include "lock/acquisition.h"
#include "lock/cleanup.h"
#include "lock/held_lease.h"
#include "lock/key_watch.h"
#include "lock/lock_types.h"
#include "lock/request.h"
#include "lock/retention.h"
#include "lock/timer_queue.h"
#include "lock/upgrade.h"
#include "lock/waitlist.h"
#include "operate/names.h"
#include "protocol/command.h"
#include "protocol/keys.h"
#include "protocol/slots.h"

namespace redlatch::lock {

struct Server;

// Slots, and the server that each goes to.
using Moves = std::map<uint16_t, Server *>;

// One name that this client has something to do with.
struct LockState {
  LockState(Server &at, std::string_view name, protocol::Format format);

  // That of its keys in a cluster.
  uint16_t slot() const {
    if (!known_slot) known_slot = protocol::slot_of(keys.lock);
    return *known_slot;
  }

  // The record that is queued at the server for the waitlist; or nullptr.
  TokenRecord *place() const;
  // `caller` joins the waitlist. `opened` becomes the place first; null: the waitlist has a place.
  // @return false: a defect.
  bool join(TokenRecord *opened, const std::shared_ptr<Request> &caller);

  const std::string name;
  const protocol::LockKeys keys;
  mutable std::optional<uint16_t> known_slot;  // computed when it is needed first
  size_t record_count = 0;                     // the name is forgotten at 0

  Checked<Waitlist> waitlist;     // of callers that share one record
  TokenRecord *holder = nullptr;  // the exclusive holder, if this client has it
  // What this client retains, and no caller has: the one of a writer, or some of readers: a list by
  // TokenRecord::next_listed.
  TokenRecord *retained = nullptr;
  bool has_sharers = false;      // this client has shared the lock
  TokenRecord *owned = nullptr;  // by named owners: a list by TokenRecord::next_listed
  int64_t highest_fence = 0;     // the highest that a caller of this client got
  Checked<KeyWatch> key_watch;
  std::string blocker;          // cid of the last known holder, for messages; empty: not known
  Obstacle obstacle;            // how it kept the lock when it was last seen
  bool is_name_wanted = false;  // ask for its name at the next refusal
  Nanos blocker_due = 0;        // earliest time of the next such poll
  Server *server;               // that it is at
};

// For an inspection, a refused try, or a later message.
struct NameQuery final : operate::NameQuery {
  std::optional<uint16_t> slot() const override;

  std::shared_ptr<Request> request;
  std::shared_ptr<TokenRecord> record;
  Obstacle obstacle;  // of the refusal
};

// The replicas that must confirm a lease.
struct Replicas {
  std::unique_ptr<Confirmation> entry;  // null: none
  std::shared_ptr<Request> caller;      // the acquire that gets the lease when they have
  bool is_writer_unconfirmed = false;   // .. or the upgrader
  int count = 0;                        // replicas that confirmed this grant on this connection

  bool is_batched() const { return entry && entry->is_batched(); }
};

// The last refusal of the server, to an ACQUIRE or an extension.
struct Trouble {
  std::string text;
  bool is_slot_moving = false;  // the slot is being moved
};

// One token, from the first ACQUIRE to the last cleanup (docs/wire.md, "States"): its machines, and
// which of them an event is for.
//
//   kAsking --granted--> kHeld --release, loss--> kCleanup --> forgotten
//      |  \--queued--> kQueued --pushed--^ |          ^
//      \-------------------\------ cancel -|---------/
//                             refused ^   | detach
//                                     |   v
//                                   kDetaching --> forgotten
//
//   kHeld --retained release--> kRetained --local acquire--> kHeld     kRetained --> kCleanup
//
// A reader that waits to be the writer stays kHeld: see upgrade.h.
//
// A local hand-off keeps the record; only the lease changes.
struct TokenRecord : Timed, Waitlist::Place, std::enable_shared_from_this<TokenRecord> {
  // kRetained: the client has the lock, and no caller. No lease then.
  enum class Phase : uint8_t { kAsking, kQueued, kHeld, kRetained, kDetaching, kCleanup };

  explicit TokenRecord(uint64_t id_) : Timed(Timed::Kind::kRecord), id(id_), watcher(id_) {}

  uint64_t id;  // the rid of its token, unless that was attached or asked for before
  std::shared_ptr<LockState> lock;
  Identity identity;
  bool is_sharing = false;  // others may have it, too: extended as one of several
  Phase phase = Phase::kAsking;
  bool is_gone = false;             // forgotten; only a reply in flight still refers to it
  bool is_shared = false;           // for the callers of LockState::waitlist
  bool is_vote = false;             // one of several: a no is followed by a RELEASE as well
  bool is_unfenced = false;         // acquired by VOTE
  std::shared_ptr<Request> caller;  // else for this one
  KeyWatch::Watcher watcher;        // while queued, and while it waits to upgrade

  // While asking and queued.
  Checked<Acquisition> acquisition;
  bool is_throttled = false;
  Trouble trouble;
  protocol::YieldPolicy yield_policy;

  Server &server() const { return *lock->server; }
  protocol::Proof proof() const { return {identity.token, identity.claim()}; }
  bool is_head() const { return watcher.is_head(); }
  bool is_recallable() const { return protocol::is_recallable(identity.token); }
  // The caller that is next; nullptr: none waits.
  Request *front() const;
  Acquisition::Front front_terms() const;
  // Another lease by which the owner reads already.
  std::string_view sibling() const;
  // A new primary may have the place of a token in its queue, and not the grant: it would grant the
  // lock to a token that has ended.
  void note_new_server();

  // While held.
  std::shared_ptr<Lease> lease;
  std::unique_ptr<Checked<Upgrade>> upgrade;  // since the first; most leases have none
  std::shared_ptr<Request> upgrader;          // the request that waits to write
  TokenRecord *next_listed = nullptr;         // in LockState::owned, or in LockState::retained
  Nanos timer_ran_at = 0;                     // when its timer last ran
  Replicas replicas;
  Checked<Retention> retention;

  // During cleanup.
  std::shared_ptr<Request> releaser;           // the release whose result is not known yet
  std::unique_ptr<const protocol::Note> note;  // that the release writes

  // One excludes the other. The cleanup begins when the lease, if there was one, has ended.
  std::variant<Checked<HeldLease>, Checked<Cleanup>> stage;

  // Null: it is cleaned up.
  Checked<HeldLease> *held_lease() { return std::get_if<Checked<HeldLease>>(&stage); }
  Checked<Cleanup> *started_cleanup() { return std::get_if<Checked<Cleanup>>(&stage); }
  // For code that has checked the phase.
  Checked<HeldLease> &held() { return std::get<Checked<HeldLease>>(stage); }
  const Checked<HeldLease> &held() const { return std::get<Checked<HeldLease>>(stage); }
  Checked<Cleanup> &cleanup() { return std::get<Checked<Cleanup>>(stage); }
  const Checked<Cleanup> &cleanup() const { return std::get<Checked<Cleanup>>(stage); }
  Checked<Upgrade> &ensure_upgrade();
  void become_reader();
  Nanos upgrade_due() const { return upgrade ? upgrade->get().due() : kNever; }
};

inline TokenRecord *LockState::place() const {
  return static_cast<TokenRecord *>(waitlist->place());
}

inline Request *TokenRecord::front() const {
  if (!is_shared) return caller.get();
  return lock->waitlist->is_empty() ? nullptr : &Request::of(*lock->waitlist->front());
}

inline Acquisition::Front TokenRecord::front_terms() const {
  const Request *first = front();
  if (first == nullptr) return {};
  return {true, first->options.is_confirmed, first->options.ttl};
}

// True if the lease of `request` is granted, and its replicas have not confirmed it yet.
inline bool is_confirming(const Request &request) {
  return request.op == Request::Op::kAcquire && request.record != nullptr &&
         request.record->replicas.caller.get() == &request;
}

// ACQUIREs to be sent later, in their order, because as many commands as allowed are under way.
class Throttle {
 public:
  // @return whether the ACQUIRE of `record` is sent later. Without memory it is sent now, above the
  // limit: the place must not be lost.
  [[nodiscard]] bool delay(TokenRecord &record, bool has_room) noexcept {
    while (!waiting_.empty() && waiting_.back()->is_gone) waiting_.pop_back();
    if (has_room && waiting_.empty()) return false;
    try {
      waiting_.push_back(record.shared_from_this());
    } catch (const std::bad_alloc &) {
      return false;
    }
    return record.is_throttled = true;
  }
  // The next one; nullptr: none waits.
  std::shared_ptr<TokenRecord> take() {
    if (waiting_.empty()) return nullptr;
    const auto record = std::move(waiting_.front());
    waiting_.pop_front();
    record->is_throttled = false;
    return record;
  }
  void drop(const std::shared_ptr<TokenRecord> &record) {
    if (std::exchange(record->is_throttled, false)) std::erase(waiting_, record);
  }

 private:
  std::deque<std::shared_ptr<TokenRecord>> waiting_;
};

// The places in queues of the last acquisitions that have ended. The primary after a failover may
// have an older queue, in which they still stand: what it grants to them is given back. A detached
// lease is not among them, because its token may have been attached elsewhere.
class EndedPlaces {
 public:
  struct Place {
    uint64_t id = 0;
    std::shared_ptr<LockState> lock;
    std::string claim;
    protocol::YieldPolicy yield_policy;
    bool is_recallable = false;
  };

  // Without memory the place is not kept: a grant to it then lasts for its provisional time.
  void add(const TokenRecord &record) noexcept {
    try {
      Place place{record.id, record.lock, record.identity.claim(), record.yield_policy,
                  record.is_recallable()};
      if (places_.empty()) places_.resize(kCount);
      places_[next_] = std::move(place);
      next_ = (next_ + 1) % kCount;
    } catch (const std::bad_alloc &) {
      return;
    }
  }
  // nullptr: unknown. A search, because it happens after failovers only.
  const Place *find(uint64_t id) const {
    for (const Place &place : places_) {
      if (place.lock && place.id == id) return &place;
    }
    return nullptr;
  }

 private:
  static constexpr size_t kCount = 1024;
  std::vector<Place> places_;
  size_t next_ = 0;
};

}  // namespace redlatch::lock
