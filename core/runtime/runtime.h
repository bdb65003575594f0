// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the shell around a LockService. Threads, locking, waiting, one link for each server; no
// behaviour of locks.
//
// Callers that wait read for themselves (a switch to another thread costs more than the round
// trip's own work):
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
//  - the *background thread*, the library's own, runs the service's timers, connects, and is the
//    last resort as follower: it reads for requests that no caller waits for, if there is no
//    reader. Before it ends anything as too late, it reads in place of a late reader. It starts
//    with the first request and ends with shut_down(). Connecting may block for long, so each
//    attempt gets a thread for as long as it takes.
// Sleeps do not count suspended time, but the timer of the background thread does: at the earliest
// limit of the callers that sleep it wakes them, so that they look at the clock.
// A thread that leaves gives up every role it has, and settle() gives it to another thread. Roles
// change only under the mutex, and an exception leaves them as a return does. A sleeper is woken by
// a futex word of its own, or by the event descriptor that it polls.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/node_status.h"
#include "base/settings.h"
#include "base/status.h"
#include "embedded/server_status.h"
#include "lock/service.h"
#include "net/epoll_set.h"
#include "runtime/credentials.h"
#include "runtime/link.h"
#include "runtime/reading_roles.h"
#include "runtime/side_connection.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

// Names of core/lock, core/protocol and core/embedded for the users of this folder.
using lock::AcquireOptions;
using protocol::Format;
using protocol::is_held_by_client;
using protocol::kShared;
using protocol::kTokenSize;
using protocol::Mode;
using Info = protocol::InspectAnswer;
using ServerInfo = embedded::ServerStatus;
using embedded::read_status;
using lock::LossReason;
using lock::needs_one_server;
using operate::Force;
using operate::Inspect;
using operate::List;
using operate::Listing;

class Runtime final : public Wakeup,
                      public Source,
                      public std::enable_shared_from_this<Runtime>,
                      private lock::Output {
 public:
  // Locks on one server, or with `quorum` on most of several. Does not connect. @return nullptr
  // after a failure, which is in `why`.
  static std::shared_ptr<Runtime> open(std::vector<Settings> nodes,
                                       std::optional<QuorumSettings> quorum, Outcome &why);
  ~Runtime() override;

  std::span<const Settings> nodes() const { return nodes_; }
  const Settings &settings() const { return nodes_.front(); }
  // True if it locks on most of its nodes; only then it has these settings.
  bool is_quorum() const { return quorum_.has_value(); }
  const QuorumSettings &quorum_settings() const { return *quorum_; }

  // Start `request` and wait until it is finished, whatever signals come.
  void run(const std::shared_ptr<Request> &request);
  // Start `request` and return.
  void start(const std::shared_ptr<Request> &request);
  // Wait until `request` is finished or `limit` has passed; kInterrupted after a signal.
  Status wait(Request &request, Nanos limit);
  Status cancel(Request &request);
  void release_async(Lease &lease);
  // As release_async(), for a lease that was attached: another attach may take it over.
  void detach_again(const std::shared_ptr<Lease> &lease);
  // Release everything, flush, stop the threads. A second call does nothing.
  void shut_down();

  bool read() noexcept override;
  // True if a queue can: not if there are, or may be, connections to several servers.
  bool may_be_driven() {
    const Lock lock(mutex_);
    return !is_quorum() && !has_several();
  }
  bool begin_reading_by(const std::shared_ptr<Queue> &queue) override;
  void end_reading_by(const Queue &queue) noexcept override;

  // User and password that replace those of the settings, on each connection that is there and
  // those that follow. `valid_for` may be kNever. kInvalid with an embedded server.
  Outcome give_credentials(std::string_view user, std::string_view password, Nanos valid_for);
  // The application has none now, and why.
  Outcome fail_credentials(std::string_view why);
  // Post `tag` to `queue` when credentials are wanted; nullptr ends that.
  Outcome watch_credentials(const std::shared_ptr<Queue> &queue, int64_t tag);

  // The known facts about each node, without asking it.
  std::vector<NodeStatus> describe();
  // Asks the sentinels, if there are any, for what describe() then knows of them. Blocks: at most
  // connect_timeout.
  void survey_sentinels() noexcept;

 private:
  Runtime(std::vector<Settings> nodes, std::optional<QuorumSettings> quorum);

  // lock::Output
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void drop_link(size_t node) override;
  void send_on_side(size_t node, std::span<const std::string_view> argv) override;
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override;
  void drop_side(size_t node) override;
  void warn(std::string_view text) override;
  void defect_found(std::string_view what) noexcept override;
  void node_validated(size_t node, const Outcome &why) override;
  void health_found(size_t node, const protocol::HealthFacts &facts,
                    const protocol::LockTrial *trial) override;
  void open_node(size_t node, const Settings &settings) override;

  // credentials_link.cc
  bool awaits_auth() const {
    for (const Link &link : links_) {
      if (!link.auths.is_empty()) return true;
    }
    return false;
  }
  // Called again with another password if the server refuses one.
  using Connect = std::function<Outcome(const Settings &)>;
  Outcome connect_with_credentials(const Settings &settings, Login &login, const Connect &connect);
  Outcome complete_settings(Settings &settings, Login &login);
  void authenticate(Link &link) noexcept;
  void authenticate_side(Link &link) noexcept;
  void note_auth(Link &link, uint64_t login, const Reply &reply, Nanos now);

  // runtime.cc: calls
  int error_of_opening() const;
  void begin(const std::shared_ptr<Request> &request);
  void note_caller(Request &request);
  void end_turn(Lock &lock);
  void wait_drained(Lock &lock);
  void descriptors_unused() noexcept override;

  // roles.cc: leader, follower and reader
  enum class Patience : uint8_t {
    kUninterrupted,  // may block in the receiving call: cannot be cancelled, has no limit
    kInterruptible,
  };
  void wait_in_role(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  // The role of leader for as long as it exists. settle() gives it to another thread then.
  class Leading {
   public:
    Leading(Runtime &in, Lock &lock, Waiter &me) : in_(in), lock_(lock), me_(me) {
      in_.note_role(in_.roles_.give(&ReadingRoles::lead, me));
    }
    ~Leading();
    Leading(const Leading &) = delete;
    Leading &operator=(const Leading &) = delete;

   private:
    Runtime &in_;
    Lock &lock_;
    Waiter &me_;
  };
  class Leaving;
  void lead(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void read_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void receive_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience);
  void follow(Lock &lock, Waiter &me, Nanos limit);
  void act_on(Lock &lock, Waiter &me, const net::EpollSet::Seen &seen, uint64_t watched);
  bool read_once(Lock &lock, Waiter &me);
  void on_end(Lock &lock, Link &link);
  bool should_follow(const Waiter &waiter) const;
  void drop_reader() noexcept;
  void settle();
  void leave(Lock &lock, Waiter &waiter);
  Waiter *next_leader();
  void choose_follower(Waiter *waiter, bool is_background_needed);
  void read_due();
  void set_follower(Waiter &waiter);
  void stop_following();
  void set_armed(bool is_on);
  void note_role(bool is_allowed) noexcept;

  // transfer.cc: receiving and sending
  // There are several links, or may be some day.
  bool has_several() const { return all_links_.has_value(); }
  Link &only_link() { return links_.front(); }
  const net::Event &leader_event() const {
    return all_links_ ? all_links_->event() : leader_event_;
  }
  // Cheap, with one link two flags, because every call asks several times.
  bool is_usable() const {
    for (const Link &link : links_) {
      if (link.is_usable()) return true;
    }
    return false;
  }
  bool is_broken() const {
    for (const Link &link : links_) {
      if (link.is_broken) return true;
    }
    return false;
  }
  // The descriptor that is readable when the leader has something to read; -1: not connected.
  int watched_fd() const {
    if (all_links_) return all_links_->fd();
    return links_.front().is_connected ? links_.front().commands->fd() : -1;
  }
  void drop_links_after_exception() noexcept;
  void note_ready(const net::EpollSet::Seen &seen);
  bool note_only_one();
  void receive(Lock &lock);
  bool take_in();
  void dispatch(Link &link);
  void take_message(const Link &link, const Reply &reply, Nanos now);
  void flush(Lock &lock);
  void flush_if_no_leader_will(Lock &lock);
  void flush_unless_reader_will(Lock &lock);
  void set_write_blocked(Link &link, bool is_on);
  void watch_in_background();
  void drop_unwatched(Link &link, int error) noexcept;
  void check_watched(int error) noexcept;
  void unwatch(const Link &link);
  void unwatch_messages(const Link &link);
  void disconnect_broken(Lock &lock);
  void disconnect_as(Lock &lock, Waiter &me);
  void disconnect_unread(Lock &lock);
  void disconnect_if_over(Lock &lock);

  // background_thread.cc
  void start_background();
  static void *background_main(void *runtime);
  void run_background();
  void run_background_once(Lock &lock);
  void start_attempt(Link &link);
  static void *attempt_main(void *attempt);
  void attempt(Attempt &mine);
  Outcome connect(Attempt &mine, const Settings &settings) const;
  void end_attempt(Lock &lock, Link &link);
  bool is_of_cluster(const Link &link, const Attempt &ended) const;
  void become_cluster(Link &link);
  void end_reading_slots(Link &link, Attempt &ended);
  [[nodiscard]] int watch_all_links() const;
  [[nodiscard]] int watch_new(const Link &link);
  void connect_link(Link &link, Attempt &ended);
  void read_messages(Lock &lock, Link &link);
  void note_connection(Link &link, const Outcome &outcome, const ServerFacts &facts);
  void on_ready(Lock &lock, uint32_t key);
  void tick(Lock &lock);
  void read_remaining(Lock &lock);
  static constexpr Nanos kPauseAfterException = 10 * kMs;
  bool run_timers(Nanos now);
  void call_background_in_time();
  void wake_by(Nanos limit) override;
  void wake_late(Nanos now);

  // side_connection.cc
  Outcome open_side(SideConnection &side, SideConnection::Open open);
  static void *side_main(void *attempt);
  void attempt_side(SideConnection::Attempt &mine);
  std::optional<Outcome> end_side_attempt(Lock &lock, SideConnection &side);
  bool read_side(Lock &lock, SideConnection &side, std::vector<net::ReplyPtr> &replies);
  bool send_side(SideConnection &side) const;
  void close_side(SideConnection &side) const noexcept;

  // confirming.cc
  void tend_confirming(Lock &lock, Link &link);
  void start_confirming(Link &link);
  void fail_confirming(const Link &link, const Outcome &why) noexcept;
  void lose_confirming(Link &link) noexcept;
  void read_confirming(Lock &lock, Link &link);
  void send_confirming(Link &link) noexcept;

  // sentinel_link.cc
  void tend_watch(Lock &lock, Link &link);
  void tend_sentinel(Lock &lock, Link &link, size_t number);
  void dial_sentinel(Link &link, size_t number);
  void lose_sentinel(Link &link, size_t number, const Outcome &why) noexcept;
  void read_watch(Lock &lock, Link &link, size_t number);
  void on_news(Link &link, const sentinel::Opinion &opinion, const std::string &from);
  void connect_now(Link &link, Nanos now);
  void note_primary(Link &link, FoundPrimary &found, Outcome &outcome) noexcept;
  void log_primary(Link &link, const sentinel::Opinion &before, const ServerFacts &facts);

  std::vector<Settings> nodes_;  // constant, except that a server may turn out to be of a cluster
  const std::optional<QuorumSettings> quorum_;
  const Nanos timeout_;  // the longest command timeout
  std::unique_ptr<lock::LockService> service_;
  Credentials credentials_;
  std::deque<Link> links_;  // by number of the node; of a cluster their number grows

  uint64_t connection_count_ = 0;  // made so far
  bool is_output_due_ = false;     // some link may have something that can be sent
  bool is_sending_ = false;
  std::condition_variable sent_;  // is_sending_ turned false

  Checked<ReadingRoles> roles_;
  std::shared_ptr<Queue> reader_;
  size_t finished_count_ = 0;  // waits that ended since the last read
  size_t batch_size_ = 0;      // waits that the last read ended
  bool should_yield_ = false;  // once, before the next write
  WaiterList short_;           // sleeping, a reply is in flight
  WaiterList long_;            // sleeping, in a queue or without a connection
  // Exists if there are several links, or may be some day: their commands. Polled by the leader.
  std::optional<net::EpollSet> all_links_;
  net::EpollSet caller_set_;      // polled by the follower
  net::Event leader_event_;       // wakes the leader of one link if it has a limit of its own
  net::EpollSet background_set_;  // polled by the background thread
  int timer_error_ = 0;           // why its sleeps do not count suspended time

  Waiter background_;
  net::Event stop_event_;  // ends attempts to connect
  pthread_t background_thread_{};
  bool has_background_ = false;
  bool is_stopping_ = false;
  bool is_shut_ = false;
  bool is_over_ = false;     // shut_down() is done: the last thread inside closes descriptors
  bool was_active_ = false;  // commands were sent since the background thread last looked
  Nanos background_wakes_at_ = kNever;
  Nanos waits_until_ = kNever;  // the earliest limit of a thread that sleeps
  Waiter drain_waiter_;         // of the thread that shuts down
  bool is_draining_ = false;
};

}  // namespace redlatch::runtime
