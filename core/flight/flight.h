// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Flight: a caller of a flight, from the call until it has a value, or the lease with which it
// computes one. Room: the callers of a name that wait, with one place in the queue for all.
//
//   Flight   kReading --a value--> finished  Room   kAcquiring --granted, or a message--> kChecking
//               |                     ^                  ^                                    |
//               v none                |                  +-------- callers are left ----------+
//            kWaiting ----------------+                                                       v
//                                                                                         forgotten
//
// A caller reads the value. If no value is stored it waits in the room, which acquires the lock and
// reads again: the script that released the lock may have stored a value. If so, all callers get
// it, and the lock is released; else the first one gets the lease. That script also sends a message
// to the waiters of the flight, and removes them from the queue, so that all clients read at the
// same time; a waiter that gets no message gets the lock in its turn. No value is kept here: each
// was read after its caller had begun to wait.
//
// A failure is stored as a value is, for a short time, for the callers that waited. A caller that
// has read it at the beginning came later, and does not get it: only a failure with another fence
// is its result.
//
// A read that meets an outage is followed by an acquire, which outlasts it.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "compound/compound.h"
#include "lock/request.h"
#include "operate/operation.h"

namespace redlatch::flight {

using compound::Inner;
using Value = std::shared_ptr<const protocol::FlightValue>;

class Rooms;

class Flight final : public compound::Compound {
 public:
  // All outlive it.
  Flight(const Inner &inner, compound::Table &table, Rooms &rooms,
         const std::shared_ptr<lock::Request> &request, Nanos now);
  ~Flight() override;

  void start(Nanos now) noexcept;
  void review(Nanos now) override;
  void on_no_memory(Nanos now) noexcept override;
  void fail(Status status, std::string_view message, Nanos now) noexcept override;
  void shut_down(Nanos now) noexcept override;

  // The part that it waits for; nullptr: none.
  void await(const lock::Request *part) noexcept;
  const lock::Request &request() const { return *request_; }
  // True if `value` is its result.
  bool takes(const Value &value) const {
    return value && (!value->is_failure || (seen_failure_ && value->fence != *seen_failure_));
  }
  void land(const Value &value) noexcept;
  // This caller computes the value.
  void give(const std::shared_ptr<lock::Lease> &lease) noexcept;

 private:
  const Inner &inner_;
  Rooms &rooms_;
  const Nanos wait_until_;
  std::shared_ptr<compound::PartRequest> read_;  // while it reads
  // Fence of the failure that it has read, -1 for none; nullopt: it could not read.
  std::optional<int64_t> seen_failure_;
};

class Room final : public compound::Compound {
 public:
  Room(const Inner &inner, compound::Table &table, Rooms &rooms, std::string name);
  ~Room() override;

  // Throws std::bad_alloc, and then nothing has changed.
  void add(const std::shared_ptr<Flight> &caller, Nanos now);
  // A caller that awaits no part any more.
  void remove(const Flight &caller, Nanos now) noexcept;
  void review(Nanos now) override;
  void on_no_memory(Nanos now) noexcept override;
  void fail(Status status, std::string_view message, Nanos now) noexcept override;
  void shut_down(Nanos now) noexcept override;

  const std::string &name() const { return name_; }

 private:
  void acquire(Nanos now);
  void await(const lock::Request *part) noexcept;
  void check(Nanos now);
  void serve(const Value &value, Nanos now);
  void drop(Nanos now) noexcept;
  void close(Nanos now) noexcept;

  const Inner &inner_;
  Rooms &rooms_;
  const std::string name_;
  std::list<std::shared_ptr<Flight>> callers_;      // in the order of their calls
  std::shared_ptr<compound::PartRequest> request_;  // the acquire, and then the read
  std::shared_ptr<lock::Lease> lease_;              // of the acquire
};

// The room of each name that has callers.
class Rooms {
 public:
  // Both outlive it.
  Rooms(const Inner &inner, compound::Table &table) : inner_(inner), table_(table) {}

  void enter(const std::shared_ptr<Flight> &caller, Nanos now);
  void leave(const Flight &caller, Nanos now) noexcept;
  void forget(const Room &room) noexcept { rooms_.erase(room.name()); }

 private:
  const Inner &inner_;
  compound::Table &table_;
  std::map<std::string, std::shared_ptr<Room>, std::less<>> rooms_;
};

}  // namespace redlatch::flight
