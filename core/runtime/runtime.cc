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

#include "base/random.h"
#include "base/text.h"
#include "cluster/cluster_client.h"
#include "lock/lock_client.h"
#include "protocol/health_findings.h"
#include "quorum/quorum_client.h"
#include "timing/quorum.h"

namespace redlatch::runtime {

namespace {

// Starts at 1. A number is never used for a second thread.
uint64_t thread_number() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

Nanos longest_timeout(std::span<const Settings> nodes) {
  Nanos longest = 0;
  for (const Settings &node : nodes) longest = std::max(longest, node.command_timeout);
  return longest;
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
  timespec now{};
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) {
    why = failure(Status::kUnsupported,
                  "the kernel must have CLOCK_BOOTTIME, which leases are measured by (got " +
                      reason_of(errno) + "); a sandbox must allow clock_gettime()");
    return nullptr;
  }
  std::array<uint8_t, 24> random{};
  if (!fill_random(random)) {
    why =
        failure(Status::kInternal, "cannot get random bytes from the kernel: " + reason_of(errno));
    return nullptr;
  }
  std::shared_ptr<Runtime> runtime(new Runtime(std::move(nodes), quorum));
  if (const int error = runtime->error_of_opening(); error != 0) {
    why = failure(Status::kNoMemory, "cannot create epoll descriptor: " + reason_of(error));
    return nullptr;
  }
  if (runtime->timer_error_ != 0) {
    runtime->log_.add(LogLevel::kWarning, "no timer of CLOCK_BOOTTIME (" +
                                              reason_of(runtime->timer_error_) +
                                              "): after a suspend, ends are noticed late");
  }
  uint64_t seed = 0;
  for (size_t i = 16; i < random.size(); i++) seed = seed << 8 | random[i];
  const std::span<const uint8_t, 16> id(random.data(), 16);
  lock::Output &output = *runtime;
  if (runtime->settings().is_cluster()) {
    runtime->service_ =
        std::make_unique<cluster::ClusterClient>(runtime->settings(), id, seed, output);
  } else if (runtime->quorum_) {
    runtime->service_ = std::make_unique<quorum::QuorumClient>(runtime->nodes_, *runtime->quorum_,
                                                               id, seed, output);
  } else {
    runtime->service_ = std::make_unique<lock::LockClient>(runtime->settings(), id, seed, output);
  }
  return runtime;
}

Runtime::Runtime(std::vector<Settings> nodes, std::optional<QuorumSettings> quorum)
    : nodes_(std::move(nodes)), quorum_(quorum), timeout_(longest_timeout(nodes_)) {
  timer_error_ = background_set_.use_boot_timer();
  for (size_t i = 0; i < nodes_.size(); i++) links_.emplace_back(nodes_[i], i);
  if (nodes_.size() > 1 || settings().is_cluster()) all_links_.emplace();
}

Runtime::~Runtime() {
  if (service_) shut_down();  // nullptr if open() failed
}

// @return 0: all descriptors are open, and polled.
int Runtime::error_of_opening() const {
  const int error = errno != 0 ? errno : ENOMEM;  // of an event
  for (const net::EpollSet *set : {&caller_set_, &background_set_}) {
    if (!set->is_open()) return set->error();
  }
  const bool can_stop = std::all_of(links_.begin(), links_.end(), [](const Link &link) {
    return !link.sentinel || link.sentinel->stop.is_open();
  });
  if (!can_stop || !leader_event_.is_open() || !stop_event_.is_open()) return error;
  if (timer_error_ == EMFILE || timer_error_ == ENFILE || timer_error_ == ENOMEM) {
    return timer_error_;
  }
  if (!all_links_) return 0;
  return all_links_->is_open() ? watch_all_links() : all_links_->error();
}

// ---- calls -------------------------------------------------------------------------------------

// The mutex is held.
void Runtime::begin(const std::shared_ptr<Request> &request) {
  if (!has_background_ && !is_shut_) start_background();
  if (request->op == Request::Op::kAcquire) request->lease->starter = thread_number();
  service_->start(request, boot_now());
  call_background_in_time();
}

// Only a warning: another thread may still release the lock.
void Runtime::note_caller(Request &request) {
  if (request.op != Request::Op::kAcquire) return;
  request.waiter = thread_number();
  if (request.is_finished() || request.was_warned || !service_->waits_for_itself(request)) {
    return;
  }
  request.was_warned = true;
  try {
    log_.add(LogLevel::kWarning, "lock " + quoted(request.lease->name) +
                                     ": a thread waits for a lock that it holds itself");
  } catch (const std::bad_alloc &) {
    return;  // the message of the timeout says so, too
  }
}

void Runtime::run(const std::shared_ptr<Request> &request) {
  Lock lock(mutex_);
  Waiter me;
  me.request = request.get();
  {
    const Enlisted enlisted(*this,
                            me);  // first, because nothing may fail once the request is started
    begin(request);
    note_caller(*request);
    wake_all(lock);  // before the send, for which a caller that was handed a lock need not wait
    // Over several links a caller becomes the leader before it sends: else the first reply would
    // wake the follower.
    if (roles_->is_led() || !has_several()) flush_if_no_leader_will(lock);
    wait_in_role(lock, me, kNever, Patience::kUninterrupted);
  }
  wake_all(lock);
}

void Runtime::start(const std::shared_ptr<Request> &request) {
  Lock lock(mutex_);
  begin(request);
  end_turn(lock);
}

Status Runtime::wait(Request &request, Nanos limit) {
  Lock lock(mutex_);
  Waiter me;
  me.request = &request;
  {
    const Enlisted enlisted(*this, me);
    note_caller(request);
    wait_in_role(lock, me, limit, Patience::kInterruptible);
  }
  wake_all(lock);
  if (request.is_finished()) return request.status.load();
  return me.is_interrupted ? Status::kInterrupted : Status::kPending;
}

Status Runtime::cancel(Request &request) {
  Lock lock(mutex_);
  const Status status = service_->cancel(request, boot_now());
  call_background_in_time();
  end_turn(lock);
  return status;
}

void Runtime::release_async(Lease &lease) {
  Lock lock(mutex_);
  lease.watcher.forget();
  service_->release_async(lease, boot_now());
  call_background_in_time();
  end_turn(lock);
}

void Runtime::detach_again(const std::shared_ptr<Lease> &lease) {
  try {
    const auto request = std::make_shared<Request>(Request::Op::kDetach);
    request->lease = lease;
    request->must_end_lease = true;
    Lock lock(mutex_);
    lease->watcher.forget();
    begin(request);
    return end_turn(lock);
  } catch (const std::bad_alloc &) {
    release_async(*lease);  // no handle is left that could end it
  }
}

std::vector<NodeStatus> Runtime::describe() {
  std::vector<NodeStatus> nodes;
  const Nanos now = boot_now();
  {
    const Lock lock(mutex_);
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

void Runtime::shut_down() {
  const std::lock_guard one(shutdown_mutex_);
  Lock lock(mutex_);
  if (is_shut_) return;
  is_shut_ = true;
  credentials_.stop();
  drop_reader();  // the thread that takes tags from it may be this one
  service_->shut_down(boot_now());
  flush(lock);
  settle();
  if (has_background_) {
    wait_drained(lock);
    is_stopping_ = true;
    wake(background_);
    stop_event_.signal();
    for (const Link &link : links_) {
      if (link.sentinel) link.sentinel->stop.signal();
    }
    wake_all(lock);
    lock.unlock();
    pthread_join(background_thread_, nullptr);
    lock.lock();
  }
  for (Link &link : links_) {
    if (link.attachment) link.attachment->leave();
  }
  service_->give_up();
  for (Link &link : links_) {
    link.drop();
    unwatch_messages(link);
    link.messages.reset();  // that of the background thread, which has ended
  }
  // A caller that still blocks in a connection disconnects it when it leaves.
  disconnect_unread(lock);
  leader_event().signal();
  wake_all(lock);
  is_over_ = true;
  if (!are_descriptors_used()) descriptors_unused();
}

// Leases, and handles of a garbage collector, may keep the runtime for long after its shutdown. No
// thread but those of calls is left.
void Runtime::descriptors_unused() noexcept {
  if (!is_over_) return;
  if (all_links_) all_links_->close();
  caller_set_.close();
  background_set_.close();
  leader_event_.close();
  stop_event_.close();
  for (Link &link : links_) {
    if (link.sentinel) link.sentinel->stop.close();
  }
}

// Waits for a majority of the nodes, and a short time longer for the others.
void Runtime::wait_drained(Lock &lock) {
  wake(background_);
  Nanos limit = boot_now() + timeout_;
  is_draining_ = true;
  // Each node of a cluster has locks of its own.
  const size_t enough =
      settings().is_cluster() ? links_.size() : timing::majority_of(links_.size());
  for (const size_t count : {enough, links_.size()}) {
    while (service_->drained_count() < count && boot_now() < limit)
      sleep(lock, drain_waiter_, limit);
    limit = std::min(limit, boot_now() + timing::node_limit(kDefaultTtlMs * kMs));
  }
  is_draining_ = false;
}

// ---- lock::Output ----------------------------------------------------------------------------

// The leader and the sending thread use only the links that they have noted under the mutex.
void Runtime::open_node(size_t node, const Settings &settings) {
  links_.emplace_back(settings, node);
}

void Runtime::send(size_t node, std::span<const std::string_view> argv) {
  links_[node].append(argv);
  is_output_due_ = was_active_ = true;
}

// Some bytes, and rarely: if there is no room for them the peer has acknowledged nothing for long.
void Runtime::send_on_messages(size_t node, std::span<const std::string_view> argv) {
  Link &link = links_[node];
  if (!link.messages || !link.is_usable()) return;
  std::string bytes;
  net::append_command(bytes, argv);
  if (link.messages->send(bytes) != bytes.size()) link.drop();
}

// All requests and leases that the service reports are those of this folder.
void Runtime::finished(lock::Request &request) {
  finished_count_ += notify_finished(static_cast<Request &>(request));
}

void Runtime::lease_ended(lock::Lease &lease) { notify_ended(static_cast<Lease &>(lease)); }

void Runtime::drop_link(size_t node) { links_[node].drop(); }

void Runtime::warn(std::string_view text) { log_.add(LogLevel::kWarning, text); }

void Runtime::defect_found(std::string_view what) noexcept { log_.add(LogLevel::kError, what); }

void Runtime::node_validated(size_t node, const Outcome &why) {
  if (!why.ok()) return log_.add(LogLevel::kWarning, why.message);
  log_.add(LogLevel::kInfo, nodes_[node].address() + " may vote again");
}

// A finding is logged when it was not there at the last check. Without memory it is neither logged
// nor known: nothing depends on it.
void Runtime::health_found(size_t node, const protocol::HealthFacts &facts,
                           const protocol::LockTrial *trial) {
  Link &link = links_[node];
  const bool is_guarded = !quorum_ || (quorum_->restart_guard > 0 && !quorum_->is_durable);
  try {
    auto found = protocol::findings_of(
        facts, trial, {link.facts, wall_now() - boot_now(), is_quorum(), is_guarded});
    for (const Finding &finding : found) {
      const bool is_old = std::any_of(link.findings.begin(), link.findings.end(), [&](auto &old) {
        return old.id == finding.id && old.level == finding.level;
      });
      // That of pushes was logged when the connection was made.
      if (!finding.is_bad() || is_old || finding.id == "pushes") continue;
      log_.add(LogLevel::kWarning, "health of " + link.settings.address() + ": " + finding.id +
                                       ": " + finding.seen + "; " + finding.advice);
    }
    link.findings = std::move(found);
  } catch (const std::bad_alloc &) {
    return;
  }
}

// The end of every call that may leave commands to send, free roles or sleepers to wake.
void Runtime::end_turn(Lock &lock) {
  flush_unless_reader_will(lock);
  settle();
  disconnect_if_over(lock);
  wake_all(lock);
}

}  // namespace redlatch::runtime
