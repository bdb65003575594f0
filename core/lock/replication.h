// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Replication: the leases of one client that replicas have to confirm: those that are due, those of
// the batch under way, those put off. Their entries belong to the leases.
//
// On a connection of its own each lease of a batch is extended, which is a write behind its grant.
// One WAIT behind these extensions counts the replicas that have them all.
//
// WAIT blocks its connection. Requests that come meanwhile are gathered for the next batch: callers
// share a WAIT, so a replica that hangs costs two of them, however many callers there are.
//
//   an entry:  kIdle --want--> kDue --start--> kBatched --extended--> kWritten --counted--> kIdle
//                      ^         ^----- too few, with time left; lost link -----/
//                      |                    |
//                      |                    | not carried out now: the slot is being moved
//                      \--- its time --- kPutOff
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace redlatch::lock {

class Replication {
 public:
  // The request of one lease. Its place in memory must not change while it is wanted.
  class Entry {
   public:
    Entry(int replicas, Nanos timeout) : replicas_(replicas), timeout_(timeout) {}
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;

    int replicas() const { return replicas_; }
    Nanos timeout() const { return timeout_; }
    bool is_wanted() const { return state_ != State::kIdle; }
    // True if an answer to its extension is awaited.
    bool is_batched() const { return state_ == State::kBatched; }

   private:
    friend class Replication;
    enum class State : uint8_t { kIdle, kDue, kBatched, kWritten, kPutOff };

    const int replicas_;
    const Nanos timeout_;
    State state_ = State::kIdle;
    Nanos limit_ = kNever;  // the caller does not wait longer
    Nanos until_ = 0;       // of its WAITs; 0: none was sent
    Nanos retry_at_ = 0;    // kPutOff
    Entry *next_ = nullptr, *previous_ = nullptr;
  };
  enum class Verdict : uint8_t {
    kNone,       // no entry is left in the batch
    kConfirmed,  // by as many replicas as it wants
    kTooFew,     // and its time is over
    kAgain,      // too few; it is in the next batch
  };
  struct Step {
    Verdict verdict = Verdict::kNone;
    Entry *entry = nullptr;
  };
  static_assert(sizeof(Step) <= 64);

  // ---- callers
  // `limit`: nothing waits for the replicas after that.
  void want(Entry &entry, Nanos limit);
  // The lease has ended, or its caller has left.
  void drop(Entry &entry);

  // ---- a batch: start(), an extension for each entry, and WAIT
  // True if a batch can be sent when the connection is up.
  bool is_due() const { return due_.first != nullptr && !is_waiting_; }
  // Those that want as many replicas as the oldest one, if one is due and none are batched.
  // @return the first; the others by next().
  Entry *start();
  static Entry *next(const Entry &entry) { return entry.next_; }
  // The extension of `entry` was sent, and asked for `ttl`.
  void sent(Entry &entry, Nanos ttl, Nanos now);
  // How many replicas to wait for, and how long: at least 1 ms, because 0 is no limit for WAIT.
  int replicas() const { return replicas_; }
  int64_t wait_ms(Nanos now) const;

  // ---- answers, in the order of the commands
  void on_extended(Entry &entry);
  // The extension was not carried out: it is in the next batch.
  void on_unknown_script(Entry &entry);
  // The server could not carry the extension out now: it is in a batch after `retry_at`, if its
  // time has not ended by then.
  void on_put_off(Entry &entry, Nanos retry_at);
  // When to call take_up(); kNever: nothing was put off.
  Nanos put_off_until() const;
  // Entries that were put off until `now` are due. @return an entry whose time is over, kTooFew;
  // call it again until kNone.
  Step take_up(Nanos now);
  // The answer to WAIT: call it again until no entry of the batch is left.
  Step on_counted(int64_t count, Nanos now);
  // WAIT was refused. @return an entry, which is idle now; null: there is no other.
  Entry *on_refused();
  // No answer will come: all of it is repeated.
  void on_link_lost();

  // ---- what is known
  bool is_waiting() const { return is_waiting_; }
  bool is_idle() const {
    return due_.first == nullptr && put_off_.first == nullptr && !is_waiting_;
  }
  // Takes an entry off that is due or was put off. For an owner that gives up all of them.
  Entry *take_due();

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  struct List {
    Entry *first = nullptr, *last = nullptr;
    void push(Entry &entry);
    void remove(Entry &entry);
  };
  Entry *take(List &list);
  List &list_of(const Entry &entry);

  List due_, batch_, put_off_;
  bool is_waiting_ = false;  // WAIT was sent, or its extensions
  int replicas_ = 0;
};

}  // namespace redlatch::lock
