// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ReadingRoles: which threads read what the servers send. It has no thread, mutex or socket: Roles
// gives it the events, and makes the kernel and the threads follow.
//
// Three things have a state each; the tables in the source say which event leads from which state
// to which, and check() which of the states may meet:
//
//   Lead    kFree --lead--> kLed --read--> kReading, --wait--> kWaiting; --end_read--> kLed
//   Watch   kNone --follow--> kCaller --arm--> kCallerArmed, and the same in the background
//   Input   kNothing --leave_unread--> kDue, --drain--> kDrained
//
// An event that the state does not allow changes nothing, and returns false.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redlatch::runtime {

struct Waiter;

class ReadingRoles {
 public:
  // The leader, at most one, reads all links.
  enum class Lead : uint8_t {
    kFree,
    kLed,      // between two reads: it is about to send, for all
    kReading,  // takes what has come
    kWaiting,  // takes what comes
    kCount,
  };
  // The follower, at most one, watches for input while there is no leader: a caller, or the
  // background thread. An armed one sees input, else only the end of a connection.
  enum class Watch : uint8_t {
    kNone,
    kCaller,
    kCallerArmed,
    kBackground,
    kBackgroundArmed,
    kCount,
  };
  // The input that the next reader finds.
  enum class Input : uint8_t {
    kNothing,
    kDrained,  // the queue that reads has just read all of it
    kDue,      // some, or an end, was left to the leader
    kCount,
  };

  // ---- the leader. A waiter may lead that is the leader already: the role was given to it.
  bool lead(Waiter &waiter);
  bool read();
  bool wait();
  bool end_read();
  // True also if `waiter` is not the leader.
  bool stop_leading(const Waiter &waiter);

  // ---- the follower
  // A caller may follow in place of the background thread, and of no other caller.
  bool follow(Waiter &waiter);
  bool follow_in_background(Waiter &waiter);
  bool stop_following();
  bool arm();
  // True also if nothing is armed.
  bool disarm();

  // ---- input
  bool leave_unread();
  bool drain();
  // The reader is another one, or the connection.
  bool forget_drained();
  bool end_due();

  // ---- what is known
  bool is_led() const { return lead_ != Lead::kFree; }
  bool is_leader(const Waiter &waiter) const { return leader_ == &waiter; }
  Waiter *leader() const { return leader_; }
  bool sends_for_all() const { return lead_ == Lead::kLed; }
  bool is_follower(const Waiter &waiter) const { return follower_ == &waiter; }
  Waiter *follower() const { return follower_; }
  bool has_follower() const { return watch_ != Watch::kNone; }
  bool is_watched_by_caller() const {
    return watch_ == Watch::kCaller || watch_ == Watch::kCallerArmed;
  }
  bool is_watched_in_background() const { return has_follower() && !is_watched_by_caller(); }
  bool is_armed() const {
    return watch_ == Watch::kCallerArmed || watch_ == Watch::kBackgroundArmed;
  }
  bool is_due() const { return input_ == Input::kDue; }
  bool is_drained() const { return input_ == Input::kDrained; }

  // The follower from now on, if nothing leads. `is_caller_ready`: a caller waits that may follow.
  enum class Choice : uint8_t { kAsBefore, kCaller, kBackground, kNone };
  Choice next_follower(bool is_caller_ready, bool is_background_needed) const;

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  Waiter *leader_ = nullptr;
  Waiter *follower_ = nullptr;
  Lead lead_ = Lead::kFree;
  Watch watch_ = Watch::kNone;
  Input input_ = Input::kNothing;
};

}  // namespace redlatch::runtime
