// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// KeyWatch: the waiters of one lock, whether the server tracks its key for them, and when each of
// them rechecks while others hold it. The waiters belong to their acquisitions.
//
// Holders of this library notify the next waiter when they release. Holders of other libraries do
// not: for these the server is asked to report the next change of the key (key tracking), once for
// all waiters of this client, and the foremost of them rechecks. Where the server does not report,
// the waiters poll.
//
//   not tracked --sent--> tracked --changed, disconnected--> not tracked
//
// The machine sends nothing itself: if a step asks for tracking, sent() follows unless that failed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/random.h"
#include "timing/backoff.h"

namespace redlatch::lock {

class KeyWatch {
 public:
  // One waiter of the lock. Its place in memory must not change while it waits.
  class Watcher {
   public:
    explicit Watcher(uint64_t id) : id_(id) {}
    Watcher(const Watcher &) = delete;
    Watcher &operator=(const Watcher &) = delete;

    // Place in the server's queue; -1: not known.
    int64_t rank() const { return rank_; }
    bool is_head() const { return rank_ == 0; }
    void set_rank(int64_t rank) { rank_ = rank; }
    // A new connection tracks nothing yet.
    void on_connected() { quiet_until_ = 0; }
    // While nothing is tracked for it.
    void set_id(uint64_t id) { id_ = id; }

   private:
    friend class KeyWatch;
    uint64_t id_;
    int64_t rank_ = -1;
    bool waits_ = false;
    bool is_key_awaited_ = false;  // the key is free and left to others, until one takes it
    Nanos quiet_until_ = 0;        // it does not ask for tracking before
    timing::Backoff poll_ = timing::kForeignPoll;
    Watcher *next_ = nullptr, *previous_ = nullptr;
  };

  // The key, as the answer to a poll describes it.
  struct Seen {
    int64_t pttl_ms = 0;             // -1: no expiry, -2: no key
    bool is_foreign = false;         // another library holds it
    bool is_shared = false;          // readers hold it
    bool is_left_to_others = false;  // it is free, and it is the turn of other libraries
  };
  // The abilities of the server.
  struct Abilities {
    bool can_track = false;
    bool is_push_trusted = true;  // messages of this library arrive
  };

  enum class Command : uint8_t { kNone, kTrack };
  struct Step {
    Command command = Command::kNone;
    uint64_t recheck_id = 0;  // this waiter asks again; 0: none
    Nanos recheck_at = kNever;
  };
  static_assert(sizeof(Step) <= 64);

  // `watcher` waits for the lock, or does not any more. Either may be said twice.
  void set_waiting(Watcher &watcher, bool waits);

  // The server did not grant the lock to `watcher`, which waits.
  Step on_refused(Watcher &watcher, const Seen &seen, Nanos now, Abilities abilities);
  void sent(Watcher &watcher, Nanos now);
  // After on_refused(), and sent() if that asked for it: when `watcher` polls if no message comes.
  Nanos poll_delay(Watcher &watcher, const Seen &seen, Abilities abilities, Entropy &random) const;

  // The server began to track the key for `watcher` and found it there or not.
  Step on_key_found(const Watcher &watcher, bool is_there, Nanos now);
  // The server reports a change of the key. It does so once.
  Step on_changed(Nanos now);
  void on_disconnected() { tracked_for_ = 0; }

  bool is_tracked() const { return tracked_for_ != 0; }
  size_t watcher_count() const { return count_; }

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  const Watcher *foremost() const;

  Watcher *first_ = nullptr;  // those that wait, in no order
  size_t count_ = 0;
  // The waiter that rechecks, by id: it may be gone, and another one takes its turn. 0: not
  // tracked.
  uint64_t tracked_for_ = 0;
};

}  // namespace redlatch::lock
