// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Compound: a request of a user that is carried out by requests to lock clients, its parts, or the
// lease that it led to. Table: all of them, with their timers.
//
// The lock clients report in the middle of their work. So a report only marks its compound, and
// review_marked() reviews all marked ones before the call into the service returns.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "lock/request.h"
#include "lock/service.h"
#include "lock/timer_queue.h"

namespace redlatch::compound {

class Compound;

// The lock client that parts are asked of. It is replaced when its server turns out to be a node of
// a cluster.
using Inner = std::unique_ptr<lock::LockService>;

class Table {
 public:
  explicit Table(lock::Output &output) : output_(output) {}

  // Throws std::bad_alloc, and then nothing has changed.
  void add(const std::shared_ptr<Compound> &compound);
  void forget(Compound &compound) noexcept;
  void mark(Compound &compound) noexcept;
  void review_marked(Nanos now) noexcept;
  void finish(lock::Request &request, Status status, std::string_view message) noexcept;
  void lease_ended(lock::Lease &lease) { output_.lease_ended(lease); }
  void lease_recalled(lock::Lease &lease) { output_.lease_recalled(lease); }
  // `subject`: the user's request or lease.
  Compound *find(const void *subject) const;
  // In the same order in each run. `action` may forget its compound, and no other.
  template <class Action>
  void for_each(const Action &action) {
    for (auto at = all_.begin(); at != all_.end();) {
      const auto compound = (at++)->second;
      action(*compound);
    }
  }

  void set_timer(lock::Timed &compound, Nanos due) noexcept { timers_.set(compound, due); }
  void on_timer(Nanos now) noexcept;
  Nanos next_due() const { return timers_.next_due(); }

 private:
  lock::Output &output_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::shared_ptr<Compound>> all_;      // by id
  std::unordered_map<const void *, Compound *> subjects_;  // requests and leases of users
  lock::TimerQueue timers_;
  std::shared_ptr<Compound> first_marked_;
  Compound *last_marked_ = nullptr;
};

class Compound : public lock::Timed, public std::enable_shared_from_this<Compound> {
 public:
  // `request`: of the user; nullptr: it acts for others. `lease`: the user's, which the request
  // fills; nullptr: it fills none.
  Compound(Table &table, std::shared_ptr<lock::Request> request,
           std::shared_ptr<lock::Lease> lease);
  virtual ~Compound() = default;
  Compound(const Compound &) = delete;
  Compound &operator=(const Compound &) = delete;

  // A lock client has reported something, or the timer is due.
  virtual void review(Nanos now) = 0;
  // A review has run out of memory.
  virtual void on_no_memory(Nanos now) noexcept = 0;
  // End the user's request.
  virtual void fail(Status status, std::string_view message, Nanos now) noexcept = 0;
  virtual void shut_down(Nanos) noexcept {}
  // A tracked key has changed; nullopt: any may have.
  virtual void on_key_changed(std::optional<std::string_view>) noexcept {}
  // The holder of `part` is asked to finish.
  virtual void on_recalled(const lock::Lease &) noexcept {}
  void mark() noexcept { table_.mark(*this); }
  // The user's lease, which was granted.
  void end_lease(lock::Lease::State state, lock::Loss loss = {}) noexcept;

 protected:
  void wake_at(Nanos when) noexcept { table_.set_timer(*this, when); }
  // The table neither finds nor reviews this compound afterwards.
  void forget() noexcept { table_.forget(*this); }
  // .. and its user gets the answer.
  void end(Status status, std::string_view message = {}) noexcept;
  void answer(Status status, std::string_view message = {}) noexcept;

  Table &table_;
  std::shared_ptr<lock::Request> request_;  // of the user, until it is answered
  const std::shared_ptr<lock::Lease> lease_;

 private:
  friend class Table;

  uint64_t id_ = 0;
  bool is_marked_ = false;
  bool is_forgotten_ = false;
  std::shared_ptr<Compound> next_marked_;
};

// A request to a lock client, and a lease of it.
struct PartRequest final : lock::Request {
  using lock::Request::Request;
  Compound *owner = nullptr;  // nullptr: its result is ignored
};
struct PartLease final : lock::Lease {
  Compound *owner = nullptr;
};

}  // namespace redlatch::compound
