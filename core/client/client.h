// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: the shell around the engine. Threads, locking, waiting; no behaviour of locks.
//
// Callers that wait drive the connection themselves (a hand-over to another thread costs more than
// the round trip's own work):
//  - the *driver*, at most one, reads the socket. A caller whose answer is in flight becomes it if
//    nobody is, and hands the role to the oldest sleeping caller of that kind when it leaves.
//  - the *sentinel*, at most one, watches the socket while nobody drives: a caller that stands in a
//    queue for a lock that others have, else the library's thread. It reads only what came while
//    nobody drove.
//  - the *keeper*, the library's own thread, runs the engine's timers, sees to the connection, and
//    is the last resort as sentinel: it reads for requests that no caller waits for. It starts with
//    the first request and ends with shut_down(). Connecting may block for long, and gets a thread
//    for as long as it takes.
// Whoever leaves passes on every role it holds. Roles change only under the mutex; a sleeper is
// woken by a futex word of its own, or by the event descriptor that it polls.
//
// One mutex guards everything here but what is said otherwise; it is never held in a system call
// that can block, nor while others are woken.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fork.h"
#include "base/settings.h"
#include "base/status.h"
#include "client/handshake.h"
#include "client/queue.h"
#include "client/subjects.h"
#include "client/waiter.h"
#include "embedded/census.h"
#include "embedded/membership.h"
#include "engine/engine.h"
#include "io/connection.h"
#include "io/watch.h"

namespace redlatch::client {

// The words of engine and embedded that the users of this folder need.
using engine::AcquireOptions;
using Info = wire::InspectAnswer;
using ServerInfo = embedded::Census;
using embedded::take_census;

// To connect, in a thread of its own.
struct Attempt {
  pthread_t thread{};
  bool is_over = false;
  Line line;
  Outcome outcome;
};

class Client final : private engine::Outlet {
 public:
  // nullptr: `why` says why not. Touches no network.
  static std::shared_ptr<Client> open(Settings settings, Outcome &why);
  ~Client() override;
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  // True in a process forked from the one that opened the client: nothing else may be called there.
  bool is_forked() const { return fork_count_ != fork_count(); }

  const Settings &settings() const { return settings_; }

  // Start `request` and wait until it is finished. For a caller that wants nothing in between.
  void run(const std::shared_ptr<Request> &request);
  // Start `request` and return.
  void start(const std::shared_ptr<Request> &request);
  // Wait until `request` is finished or `limit` has passed. kInterrupted: after a signal.
  Status wait(Request &request, Nanos limit);
  Status cancel(Request &request);

  void detach(Lease &lease);
  void abandon(Lease &lease);
  // kOk if `lease` is held by the local clock, else why not.
  Outcome check(const Lease &lease);
  // Wait until `lease` is not held any more or `limit` has passed.
  void wait_ended(const Lease &lease, Nanos limit);

  // Post `tag` to `queue`, once, when `request` is finished, or `lease` is not held any more; at
  // once if so. In the place of what was asked before; no queue: of nothing. Throws std::bad_alloc.
  void watch(Request &request, std::shared_ptr<Queue> queue, int64_t tag);
  void watch(Lease &lease, std::shared_ptr<Queue> queue, int64_t tag);

  // How hand-overs reach this client: "push", "poll" (and why), or nothing before it is connected.
  std::string delivery();

  // Release everything, flush, stop the keeper. Twice does nothing.
  void shut_down();

 private:
  using Lock = std::unique_lock<std::mutex>;

  explicit Client(Settings settings);

  // engine::Outlet
  void send(std::span<const std::string_view> argv) override;
  void finished(engine::Request &request) override;
  void lease_ended(engine::Lease &lease) override;
  void drop_link() override;

  // client.cc
  void make_room();
  void enlist(Waiter &waiter);
  void delist(Waiter &waiter);
  void wake(Waiter &waiter);
  void wake_all(Lock &lock);
  void sleep(Lock &lock, Waiter &me, Nanos limit);
  template <class Wait>
  void poll_as(Lock &lock, Waiter &me, const Wait &wait);
  void end_turn(Lock &lock);
  void begin(const std::shared_ptr<Request> &request);
  void tell(Watcher &watcher) noexcept;
  template <class Subject>
  void watch(Subject &subject, bool is_over, std::shared_ptr<Queue> &queue, int64_t tag);

  // drive.cc
  enum class Patience : uint8_t {
    kUninterrupted,  // may sit in recv: nobody can cancel it, and it has no limit of its own
    kInterruptible,
  };
  void wait_driving(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void drive(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void stand_sentinel(Lock &lock, Waiter &me, Nanos limit);
  void act_on(Lock &lock, Waiter &me, const io::Watch::Seen &seen, uint64_t watched);
  void read_as_sentinel(Lock &lock, Waiter &me);
  void take_in(io::Connection::Received received);
  void dispatch();
  void take_message(const Reply &reply, Nanos now);
  void flush(Lock &lock);
  void flush_if_nobody_will(Lock &lock);
  void flush_unless_reader_will(Lock &lock);
  void set_clogged(bool is_on);
  // Waiting for more would leave the server idle.
  size_t batch_size_for_one_write() const { return std::max<size_t>(4, batch_size_ / 2); }
  void settle();
  void leave(Waiter &waiter);
  void set_sentinel(Waiter *waiter);
  void set_armed(bool is_on);
  void disconnect(Lock &lock);
  io::Watch &watch_of_sentinel() { return sentinel_ == &keeper_ ? keeper_watch_ : watch_; }

  // keeper.cc
  void start_keeper();
  static void *keeper_main(void *client);
  void keep();
  void start_attempt();
  static void *attempt_main(void *client);
  void attempt();
  void end_attempt(Lock &lock);
  void read_messages(Lock &lock);
  void note_connection(const Outcome &outcome, const engine::ServerFacts &facts);
  void tick(Lock &lock);
  void run_timers(Nanos now);
  void call_keeper_in_time();

  const Settings settings_;
  const uint32_t fork_count_;

  std::mutex mutex_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<io::Connection> connection_;  // the object: only the driver changes it
  std::unique_ptr<io::Connection> messages_;    // with RESP2; the object is the keeper's
  bool is_connected_ = false;
  bool is_away_ = false;  // the last attempt to connect failed, and that was said
  std::string delivery_;
  uint64_t connection_count_ = 0;  // so far
  bool is_broken_ = false;         // of no use any more; the driver or the keeper will disconnect

  std::string out_;       // to be sent
  size_t out_count_ = 0;  // commands in it
  std::string sending_;   // only whoever set is_sending_
  bool is_sending_ = false;
  bool is_clogged_ = false;            // the socket takes no more; the keeper goes on when it does
  std::condition_variable sent_;       // is_sending_ turned false
  std::vector<io::ReplyPtr> replies_;  // only the driver

  Waiter *driver_ = nullptr;
  Waiter *sentinel_ = nullptr;
  bool is_reading_ = false;    // the driver is in recv or poll: others send for themselves
  bool is_armed_ = false;      // the sentinel sees the socket
  size_t finished_count_ = 0;  // waits ended since the last read
  size_t batch_size_ = 0;      // .. by the last read
  bool should_yield_ = false;  // once, before the next write
  WaiterList short_;           // sleeping, an answer is in flight
  WaiterList long_;            // sleeping, in a queue or without a connection
  size_t waiter_count_ = 0;
  std::vector<Waiter *> wakes_;        // to be woken after unlocking
  std::shared_ptr<Queue> due_queues_;  // to be signalled after unlocking, by next_due
  Waiter *lease_waiters_ = nullptr;
  io::Watch watch_;         // where callers poll
  io::Event driver_event_;  // wakes a driver that has a limit of its own

  std::optional<Attempt> attempt_;  // to connect; what it found is read when it is over
  // Of an embedded server, else none. Used by the attempt, then by shut_down().
  std::unique_ptr<embedded::Membership> membership_;
  Waiter keeper_;
  io::Watch keeper_watch_;
  io::Event stop_event_;  // ends an attempt to connect
  pthread_t keeper_thread_{};
  bool has_keeper_ = false;
  bool is_stopping_ = false;
  bool is_shut_ = false;
  bool was_active_ = false;  // commands were sent since the keeper last looked
  Nanos keeper_wakes_at_ = kNever;
  Waiter *drain_waiter_ = nullptr;
  std::mutex shutdown_mutex_;  // one shut_down() at a time; taken before mutex_
};

// Run `wait`, which sleeps on descriptors, without the mutex; not at all if `me` was woken before.
template <class Wait>
void Client::poll_as(Lock &lock, Waiter &me, const Wait &wait) {
  uint32_t expected = Waiter::kAwake;
  if (me.word.compare_exchange_strong(expected, Waiter::kAsleep)) {
    me.is_polling = true;
    lock.unlock();
    wait();
    lock.lock();
    me.is_polling = false;
  }
  me.word.store(Waiter::kAwake);
}

}  // namespace redlatch::client
