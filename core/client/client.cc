// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client, part 1 of 3: what callers call, and waking. Part 2: drive.cc; part 3: keeper.cc.
#include "client/client.h"

#include <algorithm>
#include <array>
#include <new>

#include "base/log.h"

namespace redlatch::client {

std::shared_ptr<Client> Client::open(Settings settings, Outcome &why) {
  std::array<uint8_t, 24> random{};
  if (!fill_random(random)) {
    why = failure(Status::kInternal, "the kernel gives no random bytes");
    return nullptr;
  }
  std::shared_ptr<Client> client(new Client(std::move(settings)));
  if (!client->watch_.is_open() || !client->keeper_watch_.is_open() ||
      !client->driver_event_.is_open() || !client->stop_event_.is_open()) {
    why = failure(Status::kNoMemory, "the kernel gives no descriptor");
    return nullptr;
  }
  uint64_t seed = 0;
  for (size_t i = 16; i < random.size(); i++) seed = seed << 8 | random[i];
  engine::Outlet &outlet = *client;
  client->engine_ = std::make_unique<engine::Engine>(
      client->settings_, std::span<const uint8_t, 16>(random.data(), 16), seed, outlet);
  if (!client->settings_.folder.empty()) {
    client->membership_ = std::make_unique<embedded::Membership>(client->settings_);
  }
  return client;
}

Client::Client(Settings settings) : settings_(std::move(settings)), fork_count_(fork_count()) {
  wakes_.reserve(8);
}

Client::~Client() {
  if (engine_) shut_down();  // none: open() failed half-way
}

// ---- calls -------------------------------------------------------------------------------------

// The mutex is held.
void Client::begin(const std::shared_ptr<Request> &request) {
  if (!has_keeper_ && !is_shut_) start_keeper();
  engine_->start(request, boot_now());
  call_keeper_in_time();
}

void Client::run(const std::shared_ptr<Request> &request) {
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
  wake_all(lock);  // before anything is sent: whoever was passed a lock need not wait for that
  flush_if_nobody_will(lock);
  wait_driving(lock, me, kNever, Patience::kUninterrupted);
  leave(me);
  delist(me);
  wake_all(lock);
}

void Client::start(const std::shared_ptr<Request> &request) {
  Lock lock(mutex_);
  begin(request);
  end_turn(lock);
}

Status Client::wait(Request &request, Nanos limit) {
  Lock lock(mutex_);
  Waiter me;
  me.request = &request;
  make_room();
  enlist(me);
  wait_driving(lock, me, limit, Patience::kInterruptible);
  leave(me);
  delist(me);
  wake_all(lock);
  if (request.is_finished()) return request.status.load();
  return me.is_interrupted ? Status::kInterrupted : Status::kPending;
}

Status Client::cancel(Request &request) {
  Lock lock(mutex_);
  const Status status = engine_->cancel(request, boot_now());
  call_keeper_in_time();
  end_turn(lock);
  return status;
}

void Client::detach(Lease &lease) {
  Lock lock(mutex_);
  engine_->detach(lease, boot_now());
  end_turn(lock);
}

void Client::abandon(Lease &lease) {
  Lock lock(mutex_);
  lease.watcher.forget();
  engine_->abandon(lease, boot_now());
  call_keeper_in_time();
  end_turn(lock);
}

Outcome Client::check(const Lease &lease) {
  const Lock lock(mutex_);
  if (lease.state_at(boot_now()) == engine::Lease::kHeld) return {};
  return engine::Engine::why_not_held(lease);
}

std::string Client::delivery() {
  const Lock lock(mutex_);
  return delivery_;
}

void Client::wait_ended(const Lease &lease, Nanos limit) {
  Lock lock(mutex_);
  Waiter me;
  me.lease = &lease;
  make_room();
  enlist(me);
  while (lease.state_at(boot_now()) == engine::Lease::kHeld) {
    // The engine's timer ends the lease; the clock alone does as well.
    const Nanos until = std::min(limit, lease.deadline.load());
    if (boot_now() >= limit) break;
    sleep(lock, me, until);
  }
  delist(me);
  wake_all(lock);
}

template <class Subject>
void Client::watch(Subject &subject, bool is_over, std::shared_ptr<Queue> &queue, int64_t tag) {
  if (queue) queue->admit();
  subject.watcher.forget();
  subject.watcher = Watcher{std::move(queue), tag};
  if (is_over) tell(subject.watcher);
}

void Client::watch(Request &request, std::shared_ptr<Queue> queue, int64_t tag) {
  Lock lock(mutex_);
  watch(request, request.is_finished(), queue, tag);
  wake_all(lock);
}

// Once it was held and its clock has run out, the engine's timer ends it, if it has not yet.
void Client::watch(Lease &lease, std::shared_ptr<Queue> queue, int64_t tag) {
  Lock lock(mutex_);
  watch(lease, lease.state.load() != engine::Lease::kHeld, queue, tag);
  wake_all(lock);
}

void Client::shut_down() {
  const std::lock_guard one(shutdown_mutex_);
  Lock lock(mutex_);
  if (is_shut_) return;
  is_shut_ = true;
  engine_->shut_down(boot_now());
  flush(lock);
  settle();
  if (has_keeper_) {
    wake(keeper_);
    const Nanos limit = boot_now() + settings_.timeout;
    Waiter me;
    enlist(me);
    drain_waiter_ = &me;
    while (!engine_->is_drained() && boot_now() < limit) sleep(lock, me, limit);
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
  if (membership_) membership_->leave();
  engine_->give_up();
  // A caller may still sit in the connection: it disconnects on its way out.
  if (driver_ == nullptr && !is_sending_) {
    driver_ = &keeper_;
    disconnect(lock);
    driver_ = nullptr;
  }
  if (connection_) connection_->shut();
  driver_event_.signal();
  wake_all(lock);
}

// ---- engine::Outlet ----------------------------------------------------------------------------

void Client::send(std::span<const std::string_view> argv) {
  io::append_command(out_, argv);
  out_count_++;
  was_active_ = true;
}

// All requests and leases here are those of this folder.
void Client::finished(engine::Request &finished_request) {
  auto &request = static_cast<Request &>(finished_request);
  for (Waiter *waiter = request.waiters; waiter != nullptr; waiter = waiter->next_of_request) {
    if (waiter->list != nullptr) waiter->list->remove(*waiter);
    wake(*waiter);
    finished_count_++;
  }
  if (request.watcher.queue) finished_count_++;
  tell(request.watcher);
}

void Client::lease_ended(engine::Lease &ended_lease) {
  auto &lease = static_cast<Lease &>(ended_lease);
  try {
    if (lease.state.load() == engine::Lease::kLost) {
      log(LogLevel::kError, engine::Engine::why_not_held(lease).message);
    }
  } catch (const std::bad_alloc &) {
    // The loss is told to who waits for it in any case.
  }
  for (Waiter *waiter = lease_waiters_; waiter != nullptr; waiter = waiter->next) {
    if (waiter->lease == &lease) wake(*waiter);
  }
  tell(lease.watcher);
}

void Client::tell(Watcher &watcher) noexcept {
  const auto queue = std::move(watcher.queue);
  if (!queue || !queue->push(watcher.tag)) return;
  queue->next_due = std::move(due_queues_);
  due_queues_ = queue;
}

void Client::drop_link() {
  if (!is_connected_) return;
  is_broken_ = true;
  if (connection_) connection_->shut();
}

// ---- waiting and waking ------------------------------------------------------------------------

// Room to wake one more caller, the keeper, and whoever shuts down: waking must not fail.
void Client::make_room() {
  const size_t needed = waiter_count_ + 3;
  if (wakes_.capacity() < needed) wakes_.reserve(2 * needed);
}

void Client::enlist(Waiter &waiter) {
  waiter_count_++;
  if (waiter.request != nullptr) {
    waiter.next_of_request = waiter.request->waiters;
    waiter.request->waiters = &waiter;
  }
  if (waiter.lease != nullptr) {
    waiter.next = lease_waiters_;
    if (lease_waiters_ != nullptr) lease_waiters_->previous = &waiter;
    lease_waiters_ = &waiter;
  }
}

void Client::delist(Waiter &waiter) {
  waiter_count_--;
  if (waiter.list != nullptr) waiter.list->remove(waiter);
  if (waiter.request != nullptr) {
    Waiter **link = &waiter.request->waiters;
    while (*link != &waiter) link = &(*link)->next_of_request;
    *link = waiter.next_of_request;
  }
  if (waiter.lease != nullptr) {
    (waiter.previous != nullptr ? waiter.previous->next : lease_waiters_) = waiter.next;
    if (waiter.next != nullptr) waiter.next->previous = waiter.previous;
  }
  std::erase(wakes_, &waiter);
}

void Client::wake(Waiter &waiter) {
  if (waiter.word.exchange(Waiter::kWoken) == Waiter::kAsleep) wakes_.push_back(&waiter);
}

// Wake whom wake() and tell() have noted, without the mutex. The waiters may be gone by then: only
// addresses and the client's own events are used. Afterwards the mutex is held again.
void Client::wake_all(Lock &lock) {
  while (!wakes_.empty() || due_queues_) {
    auto queues = std::move(due_queues_);
    std::array<const void *, 64> words{};
    std::array<const io::Event *, 3> events{};
    size_t word_count = 0;
    size_t event_count = 0;
    size_t taken = 0;
    for (; taken < wakes_.size() && word_count < words.size(); taken++) {
      const Waiter *waiter = wakes_[taken];
      if (!waiter->is_polling) {
        words[word_count++] = &waiter->word;
        continue;
      }
      if (event_count == events.size()) break;
      const io::Event *event = &watch_.event();
      if (waiter == &keeper_) event = &keeper_watch_.event();
      if (waiter == driver_) event = &driver_event_;
      events[event_count++] = event;
    }
    wakes_.erase(wakes_.begin(), wakes_.begin() + static_cast<ptrdiff_t>(taken));
    lock.unlock();
    for (size_t i = 0; i < event_count; i++) events[i]->signal();
    for (size_t i = 0; i < word_count; i++) futex_wake(words[i]);
    while (queues) {
      const auto queue = std::move(queues);
      queues = std::move(queue->next_due);
      queue->signal();
    }
    lock.lock();
  }
}

// After anything that may have left commands, free roles or sleepers behind.
void Client::end_turn(Lock &lock) {
  flush_unless_reader_will(lock);
  settle();
  wake_all(lock);
}

void Client::sleep(Lock &lock, Waiter &me, Nanos limit) {
  wake_all(lock);
  uint32_t expected = Waiter::kAwake;
  if (me.word.compare_exchange_strong(expected, Waiter::kAsleep)) {
    lock.unlock();
    me.is_interrupted = !futex_sleep(me.word, limit);
    lock.lock();
  }
  me.word.store(Waiter::kAwake);
}

}  // namespace redlatch::client
