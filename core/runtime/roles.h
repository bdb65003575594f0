// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Roles: the threads that read. Callers that wait read for themselves (a switch to another thread
// costs more than the round trip's own work):
//  - the *leader*, at most one, reads the sockets. A caller whose reply is in flight takes this
//    role if it is free; when it leaves, the longest sleeping caller of that kind gets it.
//    With one link the leader may block in the receiving call; with several it polls them all.
//    A quorum has no callers as followers: a message of one node decides nothing.
//  - the *follower*, at most one, watches while there is no leader: a caller that is in a queue for
//    a lock that another client holds, else the background thread. It reads only what came while
//    there was no leader.
//  - the *reader*, if a caller has set one, is a completion queue: a thread that takes tags from it
//    reads what came, unless there is a leader. The queue's descriptor is an epoll set that
//    contains the connection. Only with one link.
// A thread that leaves gives up every role it has, and settle() gives it to another thread. Roles
// change only under the mutex, and an exception leaves them as a return does. ReadingRoles has the
// states.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "net/epoll_set.h"
#include "runtime/alarm.h"
#include "runtime/links.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/runtime_mutex.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/transfer.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Roles {
 public:
  explicit Roles(const Parts &parts);

  enum class Patience : uint8_t {
    kUninterrupted,  // may block in the receiving call: cannot be cancelled, has no limit
    kInterruptible,
  };
  // Wait until the request of `me`, which is enlisted, is finished, `limit` has passed, or a signal
  // came and `patience` allows it to end the wait. Then `me` has no role.
  void wait(Lock &lock, Waiter &me, Nanos limit, Patience patience) REQUIRES(runtime_mutex);
  // Give free roles to threads, so that each expected reply or message has a thread that reads it.
  // Called whenever a role may have become free.
  void settle() REQUIRES(runtime_mutex);
  // The end of every call that may leave commands to send, free roles or sleepers to wake.
  void end_turn(Lock &lock) REQUIRES(runtime_mutex);
  // Wake the callers that sleep with a limit.
  void wake_sleepers() REQUIRES(runtime_mutex);

  // ---- the background thread
  // Handle what the follower, or the background thread, saw. `watched` is connection_count() before
  // it polled: what it saw of an older connection is ignored.
  void act_on(Lock &lock, Waiter &me, const net::EpollSet::Seen &seen, uint64_t watched)
      REQUIRES(runtime_mutex);
  void on_end(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  // The queue's thread may poll late. A reply that arrived in time must not count as late for that.
  void read_remaining(Lock &lock) REQUIRES(runtime_mutex);
  void disconnect_unled(Lock &lock) REQUIRES(runtime_mutex);

  // ---- the shutdown: unless another thread reads or sends.
  void disconnect_unread(Lock &lock) REQUIRES(runtime_mutex);

  // ---- the reader
  bool read_for_queue(Lock &lock) REQUIRES(runtime_mutex);
  bool begin_reading_by(Lock &lock, const std::shared_ptr<Queue> &queue,
                        const std::weak_ptr<Source> &source) REQUIRES(runtime_mutex);
  void end_reading_by(Lock &lock, const Queue &queue) noexcept REQUIRES(runtime_mutex);

 private:
  // The role of leader for as long as it exists. settle() gives it to another thread then.
  class Leading;
  // Gives up every role of a waiter at its end.
  class Leaving;
  bool should_follow(const Waiter &waiter) const REQUIRES(runtime_mutex);
  void lead(Lock &lock, Waiter &me, Nanos limit, Patience patience) REQUIRES(runtime_mutex);
  void read_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience)
      REQUIRES(runtime_mutex);
  void receive_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience)
      REQUIRES(runtime_mutex);
  void follow(Lock &lock, Waiter &me, Nanos limit) REQUIRES(runtime_mutex);
  bool read_once(Lock &lock, Waiter &me) REQUIRES(runtime_mutex);
  void disconnect_as(Lock &lock, Waiter &me) REQUIRES(runtime_mutex);
  void disconnect_if_over(Lock &lock) REQUIRES(runtime_mutex);
  Waiter *next_leader() REQUIRES(runtime_mutex);
  void choose_follower(Waiter *waiter, bool is_background_needed) REQUIRES(runtime_mutex);
  void read_due() REQUIRES(runtime_mutex);
  void leave(Lock &lock, Waiter &waiter) REQUIRES(runtime_mutex);

  Wakeup &wakeup_;
  Alarm &alarm_;
  Service &service_;
  Links &links_;
  Shutdown &shutdown_;
  Polling &polling_;
  Transfer &transfer_;

  // Sleeping: a reply is in flight; in a queue, or without a connection.
  WaiterList short_ GUARDED_BY(runtime_mutex);
  WaiterList long_ GUARDED_BY(runtime_mutex);
};

// After an exception what was due may fail again: not before this has passed.
inline constexpr Nanos kPauseAfterException = 10 * kMs;

}  // namespace redlatch::runtime
