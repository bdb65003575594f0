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
//  - the *reader*, if a caller has asked for one, is a queue: a thread that takes tags from it
//    reads what came, unless there is a driver. The queue's descriptor is an epoll set that
//    contains the connection.
//  - the *keeper*, the library's own thread, runs the engine's timers, sees to the connection, and
//    is the last resort as sentinel: it reads for requests that no caller waits for, if there is no
//    reader. Before it finds anything too late, it reads in place of a late reader. It starts with
//    the first request and ends with shut_down(). Connecting may block for long, and gets a thread
//    for as long as it takes.
// Whoever leaves passes on every role it holds. Roles change only under the mutex; a sleeper is
// woken by a futex word of its own, or by the event descriptor that it polls.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "client/handshake.h"
#include "client/locker.h"
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

class Client final : public Locker,
                     public Source,
                     public std::enable_shared_from_this<Client>,
                     private engine::Outlet {
 public:
  // nullptr: `why` says why not. Touches no network.
  static std::shared_ptr<Client> open(Settings settings, Outcome &why);
  ~Client() override;

  const Settings &settings() const { return settings_; }

  void run(const std::shared_ptr<Request> &request) override;
  void start(const std::shared_ptr<Request> &request) override;
  Status wait(Request &request, Nanos limit) override;
  Status cancel(Request &request) override;
  void abandon(Lease &lease) override;
  void shut_down() override;

  bool read() noexcept override;
  bool begin_reading_by(const std::shared_ptr<Queue> &queue) override;
  void end_reading_by(const Queue &queue) noexcept override;

  // How hand-overs reach this client: "push", "poll" (and why), or nothing before it is connected.
  std::string delivery();

 private:
  explicit Client(Settings settings);

  // engine::Outlet
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(engine::Request &request) override;
  void lease_ended(engine::Lease &lease) override;
  void drop_link(size_t node) override;

  // client.cc
  const io::Event &event_of(const Waiter &waiter) const override;
  void end_turn(Lock &lock);
  void begin(const std::shared_ptr<Request> &request);
  void note_caller(Request &request);

  // drive.cc
  enum class Patience : uint8_t {
    kUninterrupted,  // may sit in recv: nobody can cancel it, and it has no limit of its own
    kInterruptible,
  };
  void wait_driving(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void drive(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void stand_sentinel(Lock &lock, Waiter &me, Nanos limit);
  void act_on(Lock &lock, Waiter &me, const io::Watch::Seen &seen, uint64_t watched);
  bool read_once(Lock &lock, Waiter &me);
  void drop_reader() noexcept;
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
  void read_what_is_left(Lock &lock);
  void run_timers(Nanos now);
  void call_keeper_in_time();

  const Settings settings_;
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
  bool is_reading_ = false;  // the driver is in recv or poll: others send for themselves
  bool is_armed_ = false;    // the sentinel sees the socket
  std::shared_ptr<Queue> reader_;
  bool is_read_due_ = false;   // the reader found a driver, and has to be nudged after it
  bool is_drained_ = false;    // the reader has just read all there was
  size_t finished_count_ = 0;  // waits ended since the last read
  size_t batch_size_ = 0;      // .. by the last read
  bool should_yield_ = false;  // once, before the next write
  WaiterList short_;           // sleeping, an answer is in flight
  WaiterList long_;            // sleeping, in a queue or without a connection
  io::Watch watch_;            // where callers poll
  io::Event driver_event_;     // wakes a driver that has a limit of its own

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
};

}  // namespace redlatch::client
