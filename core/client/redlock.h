// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redlock: the shell around the quorum. One event loop over the connections to all nodes.
//
// Whoever waits may run the loop: the *driver*, at most one, sends, polls and reads for everybody.
// Other callers sleep, and the oldest gets the role when the driver leaves. The *keeper*, the
// library's own thread, watches while nobody drives: it polls the set of all sockets as one
// descriptor, and drives as long as it takes to read what came. It starts with the first request
// and ends with shut_down(). Each attempt to connect to a node blocks, and has a thread of its own.
#pragma once

#include <pthread.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "client/handshake.h"
#include "client/locker.h"
#include "embedded/membership.h"
#include "io/connection.h"
#include "io/watch.h"
#include "quorum/quorum.h"

namespace redlatch::client {

class Redlock final : public Locker, private engine::Outlet {
 public:
  // nullptr: `why` says why not. Touches no network.
  static std::shared_ptr<Redlock> open(std::vector<Settings> nodes, QuorumSettings settings,
                                       Outcome &why);
  ~Redlock() override;

  const QuorumSettings &settings() const { return settings_; }
  std::span<const Settings> nodes() const { return node_settings_; }

  void run(const std::shared_ptr<Request> &request) override;
  void start(const std::shared_ptr<Request> &request) override;
  Status wait(Request &request, Nanos limit) override;
  Status cancel(Request &request) override;
  void abandon(Lease &lease) override;
  void shut_down() override;

  // One line for each node: whether it votes, or why not.
  std::string describe();

 private:
  // The connections to one node.
  struct Node {
    Redlock *redlock = nullptr;
    size_t index = 0;
    std::unique_ptr<embedded::Membership> membership;  // of an embedded server
    std::unique_ptr<io::Connection> commands, messages;
    bool is_connected = false;
    bool is_broken = false;   // of no use any more; whoever drives will disconnect
    bool is_clogged = false;  // the socket takes no more
    bool is_away = false;     // the last attempt failed, and that was said
    std::string out;          // to be sent
    std::string sending;      // only the driver
    std::vector<io::ReplyPtr> replies, pushes;  // likewise
    bool is_ended = false;                      // likewise: by the server, or a send failed

    // An attempt to connect, in a thread of its own. Others look at it when it is over.
    pthread_t thread{};
    bool is_trying = false, is_over = false;
    Line line;
    Outcome outcome;
  };

  Redlock(std::vector<Settings> nodes, QuorumSettings settings);

  // engine::Outlet
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(engine::Request &request) override;
  void lease_ended(engine::Lease &lease) override;
  void drop_link(size_t node) override;
  void judged(size_t node, const Outcome &why) override;

  const io::Event &event_of(const Waiter &waiter) const override;

  // redlock.cc: calls
  void begin(const std::shared_ptr<Request> &request);
  template <class Done>
  void drive_until(Lock &lock, Waiter &me, Nanos limit, const Done &done);
  void end_call(Lock &lock);

  // redlock_drive.cc: the loop
  void turn(Lock &lock, Waiter &me, Nanos limit);
  void flush(Lock &lock);
  bool has_output() const;
  bool is_in_flight() const;
  void read_ready();
  void take_in(size_t node, Nanos now);
  void tick(Nanos now) noexcept;
  void disconnect(size_t node);
  void disconnect_broken();
  void leave_loop(Lock &lock, Waiter &me);
  void arm_keeper(bool is_on);
  void call_in_time();
  void start_keeper();
  static void *keeper_main(void *redlock);
  void keep();
  void start_attempt(Node &node);
  static void *attempt_main(void *node);
  void attempt(Node &node);
  void end_attempts(Lock &lock);
  void note_connection(Node &node, const Outcome &outcome);

  const std::vector<Settings> node_settings_;
  const QuorumSettings settings_;
  std::unique_ptr<quorum::Quorum> quorum_;
  std::vector<Node> nodes_;
  const Nanos timeout_;  // the longest command time limit

  Waiter *driver_ = nullptr;
  WaiterList sleepers_;
  io::Poller poller_;                     // where the driver polls
  std::vector<io::Poller::Ready> ready_;  // only the driver

  Waiter keeper_;
  io::Watch keeper_watch_;  // sees the poller while nobody drives
  io::Event stop_event_;    // ends attempts to connect
  pthread_t keeper_thread_{};
  bool is_armed_ = false;
  bool has_keeper_ = false;
  bool is_stopping_ = false;
  bool is_shut_ = false;
  Nanos keeper_wakes_at_ = kNever;
  Waiter *drain_waiter_ = nullptr;
};

}  // namespace redlatch::client
