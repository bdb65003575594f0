// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumRequest: a request of a user that is under way, or the lease that it led to. Requests: the
// table of all of them, with their timers.
//
// The nodes' clients report in the middle of their work. So a report only marks its request, and
// review_marked() reviews all marked ones before the call into the quorum returns.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "lock/request.h"
#include "lock/service.h"
#include "lock/timer_queue.h"
#include "quorum/nodes.h"

namespace redlatch::quorum {

class QuorumRequest;

class Requests {
 public:
  explicit Requests(lock::Output &output) : output_(output) {}

  // Throws std::bad_alloc, and then nothing has changed.
  void add(const std::shared_ptr<QuorumRequest> &request);
  void forget(QuorumRequest &request) noexcept;
  void mark(QuorumRequest &request) noexcept;
  void review_marked(Nanos now) noexcept;
  void finish(lock::Request &request, Status status, std::string_view message) noexcept;
  void lease_ended(lock::Lease &lease) { output_.lease_ended(lease); }
  // `subject`: the user's request or lease.
  QuorumRequest *find(const void *subject) const;
  // In the same order in each run. `action` may forget its request, and no other.
  template <class Action>
  void for_each(const Action &action) {
    for (auto at = all_.begin(); at != all_.end();) {
      const auto request = (at++)->second;
      action(*request);
    }
  }

  void set_timer(lock::Timed &request, Nanos due) noexcept { timers_.set(request, due); }
  void on_timer(Nanos now) noexcept;
  Nanos next_due() const { return timers_.next_due(); }

 private:
  lock::Output &output_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::shared_ptr<QuorumRequest>> all_;      // by id
  std::unordered_map<const void *, QuorumRequest *> subjects_;  // requests and leases of users
  lock::TimerQueue timers_;
  std::shared_ptr<QuorumRequest> first_marked_;
  QuorumRequest *last_marked_ = nullptr;
};

class QuorumRequest : public lock::Timed, public std::enable_shared_from_this<QuorumRequest> {
 public:
  // `lease`: the user's, which the request is to fill; nullptr: it fills none.
  QuorumRequest(Nodes &nodes, Requests &requests, std::shared_ptr<lock::Request> request,
                std::shared_ptr<lock::Lease> lease);
  virtual ~QuorumRequest() = default;
  QuorumRequest(const QuorumRequest &) = delete;
  QuorumRequest &operator=(const QuorumRequest &) = delete;

  // A node's client has reported something, or the timer is due.
  virtual void review(Nanos now) = 0;
  // A review has run out of memory.
  virtual void on_no_memory(Nanos now) noexcept = 0;
  // End the user's request.
  virtual void fail(Status status, std::string_view message, Nanos now) noexcept = 0;
  virtual void shut_down(Nanos) noexcept {}
  // True if it is reviewed when a connection to `node` was made or lost.
  virtual bool awaits(size_t) const noexcept { return request_ != nullptr; }
  // No answer will come from `node`.
  virtual void on_unreachable(size_t, Nanos) noexcept {}
  // `node` may have forgotten what it granted.
  virtual void withdraw_vote(size_t, const Outcome &, Nanos) {}
  void mark() noexcept { requests_.mark(*this); }

 protected:
  void wake_at(Nanos when) noexcept { requests_.set_timer(*this, when); }
  // Requests neither finds nor reviews this request afterwards.
  void forget() noexcept { requests_.forget(*this); }
  // .. and its user gets the answer.
  void end(Status status, std::string_view message = {}) noexcept;
  void answer(Status status, std::string_view message = {}) noexcept;

  Nodes &nodes_;
  Requests &requests_;
  std::shared_ptr<lock::Request> request_;  // of the user, until it is answered
  const std::shared_ptr<lock::Lease> lease_;

 private:
  friend class Requests;

  uint64_t id_ = 0;
  bool is_marked_ = false;
  bool is_forgotten_ = false;
  std::shared_ptr<QuorumRequest> next_marked_;
};

// A request to the client of one node, and a lease of that node.
struct NodeRequest final : lock::Request {
  using lock::Request::Request;
  QuorumRequest *owner = nullptr;  // nullptr: its result is ignored
};
struct NodeLease final : lock::Lease {
  QuorumRequest *owner = nullptr;
};

}  // namespace redlatch::quorum
