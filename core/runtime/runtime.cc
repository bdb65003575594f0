// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the calls of users, and the outputs of the service.
#include "runtime/runtime.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include "base/text.h"
#include "host/clock.h"
#include "host/random.h"

namespace redlatch::runtime {

namespace {

// Starts at 1. A number is never used for a second thread.
uint64_t thread_number() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

// The facts about the connection itself, in front of those from the server.
void add_findings_of_link(NodeStatus &node, bool is_quorum) {
  if (node.state == NodeState::kUnknown) return;
  if (node.state == NodeState::kAway) {
    if (is_quorum) node.findings.clear();  // they are of an earlier connection
    node.findings.insert(node.findings.begin(),
                         {"reachable", FindingLevel::kFail, node.reason,
                          "check the URL, the network, the server and the rights of the user"});
    return;
  }
  if (!is_quorum) return;
  Finding vote{"vote", FindingLevel::kOk, "the node may vote", ""};
  if (node.state == NodeState::kNoVote) {
    vote = {"vote", FindingLevel::kWarn, node.reason,
            "wait, if the node has restarted; else repair or replace it"};
  }
  node.findings.insert(node.findings.begin(), std::move(vote));
}

}  // namespace

std::shared_ptr<Runtime> Runtime::open(std::vector<Settings> nodes,
                                       std::optional<QuorumSettings> quorum, Outcome &why) {
  if (const int error = boot_clock_error(); error != 0) {
    why = failure(Status::kUnsupported,
                  "the kernel must have CLOCK_BOOTTIME, which leases are measured by (got " +
                      reason_of(error) + "); a sandbox must allow clock_gettime()");
    return nullptr;
  }
  std::array<uint8_t, 16> id{};
  uint64_t seed = 0;
  if (!fill_random(id) || !fill_random(seed)) {
    why = no_random(errno);
    return nullptr;
  }
  std::shared_ptr<Runtime> runtime(new Runtime(std::move(nodes), quorum));
  const Lock lock(runtime->wakeup_.mutex());
  if (const int error = runtime->error_of_opening(); error != 0) {
    why = failure(Status::kNoMemory, "cannot create epoll descriptor: " + reason_of(error));
    return nullptr;
  }
  if (const int error = runtime->polling_.timer_error(); error != 0) {
    runtime->log().add(LogLevel::kWarning, "no timer of CLOCK_BOOTTIME (" + reason_of(error) +
                                               "): after a suspend, ends are noticed late");
  }
  runtime->service_.open(id, seed, *runtime);
  return runtime;
}

Runtime::Runtime(std::vector<Settings> nodes, std::optional<QuorumSettings> quorum)
    : wakeup_(*this),
      alarm_(wakeup_),
      service_(std::move(nodes), quorum),
      links_(service_.nodes(), wakeup_.log()),
      shutdown_(wakeup_),
      polling_(wakeup_, alarm_, links_, service_.nodes().size() > 1 || settings().is_cluster()),
      logins_(wakeup_.log(), alarm_),
      transfer_(parts()),
      roles_(parts()),
      sides_(parts()),
      confirming_(parts()),
      sentinels_(parts()),
      connecting_(parts()),
      background_(parts()) {}

Parts Runtime::parts() {
  return {wakeup_,   alarm_, service_, links_,      shutdown_,  polling_,   logins_,
          transfer_, roles_, sides_,   confirming_, sentinels_, connecting_};
}

Runtime::~Runtime() {
  if (service_.is_open()) shut_down();  // not if open() failed
}

// @return 0: all descriptors are open, and polled.
int Runtime::error_of_opening() {
  const int error = errno != 0 ? errno : ENOMEM;  // of an event
  if (const int why = polling_.open(); why != 0) return why;
  return shutdown_.stop_event().is_open() && sentinels_.are_open() ? 0 : error;
}

// ---- calls -------------------------------------------------------------------------------------

void Runtime::begin(const std::shared_ptr<Request> &request) {
  if (!background_.has_started() && !shutdown_.has_begun()) background_.start();
  if (request->op == Request::Op::kAcquire) request->lease->starter = thread_number();
  service_->start(request, boot_now());
  transfer_.wake_background_in_time();
}

// Only a warning: another thread may still release the lock.
void Runtime::note_caller(Request &request) {
  if (request.op != Request::Op::kAcquire) return;
  request.waiter.number = thread_number();
  if (request.is_finished() || request.waiter.was_warned) return;
  const lock::Request *own = service_->waits_for_itself(request);
  if (own == nullptr) return;
  request.waiter.was_warned = true;
  try {
    log().add(LogLevel::kWarning, "lock " + quoted(own->lease->name) +
                                      ": a thread waits for a lock that it holds itself");
  } catch (const std::bad_alloc &) {
    return;  // the message of the timeout says so, too
  }
}

void Runtime::run(const std::shared_ptr<Request> &request) {
  Lock lock(wakeup_.mutex());
  Waiter me;
  me.request = request.get();
  {
    const Wakeup::Enlisted enlisted(
        wakeup_, me);  // first, because nothing may fail once the request is started
    begin(request);
    note_caller(*request);
    wakeup_.wake_all(
        lock);  // before the send, for which a caller that was handed a lock need not wait
    // Over several links a caller becomes the leader before it sends: else the first reply would
    // wake the follower.
    if (polling_->is_led() || !polling_.has_several()) transfer_.flush_if_no_leader_will(lock);
    roles_.wait(lock, me, kNever, Roles::Patience::kUninterrupted);
  }
  wakeup_.wake_all(lock);
}

void Runtime::start(const std::shared_ptr<Request> &request) {
  Lock lock(wakeup_.mutex());
  begin(request);
  roles_.end_turn(lock);
}

Status Runtime::wait(Request &request, Nanos limit) {
  Lock lock(wakeup_.mutex());
  Waiter me;
  me.request = &request;
  {
    const Wakeup::Enlisted enlisted(wakeup_, me);
    note_caller(request);
    roles_.wait(lock, me, limit, Roles::Patience::kInterruptible);
  }
  wakeup_.wake_all(lock);
  if (request.is_finished()) return request.status.load();
  return me.is_interrupted ? Status::kInterrupted : Status::kPending;
}

Status Runtime::cancel(Request &request) {
  Lock lock(wakeup_.mutex());
  const Status status = service_->cancel(request, boot_now());
  transfer_.wake_background_in_time();
  roles_.end_turn(lock);
  return status;
}

void Runtime::release_async(Lease &lease) {
  Lock lock(wakeup_.mutex());
  wakeup_.forget_watches(lease);
  service_->release_async(lease, boot_now());
  transfer_.wake_background_in_time();
  roles_.end_turn(lock);
}

void Runtime::detach_again(const std::shared_ptr<Lease> &lease) {
  try {
    const auto request = Request::make(Request::Op::kDetach);
    request->lease = lease;
    request->arguments = std::make_unique<RequestArguments>();
    request->arguments->must_end_lease = true;
    Lock lock(wakeup_.mutex());
    wakeup_.forget_watches(*lease);
    begin(request);
    return roles_.end_turn(lock);
  } catch (const std::bad_alloc &) {
    release_async(*lease);  // no handle is left that could end it
  }
}

std::vector<NodeStatus> Runtime::describe() {
  std::vector<NodeStatus> nodes;
  const Nanos now = boot_now();
  {
    const Lock lock(wakeup_.mutex());
    for (const Link &link : links_) nodes.push_back(link.status());
    service_->describe(nodes, now);
    // The nodes say it, once there are some.
    if (links_.front().reads_slots() && nodes.size() > 1) nodes.erase(nodes.begin());
  }
  const Nanos wall = wall_now() - now;
  for (NodeStatus &node : nodes) {
    if (node.clock_difference) *node.clock_difference -= wall;
    add_findings_of_link(node, is_quorum());
  }
  return nodes;
}

// ---- the queue that reads, and credentials -----------------------------------------------------

// A thread reads while the lease is watched: the client of a holder does not read otherwise.
void Runtime::watch_recall(Lease &lease, std::shared_ptr<Queue> queue, QueueEvent &&event) {
  Lock lock(wakeup_.mutex());
  wakeup_.watch_recall(lease, std::move(queue), std::move(event), lock);
  roles_.end_turn(lock);
}

Recalled Runtime::recalled(const Lease &lease) {
  const Lock lock(wakeup_.mutex());
  return {lease.recall_count, lease.recall_reason};
}

bool Runtime::read() noexcept {
  Lock lock(wakeup_.mutex());
  return roles_.read_for_queue(lock);
}

bool Runtime::may_be_driven() {
  const Lock lock(wakeup_.mutex());
  return !is_quorum() && !polling_.has_several();
}

bool Runtime::begin_reading_by(const std::shared_ptr<Queue> &queue) {
  Lock lock(wakeup_.mutex());
  return roles_.begin_reading_by(lock, queue, weak_from_this());
}

void Runtime::end_reading_by(const Queue &queue) noexcept {
  Lock lock(wakeup_.mutex());
  roles_.end_reading_by(lock, queue);
}

Outcome Runtime::give_credentials(std::string_view user, std::string_view password,
                                  Nanos valid_for) {
  Lock lock(wakeup_.mutex());
  if (shutdown_.has_begun()) return failure(Status::kClosed, "the client was shut down");
  if (!settings().folder.empty()) {
    return failure(Status::kInvalid,
                   "an embedded server has no user and no password: its folder keeps others out");
  }
  logins_.credentials().set(user, password, valid_for, boot_now());
  for (Link &link : links_) {
    transfer_.append_auth(link);
    logins_.authenticate(link.confirming);
  }
  wake_background_if_started();
  transfer_.flush(lock);
  roles_.settle();
  wakeup_.wake_all(lock);
  return {};
}

Outcome Runtime::fail_credentials(std::string_view why) {
  Lock lock(wakeup_.mutex());
  if (shutdown_.has_begun()) return failure(Status::kClosed, "the client was shut down");
  if (logins_.credentials().fail(why, boot_now())) {
    log().add(LogLevel::kWarning, "the application gave no new credentials");
  }
  wake_background_if_started();
  wakeup_.wake_all(lock);
  return {};
}

Outcome Runtime::watch_credentials(const std::shared_ptr<Queue> &queue, const QueueEvent &event) {
  Lock lock(wakeup_.mutex());
  if (shutdown_.has_begun()) return {};
  if (queue && !settings().folder.empty()) {
    return failure(Status::kInvalid, "an embedded server has no user and no password");
  }
  logins_.credentials().watch(queue, event, boot_now());
  wake_background_if_started();
  wakeup_.wake_all(lock);
  return {};
}

void Runtime::wake_background_if_started() {
  if (background_.has_started()) alarm_.wake();
}

void Runtime::survey_sentinels() noexcept {
  Lock lock(wakeup_.mutex());
  if (!shutdown_.has_begun()) sentinels_.survey(lock);
}

// ---- the shutdown ------------------------------------------------------------------------------

void Runtime::shut_down() {
  const MutexLock one(shutdown_.one_at_a_time());
  Lock lock(wakeup_.mutex());
  if (shutdown_.has_begun()) return;
  shutdown_.begin();
  logins_.credentials().stop();
  polling_.drop_reader();  // the thread that takes tags from it may be this one
  service_->shut_down(boot_now());
  transfer_.flush(lock);
  roles_.settle();
  if (background_.has_started()) stop_threads(lock);
  for (Link &link : links_) {
    if (link.attachment) link.attachment->leave();
  }
  service_->give_up();
  for (Link &link : links_) {
    link.drop();
    polling_.unwatch_messages(link);
    link.messages.reset();  // that of the background thread, which has ended
  }
  // A caller that still blocks in a connection disconnects it when it leaves.
  roles_.disconnect_unread(lock);
  polling_.leader_event().signal();
  wakeup_.wake_all(lock);
  shutdown_.end();
  if (!wakeup_.are_descriptors_used()) descriptors_unused();
}

void Runtime::stop_threads(Lock &lock) {
  alarm_.wake();
  shutdown_.wait_drained(lock, service_, links_);
  shutdown_.stop();
  alarm_.wake();
  sentinels_.stop();
  background_.join(lock);
}

// Leases, and handles of a garbage collector, may keep the runtime for long after its shutdown. No
// thread but those of calls is left.
void Runtime::descriptors_unused() noexcept {
  if (!shutdown_.is_over()) return;
  polling_.close();
  shutdown_.close();
  sentinels_.close();
}

// ---- lock::Output ------------------------------------------------------------------------------

// The leader and the sending thread use only the links that they have noted under the mutex.
void Runtime::open_node(size_t node, const Settings &settings) { links_.add(settings, node); }

// All requests and leases that the service reports are those of this folder.
void Runtime::finished(lock::Request &request) {
  transfer_.note_finished(wakeup_.notify_finished(static_cast<Request &>(request)));
}

void Runtime::lease_ended(lock::Lease &lease) { wakeup_.notify_ended(static_cast<Lease &>(lease)); }

void Runtime::lease_recalled(lock::Lease &lease) {
  wakeup_.notify_recalled(static_cast<Lease &>(lease));
}

void Runtime::node_validated(size_t node, const Outcome &why) {
  if (!why.ok()) return log().add(LogLevel::kWarning, why.message);
  log().add(LogLevel::kInfo, nodes()[node].address() + " may vote again");
}

void Runtime::health_found(size_t node, const protocol::HealthFacts &facts,
                           const protocol::LockTrial *trial) {
  const bool is_guarded =
      !is_quorum() || (quorum_settings().restart_guard > 0 && !quorum_settings().is_durable);
  driver::NodeRecord &record = links_[node].connection.record();
  record.note_health(facts, trial,
                     {record.facts(), wall_now() - boot_now(), is_quorum(), is_guarded});
}

}  // namespace redlatch::runtime
