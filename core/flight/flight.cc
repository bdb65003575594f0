// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "flight/flight.h"

#include <cassert>
#include <new>
#include <utility>

namespace redlatch::flight {

using compound::PartRequest;
using lock::Lease;
using lock::Request;

namespace {

std::shared_ptr<PartRequest> read_of(const std::string &name, compound::Compound &owner) {
  const auto read = std::make_shared<PartRequest>(Request::What::ask<operate::GetValue>());
  read->several.is_part = true;
  read->name = name;
  read->owner = &owner;
  return read;
}

// Starts `part`. Throws what the lock client throws, and then its owner hears nothing of it.
void start_part(const Inner &inner, const std::shared_ptr<PartRequest> &part, Nanos now) {
  try {
    inner->start(part, now);
  } catch (...) {
    part->owner = nullptr;
    throw;
  }
}

// An acquire outlasts it.
bool is_outage(const Request &read) {
  const Status status = read.status.load();
  return status == Status::kUnavailable || status == Status::kOutcomeUnknown;
}

void drop_part(const Inner &inner, std::shared_ptr<PartRequest> &part, Nanos now) noexcept {
  const auto dropped = std::exchange(part, nullptr);
  if (!dropped) return;
  dropped->owner = nullptr;
  if (!dropped->is_finished()) inner->cancel(*dropped, now);
}

}  // namespace

// ---- a caller ----------------------------------------------------------------------------------

Flight::Flight(const Inner &inner, compound::Table &table, Rooms &rooms,
               const std::shared_ptr<Request> &request, Nanos now)
    : Compound(table, request, nullptr),
      inner_(inner),
      rooms_(rooms),
      wait_until_(request->wait_ms > 0 ? after(now, request->wait_ms * kMs) : kNever) {
  assert(request->wait_ms != 0);
}

Flight::~Flight() {
  if (read_) read_->owner = nullptr;
}

void Flight::start(Nanos now) noexcept {
  try {
    const auto read = read_of(request_->name, *this);
    start_part(inner_, read, now);
    read_ = read;
    wake_at(wait_until_);
    mark();
  } catch (const std::bad_alloc &) {
    fail(Status::kNoMemory, {}, now);
  }
}

void Flight::review(Nanos now) {
  if (now >= wait_until_) {
    return fail(Status::kTimeout,
                lock::words::not_granted(request_->name, request_->wait_ms, {}, {}), now);
  }
  if (!read_ || !read_->is_finished()) return;
  const auto read = std::exchange(read_, nullptr);
  read->owner = nullptr;
  const Status status = read->status.load();
  if (status != Status::kOk && !is_outage(*read)) return fail(status, read->message, now);
  const Value &value = read->as<operate::GetValue>().value;
  if (value && !value->is_failure) return land(value);
  if (status == Status::kOk) seen_failure_ = value ? value->fence : -1;
  rooms_.enter(std::static_pointer_cast<Flight>(shared_from_this()), now);
}

void Flight::on_no_memory(Nanos now) noexcept { fail(Status::kNoMemory, {}, now); }

void Flight::fail(Status status, std::string_view message, Nanos now) noexcept {
  const auto keep = shared_from_this();
  await(nullptr);
  drop_part(inner_, read_, now);
  rooms_.leave(*this, now);
  end(status, message);
}

// Its room shuts down by itself.
void Flight::shut_down(Nanos now) noexcept {
  await(nullptr);
  drop_part(inner_, read_, now);
  end(Status::kClosed, lock::words::kShutDown);
}

void Flight::await(const Request *part) noexcept {
  if (request_) request_->several.awaited = part;
}

void Flight::land(const Value &value) noexcept {
  await(nullptr);
  request_->arguments->value = value;
  end(Status::kOk);
}

void Flight::give(const std::shared_ptr<Lease> &lease) noexcept {
  await(nullptr);
  lease->starter = request_->lease->starter;
  request_->lease = lease;
  end(Status::kOk);
}

// ---- a room of waiting callers -----------------------------------------------------------------

Room::Room(const Inner &inner, compound::Table &table, Rooms &rooms, std::string name)
    : Compound(table, nullptr, nullptr), inner_(inner), rooms_(rooms), name_(std::move(name)) {}

Room::~Room() {
  if (request_) request_->owner = nullptr;
}

void Room::add(const std::shared_ptr<Flight> &caller, Nanos now) {
  callers_.push_back(caller);
  if (request_) return caller->await(request_.get());
  try {
    acquire(now);
  } catch (...) {
    callers_.pop_back();
    throw;
  }
}

void Room::remove(const Flight &caller, Nanos now) noexcept {
  std::erase_if(callers_, [&](const auto &one) { return one.get() == &caller; });
  if (callers_.empty()) close(now);
}

// Its lock is a mutex in the format string, with a place of its own in the queue.
void Room::acquire(Nanos now) {
  assert(!request_ && !callers_.empty());
  const auto lease = callers_.front()->request().arguments->make_lease();
  const auto request = std::make_shared<PartRequest>(Request::Op::kAcquire);
  request->several.is_part = true;
  request->name = name_;
  request->options = callers_.front()->request().options;
  request->options.max_local_handoffs = 0;
  request->options.awaits_value = true;
  request->lease = lease;
  request->owner = this;
  start_part(inner_, request, now);
  request_ = request;
  lease_ = lease;
  await(request.get());
  mark();
}

// Notes for the thread of each caller which part it waits for.
void Room::await(const Request *part) noexcept {
  for (const auto &caller : callers_) caller->await(part);
}

void Room::check(Nanos now) {
  const auto read = read_of(name_, *this);
  start_part(inner_, read, now);
  request_ = read;
  mark();
}

void Room::review(Nanos now) {
  if (!request_ || !request_->is_finished()) return;
  const auto request = std::exchange(request_, nullptr);
  request->owner = nullptr;
  await(nullptr);
  const bool is_read = request->op != Request::Op::kAcquire;
  if (is_read && is_outage(*request)) {
    drop(now);
    return acquire(now);
  }
  const Status status = request->status.load();
  const bool is_told = status == Status::kSkipped;
  if (is_told) lease_ = nullptr;  // not granted
  if (status != Status::kOk && !is_told) return fail(status, request->message, now);
  if (!is_read) return check(now);
  serve(request->as<operate::GetValue>().value, now);
}

void Room::serve(const Value &value, Nanos now) {
  const auto keep = shared_from_this();
  for (auto at = callers_.begin(); at != callers_.end();) {
    const auto caller = *at;
    if (!caller->takes(value)) {
      at++;
      continue;
    }
    at = callers_.erase(at);
    caller->land(value);
  }
  if (!callers_.empty() && lease_ && lease_->state_at(now) == Lease::kHeld) {
    const auto first = callers_.front();
    callers_.pop_front();
    first->give(std::exchange(lease_, nullptr));
  }
  drop(now);
  if (callers_.empty()) return close(now);
  acquire(now);
}

void Room::on_no_memory(Nanos now) noexcept { fail(Status::kNoMemory, {}, now); }

// All its callers fail.
void Room::fail(Status status, std::string_view message, Nanos now) noexcept {
  const auto keep = shared_from_this();
  const auto callers = std::exchange(callers_, {});
  close(now);
  for (const auto &caller : callers) caller->fail(status, message, now);
}

void Room::shut_down(Nanos now) noexcept {
  callers_.clear();
  close(now);
}

// Gives up the part and the lock.
void Room::drop(Nanos now) noexcept {
  await(nullptr);
  drop_part(inner_, request_, now);
  if (const auto lease = std::exchange(lease_, nullptr)) inner_->release_async(*lease, now);
}

void Room::close(Nanos now) noexcept {
  const auto keep = shared_from_this();
  drop(now);
  rooms_.forget(*this);
  forget();
}

// ---- all rooms ---------------------------------------------------------------------------------

void Rooms::enter(const std::shared_ptr<Flight> &caller, Nanos now) {
  const std::string &name = caller->request().name;
  auto found = rooms_.find(name);
  if (found == rooms_.end()) {
    const auto room = std::make_shared<Room>(inner_, table_, *this, name);
    table_.add(room);
    try {
      found = rooms_.emplace(name, room).first;
    } catch (...) {
      room->fail(Status::kNoMemory, {}, now);
      throw;
    }
  }
  const auto room = found->second;
  try {
    room->add(caller, now);
  } catch (...) {
    room->remove(*caller, now);  // the last one closes it
    throw;
  }
}

void Rooms::leave(const Flight &caller, Nanos now) noexcept {
  const auto found = rooms_.find(caller.request().name);
  if (found != rooms_.end()) std::shared_ptr(found->second)->remove(caller, now);
}

}  // namespace redlatch::flight
