// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redlock, part 1 of 2: what callers call. Part 2: redlock_drive.cc.
#include "client/redlock.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/log.h"
#include "base/random.h"

namespace redlatch::client {

std::shared_ptr<Redlock> Redlock::open(std::vector<Settings> nodes, QuorumSettings settings,
                                       Outcome &why) {
  std::array<uint8_t, 24> random{};
  if (!fill_random(random)) {
    why = failure(Status::kInternal, "the kernel gives no random bytes");
    return nullptr;
  }
  std::shared_ptr<Redlock> redlock(new Redlock(std::move(nodes), settings));
  if (!redlock->poller_.is_open() || !redlock->keeper_watch_.is_open() ||
      !redlock->stop_event_.is_open()) {
    why = failure(Status::kNoMemory, "the kernel gives no descriptor");
    return nullptr;
  }
  redlock->keeper_watch_.add(redlock->poller_.fd());
  uint64_t seed = 0;
  for (size_t i = 16; i < random.size(); i++) seed = seed << 8 | random[i];
  engine::Outlet &outlet = *redlock;
  redlock->quorum_ = std::make_unique<quorum::Quorum>(
      redlock->node_settings_, redlock->settings_, std::span<const uint8_t, 16>(random.data(), 16),
      seed, outlet);
  return redlock;
}

Redlock::Redlock(std::vector<Settings> nodes, QuorumSettings settings)
    : node_settings_(std::move(nodes)),
      settings_(settings),
      nodes_(node_settings_.size()),
      timeout_(std::max_element(
                   node_settings_.begin(), node_settings_.end(),
                   [](const Settings &a, const Settings &b) { return a.timeout < b.timeout; })
                   ->timeout) {
  ready_.reserve(2 * nodes_.size());
  for (size_t i = 0; i < nodes_.size(); i++) {
    nodes_[i].redlock = this;
    nodes_[i].index = i;
    if (node_settings_[i].folder.empty()) continue;
    nodes_[i].membership = std::make_unique<embedded::Membership>(node_settings_[i]);
  }
}

Redlock::~Redlock() {
  if (quorum_) shut_down();  // none: open() failed half-way
}

// ---- calls -------------------------------------------------------------------------------------

// The mutex is held.
void Redlock::begin(const std::shared_ptr<Request> &request) {
  if (!has_keeper_ && !is_shut_) start_keeper();
  quorum_->start(request, boot_now());
}

// Run the loop, or sleep while another thread does, until `done`, `limit`, or a signal.
template <class Done>
void Redlock::drive_until(Lock &lock, Waiter &me, Nanos limit, const Done &done) {
  while (!done() && !me.is_interrupted && boot_now() < limit) {
    if (driver_ == nullptr || driver_ == &me) {
      driver_ = &me;
      turn(lock, me, limit);
    } else {
      if (me.list == nullptr) sleepers_.push(me);
      call_in_time();
      sleep(lock, me, limit);
    }
  }
  if (me.list != nullptr) me.list->remove(me);
  leave_loop(lock, me);
}

// After a call that does not wait.
void Redlock::end_call(Lock &lock) {
  if (driver_ == nullptr) {
    Waiter me;
    driver_ = &me;
    flush(lock);
    leave_loop(lock, me);
  }
  call_in_time();
  wake_all(lock);
}

void Redlock::run(const std::shared_ptr<Request> &request) {
  Lock lock(mutex_);
  Waiter me;
  me.request = request.get();
  make_room();  // first: once the request is started nothing may fail any more
  enlist(me);
  try {
    begin(request);
  } catch (...) {
    delist(me);
    throw;
  }
  if (request->is_finished()) end_call(lock);  // which may have left commands
  while (!request->is_finished()) {
    me.is_interrupted = false;  // nobody could tell the caller
    drive_until(lock, me, kNever, [&] { return request->is_finished(); });
  }
  delist(me);
  wake_all(lock);
}

void Redlock::start(const std::shared_ptr<Request> &request) {
  Lock lock(mutex_);
  begin(request);
  end_call(lock);
}

Status Redlock::wait(Request &request, Nanos limit) {
  Lock lock(mutex_);
  Waiter me;
  me.request = &request;
  make_room();
  enlist(me);
  drive_until(lock, me, limit, [&] { return request.is_finished(); });
  delist(me);
  wake_all(lock);
  if (request.is_finished()) return request.status.load();
  return me.is_interrupted ? Status::kInterrupted : Status::kPending;
}

Status Redlock::cancel(Request &request) {
  Lock lock(mutex_);
  const Status status = quorum_->cancel(request, boot_now());
  end_call(lock);
  return status;
}

void Redlock::abandon(Lease &lease) {
  Lock lock(mutex_);
  lease.watcher.forget();
  quorum_->abandon(lease, boot_now());
  end_call(lock);
}

std::string Redlock::describe() {
  const Lock lock(mutex_);
  return quorum_->describe(boot_now());
}

void Redlock::shut_down() {
  const std::lock_guard one(shutdown_mutex_);
  Lock lock(mutex_);
  if (is_shut_) return;
  is_shut_ = true;
  quorum_->shut_down(boot_now());
  if (has_keeper_) {
    // Nodes that do not answer are not waited for, once a majority has.
    Nanos limit = boot_now() + timeout_;
    const size_t majority = policy::majority_of(nodes_.size());
    const auto drained = [&](size_t count) {
      return [this, count] { return quorum_->drained_count() >= count; };
    };
    Waiter me;
    enlist(me);
    drain_waiter_ = &me;
    for (const size_t count : {majority, nodes_.size()}) {
      while (quorum_->drained_count() < count && boot_now() < limit) {
        me.is_interrupted = false;
        drive_until(lock, me, limit, drained(count));
      }
      limit = std::min(limit, boot_now() + policy::node_limit(kDefaultLeaseMs * kMs));
    }
    drain_waiter_ = nullptr;
    delist(me);
    is_stopping_ = true;
    wake(keeper_);
    stop_event_.signal();
    wake_all(lock);
    lock.unlock();
    pthread_join(keeper_thread_, nullptr);
    lock.lock();
  }
  for (Node &node : nodes_) {
    if (node.membership) node.membership->leave();
  }
  quorum_->give_up();
  // A caller may still poll the connections: it disconnects on its way out.
  for (size_t i = 0; i < nodes_.size(); i++) drop_link(i);
  if (driver_ == nullptr) disconnect_broken();
  poller_.event().signal();
  wake_all(lock);
}

// ---- engine::Outlet ----------------------------------------------------------------------------

void Redlock::send(size_t node, std::span<const std::string_view> argv) {
  io::append_command(nodes_[node].out, argv);
}

// All requests and leases that leave the quorum are those of this folder.
void Redlock::finished(engine::Request &request) { tell_finished(static_cast<Request &>(request)); }

void Redlock::lease_ended(engine::Lease &lease) { tell_ended(static_cast<Lease &>(lease)); }

void Redlock::drop_link(size_t node) {
  if (!nodes_[node].is_connected) return;
  nodes_[node].is_broken = true;
  nodes_[node].commands->shut();
}

void Redlock::judged(size_t node, const Outcome &why) {
  if (!why.ok()) return log(LogLevel::kWarning, why.message);
  log(LogLevel::kInfo, node_settings_[node].address() + " may vote again");
}

const io::Event &Redlock::event_of(const Waiter &waiter) const {
  return &waiter == &keeper_ ? keeper_watch_.event() : poller_.event();
}

}  // namespace redlatch::client
