// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the shell around a LockService. Threads, locking, waiting, one link for each server; no
// behaviour of locks. It has the calls of users, gives events to its parts (parts.h), and passes
// what the service does to them.
//
// Callers that wait read for themselves: Roles. The library's own thread runs the timers and
// connects: BackgroundThread. Connecting may block for long, so each attempt gets a thread for as
// long as it takes. A sleeper is woken by a futex word of its own, or by the event descriptor that
// it polls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/finding.h"
#include "base/node_status.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "embedded/server_status.h"
#include "lock/service.h"
#include "runtime/alarm.h"
#include "runtime/background_thread.h"
#include "runtime/completion_queue.h"
#include "runtime/confirming.h"
#include "runtime/connecting.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/roles.h"
#include "runtime/runtime_mutex.h"
#include "runtime/sentinels.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/side_connections.h"
#include "runtime/transfer.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

// Names of core/lock, core/protocol and core/embedded for the users of this folder.
using lock::AcquireOptions;
using lock::NamedMode;
using lock::RequestArguments;
using protocol::FlightValue;
using protocol::Format;
using protocol::FormatTraits;
using protocol::is_held_by_client;
using protocol::is_recallable;
using protocol::kShared;
using protocol::kTokenSize;
using protocol::Mode;
using protocol::traits;
using protocol::words_of_formats;
using Info = protocol::InspectAnswer;
using ServerInfo = embedded::ServerStatus;

// How often others have asked the holder of a lease to finish, and the last reason.
struct Recalled {
  int64_t count = 0;
  std::string reason;
};
using embedded::read_status;
using lock::LossReason;
using lock::needs_one_server;
namespace operate = redlatch::operate;

class Runtime final : public Source,
                      public std::enable_shared_from_this<Runtime>,
                      private lock::Output,
                      private Wakeup::Owner {
 public:
  // Locks on one server, or with `quorum` on most of several. Does not connect. @return nullptr
  // after a failure, which is in `why`.
  static std::shared_ptr<Runtime> open(std::vector<Settings> nodes,
                                       std::optional<QuorumSettings> quorum, Outcome &why);
  ~Runtime() override;

  std::span<const Settings> nodes() const { return service_.nodes(); }
  const Settings &settings() const { return service_.settings(); }
  // True if it locks on most of its nodes; only then it has these settings.
  bool is_quorum() const { return service_.is_quorum(); }
  const QuorumSettings &quorum_settings() const { return service_.quorum_settings(); }
  // True in a process forked from the one that opened the client: nothing else may be called there.
  bool is_forked() const { return wakeup_.is_forked(); }
  ClientLog &log() { return wakeup_.log(); }

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

  // As those of Wakeup.
  Outcome check(const Lease &lease) { return wakeup_.check(lease); }
  LossReason lost_reason(const Lease &lease, std::string *words) {
    return wakeup_.lost_reason(lease, words);
  }
  lock::Lease::State wait_ended(const Lease &lease, Nanos limit) {
    return wakeup_.wait_ended(lease, limit);
  }
  template <class Subject>
  void watch(Subject &subject, std::shared_ptr<Queue> queue, QueueEvent &&event) {
    wakeup_.watch(subject, std::move(queue), std::move(event));
  }

  void watch_recall(Lease &lease, std::shared_ptr<Queue> queue, QueueEvent &&event);
  Recalled recalled(const Lease &lease);

  bool read() noexcept override;
  // True if a queue can: not if there are, or may be, connections to several servers.
  bool may_be_driven();
  bool begin_reading_by(const std::shared_ptr<Queue> &queue) override;
  void end_reading_by(const Queue &queue) noexcept override;

  // User and password that replace those of the settings, on each connection that is there and
  // those that follow. `valid_for` may be kNever. kInvalid with an embedded server.
  Outcome give_credentials(std::string_view user, std::string_view password, Nanos valid_for);
  // The application has none now, and why.
  Outcome fail_credentials(std::string_view why);
  // Post `event` to `queue` when credentials are wanted; nullptr ends that.
  Outcome watch_credentials(const std::shared_ptr<Queue> &queue, const QueueEvent &event);

  // The known facts about each node, without asking it.
  std::vector<NodeStatus> describe();
  // Asks the sentinels, if there are any, for what describe() then knows of them. Blocks: at most
  // connect_timeout.
  void survey_sentinels() noexcept;

 private:
  Runtime(std::vector<Settings> nodes, std::optional<QuorumSettings> quorum);
  int error_of_opening() REQUIRES(runtime_mutex);
  Parts parts();

  void begin(const std::shared_ptr<Request> &request) REQUIRES(runtime_mutex);
  void note_caller(Request &request) REQUIRES(runtime_mutex);
  void wake_background_if_started() REQUIRES(runtime_mutex);
  void stop_threads(Lock &lock) REQUIRES(runtime_mutex);

  // Wakeup::Owner
  void wake_by(Nanos limit) override REQUIRES(runtime_mutex) { alarm_.note_limit(limit); }
  void descriptors_unused() noexcept override REQUIRES(runtime_mutex);

  // lock::Output
  void send(size_t node, std::span<const std::string_view> argv) override REQUIRES(runtime_mutex) {
    transfer_.append(node, argv);
  }
  void finished(lock::Request &request) override REQUIRES(runtime_mutex);
  void lease_ended(lock::Lease &lease) override REQUIRES(runtime_mutex);
  void lease_recalled(lock::Lease &lease) override REQUIRES(runtime_mutex);
  void drop_link(size_t node) override REQUIRES(runtime_mutex) { links_[node].drop(); }
  void send_on_side(size_t node, std::span<const std::string_view> argv) override
      REQUIRES(runtime_mutex) {
    confirming_.append(node, argv);
  }
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override
      REQUIRES(runtime_mutex) {
    transfer_.send_on_messages(node, argv);
  }
  void drop_side(size_t node) override REQUIRES(runtime_mutex) { confirming_.drop(node); }
  void warn(std::string_view text) noexcept override { log().add(LogLevel::kWarning, text); }
  void defect_found(std::string_view what) noexcept override { log().add(LogLevel::kError, what); }
  void node_validated(size_t node, const Outcome &why) override REQUIRES(runtime_mutex);
  void health_found(size_t node, const protocol::HealthFacts &facts,
                    const protocol::LockTrial *trial) override REQUIRES(runtime_mutex);
  void open_node(size_t node, const Settings &settings) override REQUIRES(runtime_mutex);

  Wakeup wakeup_;
  Alarm alarm_;
  Service service_;
  Links links_;
  Shutdown shutdown_;
  Polling polling_;
  Logins logins_;
  Transfer transfer_;
  Roles roles_;
  SideConnections sides_;
  Confirming confirming_;
  Sentinels sentinels_;
  Connecting connecting_;
  BackgroundThread background_;
};

}  // namespace redlatch::runtime
