// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Operations of a quorum: acquires and fan-outs of users, and the votes that they are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "lock/request.h"
#include "lock/timer_queue.h"
#include "timing/backoff.h"

namespace redlatch::quorum {

// An operation in progress; events of nodes refer to it. Owned by QuorumClient, keyed by its id.
struct QuorumRequest {
  QuorumRequest(bool is_acquire_, uint64_t id_, std::shared_ptr<lock::Request> request_)
      : is_acquire(is_acquire_), id(id_), request(std::move(request_)) {}
  virtual ~QuorumRequest() = default;

  const bool is_acquire;  // else a fan-out
  const uint64_t id;
  std::shared_ptr<lock::Request> request;  // of the user, while it is not finished
  bool is_marked = false;                  // to be reviewed
  QuorumRequest *next_marked = nullptr;
};

// A request to the client of one node, and the lease of that node: what a vote is there.
struct NodeRequest final : lock::Request {
  using lock::Request::Request;
  QuorumRequest *operation = nullptr;  // nullptr: its result is ignored
};
struct NodeLease final : lock::Lease {
  QuorumRequest *operation = nullptr;
};

// The vote of one node in one acquire.
struct Vote {
  enum class State : uint8_t {
    kNone,
    kConnecting,  // requested when the node is connected
    kAsked,
    kRaising,  // granted, but the fence of the lease is not written yet
    kYes,
    kNo,           // another client holds the lock
    kUnavailable,  // no reply, or a reply that does not count
  };
  State state = State::kNone;
  Nanos due = kNever;  // kConnecting, kAsked: kUnavailable from then on
  std::shared_ptr<NodeRequest> request;
  std::shared_ptr<NodeLease> lease;
  std::shared_ptr<NodeRequest> fence;  // kRaising: the request that writes it
  Outcome why;                         // kNo, kUnavailable
  std::string blocker;                 // kNo: the client that holds the lock; empty: not known
  uint64_t rid = 0;                    // of the token of the last ACQUIRE sent to the node
  Nanos asked_at = 0;
  bool is_spent = false;  // a RELEASE of the round's token may still reach the node

  void reset() noexcept;
};

// One acquisition on most of the nodes, and its lease. A request to connect is one as well: it ends
// when a round could begin.
//
//   kGathering --> kRound --majority--> kFencing --> kHeld --release, loss--> forgotten
//                    | ^
//                    v |  a grant at the node where it is queued; a timer
//              kQueued, kPausing
struct QuorumAcquire final : QuorumRequest, lock::Timed {
  enum class Phase : uint8_t {
    kGathering,  // until the nodes are connected
    kRound,      // each node is asked for its vote
    kQueued,     // in the queue of a node where another client holds the lock
    kPausing,    // no node to queue at
    kFencing,    // enough votes: the fence is being written
    kHeld,
  };
  static constexpr size_t kNotQueued = SIZE_MAX;

  QuorumAcquire(uint64_t id_, std::shared_ptr<lock::Request> request_, size_t node_count)
      : QuorumRequest(true, id_, std::move(request_)),
        Timed(Timed::Kind::kRecord),
        votes(node_count) {}

  size_t count(Vote::State state) const {
    return static_cast<size_t>(std::count_if(
        votes.begin(), votes.end(), [&](const Vote &vote) { return vote.state == state; }));
  }

  Phase phase = Phase::kGathering;
  std::string name;
  lock::AcquireOptions options;
  std::shared_ptr<lock::Lease> lease;  // the user's; nullptr: a request to connect
  std::vector<Vote> votes;             // by node
  Nanos wait_until = kNever;
  bool is_try = false;
  Nanos gather_until = kNever;
  Nanos fence_due = kNever;
  int64_t fence = 0;
  uint64_t rid = 0;               // of this round's tokens
  Nanos top_up_at = 0;            // when to ask for the missing votes again
  Nanos extended_at = 0;          // by its user
  Nanos doubted_at = 0;           // a node had forgotten it: confirmations before this do not count
  size_t queued_at = kNotQueued;  // the node in whose queue it is
  bool was_queue_lost = false;    // .. and left that queue without a grant
  Nanos check_at = 0;             // when to check that node
  Nanos pause_until = 0;
  Nanos keep_until = 0;  // how long the votes of nodes before it in the order are kept
  timing::Backoff retry = timing::kQuorumRetry;
  std::string blocker;  // the client that had the lock at the last reply; empty: not known
};

// One request sent to each vote of a lease: release or extend. It ends when a majority has
// answered; later replies are ignored.
struct FanOut final : QuorumRequest {
  FanOut(uint64_t id_, std::shared_ptr<lock::Request> request_)
      : QuorumRequest(false, id_, std::move(request_)) {}

  // Ok when a majority of the nodes has done it, a failure when it cannot any more; else nullopt.
  std::optional<Outcome> result(size_t majority, size_t node_count) const;
  void ignore_results() noexcept {
    for (const auto &node_request : requests) node_request->operation = nullptr;
  }

  std::vector<std::shared_ptr<NodeRequest>> requests;
};

}  // namespace redlatch::quorum
