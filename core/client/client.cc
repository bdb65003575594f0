// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client, part 1 of 3: what callers call, and waking. Part 2: drive.cc; part 3: keeper.cc.
#include "client/client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "base/log.h"
#include "base/text.h"

namespace redlatch::client {

namespace {

// Starts at 1. A number is never used for a second thread.
uint64_t thread_number() {
  static std::atomic<uint64_t> last{0};
  thread_local const uint64_t number = ++last;
  return number;
}

}  // namespace

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

Client::Client(Settings settings) : settings_(std::move(settings)) {}

Client::~Client() {
  if (engine_) shut_down();  // none: open() failed half-way
}

// ---- calls -------------------------------------------------------------------------------------

// The mutex is held.
void Client::begin(const std::shared_ptr<Request> &request) {
  if (!has_keeper_ && !is_shut_) start_keeper();
  if (request->op == Request::Op::kAcquire) request->lease->starter = thread_number();
  engine_->start(request, boot_now());
  call_keeper_in_time();
}

// Only a warning: another thread may still release the lock.
void Client::note_caller(Request &request) {
  if (request.op != Request::Op::kAcquire) return;
  request.waiter = thread_number();
  if (request.is_finished() || request.was_warned || !engine::Engine::waits_for_itself(request)) {
    return;
  }
  request.was_warned = true;
  try {
    log(LogLevel::kWarning,
        "lock " + quoted(request.lease->name) + ": a thread waits for a lock that it holds itself");
  } catch (const std::bad_alloc &) {
    return;  // the message of the timeout says it, too
  }
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
  note_caller(*request);
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
  note_caller(request);
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

void Client::abandon(Lease &lease) {
  Lock lock(mutex_);
  lease.watcher.forget();
  engine_->abandon(lease, boot_now());
  call_keeper_in_time();
  end_turn(lock);
}

std::string Client::delivery() {
  const Lock lock(mutex_);
  return delivery_;
}

void Client::shut_down() {
  const std::lock_guard one(shutdown_mutex_);
  Lock lock(mutex_);
  if (is_shut_) return;
  is_shut_ = true;
  drop_reader();  // it may be this very thread
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

void Client::send(size_t, std::span<const std::string_view> argv) {
  io::append_command(out_, argv);
  out_count_++;
  was_active_ = true;
}

// All requests and leases here are those of this folder.
void Client::finished(engine::Request &request) {
  finished_count_ += tell_finished(static_cast<Request &>(request));
}

void Client::lease_ended(engine::Lease &lease) { tell_ended(static_cast<Lease &>(lease)); }

void Client::drop_link(size_t) {
  if (!is_connected_) return;
  is_broken_ = true;
  if (connection_) connection_->shut();
}

const io::Event &Client::event_of(const Waiter &waiter) const {
  if (&waiter == &keeper_) return keeper_watch_.event();
  return &waiter == driver_ ? driver_event_ : watch_.event();
}

// After anything that may have left commands, free roles or sleepers behind.
void Client::end_turn(Lock &lock) {
  flush_unless_reader_will(lock);
  settle();
  wake_all(lock);
}

}  // namespace redlatch::client
