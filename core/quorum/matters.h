// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What the quorum keeps: bids and errands of users, and the votes they are made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "lock/subjects.h"
#include "lock/timer_queue.h"
#include "timing/backoff.h"

namespace redlatch::quorum {

// Something that reports of nodes are about. Kept by the quorum, by its number.
struct Matter {
  Matter(bool is_bid_, uint64_t id_, std::shared_ptr<lock::Request> request_)
      : is_bid(is_bid_), id(id_), request(std::move(request_)) {}
  virtual ~Matter() = default;

  const bool is_bid;  // else an errand
  const uint64_t id;
  std::shared_ptr<lock::Request> request;  // of the user, while it is not finished
  bool is_marked = false;                  // to be looked at
  Matter *next_marked = nullptr;
};

// What one node is asked, and its lease: the engine's view of a vote.
struct Ballot final : lock::Request {
  using lock::Request::Request;
  Matter *matter = nullptr;  // none: nobody cares any more
};
struct Share final : lock::Lease {
  Matter *matter = nullptr;
};

// Of one node, for one bid.
struct Vote {
  enum class State : uint8_t {
    kNone,
    kDialing,  // to be asked when the node is connected
    kAsked,
    kRaising,  // granted, but the fence of the lease is not written yet
    kYes,
    kNo,      // somebody else has it
    kSilent,  // no answer, or none that counts
  };
  State state = State::kNone;
  Nanos due = kNever;  // kDialing, kAsked: silent from then on
  std::shared_ptr<Ballot> ballot;
  std::shared_ptr<Share> share;
  std::shared_ptr<Ballot> fence;  // its raising
  Outcome why;                    // kNo, kSilent
  std::string blocker;            // kNo: the client that has it; empty: not known
  uint64_t rid = 0;               // of the token of the last ACQUIRE sent there
  Nanos asked_at = 0;
  bool is_spent = false;  // a RELEASE of the round's token may still come there

  void let_go() noexcept;
};

// One acquisition, and what it gets. A request to connect is one as well: it ends when a round
// could begin.
//
//   kGathering --> kRound --majority--> kFencing --> kHeld --release, loss--> forgotten
//                    | ^
//                    v |  a grant in that line; now and then
//              kWaiting, kPausing
struct Bid final : Matter, lock::Timed {
  enum class Phase : uint8_t {
    kGathering,  // until the nodes are connected
    kRound,      // all are asked
    kWaiting,    // in line at a node that somebody else has
    kPausing,    // nowhere to stand in line
    kFencing,    // enough votes: the fence is being written
    kHeld,
  };
  static constexpr size_t kNoLine = SIZE_MAX;

  Bid(uint64_t id_, std::shared_ptr<lock::Request> request_, size_t node_count)
      : Matter(true, id_, std::move(request_)), Timed(Timed::Kind::kHold), votes(node_count) {}

  size_t count(Vote::State state) const {
    return static_cast<size_t>(std::count_if(
        votes.begin(), votes.end(), [&](const Vote &vote) { return vote.state == state; }));
  }

  Phase phase = Phase::kGathering;
  std::string name;
  lock::AcquireOptions options;
  std::shared_ptr<lock::Lease> lease;  // the user's; none: a request to connect
  std::vector<Vote> votes;             // by node
  Nanos wait_until = kNever;
  bool is_try = false;
  Nanos gather_until = kNever;
  Nanos fence_due = kNever;
  int64_t fence = 0;
  uint64_t rid = 0;       // of this round's tokens
  Nanos top_up_at = 0;    // when to ask for the missing votes again
  Nanos extended_at = 0;  // by its user
  Nanos doubted_at = 0;   // a node had forgotten it: the others must confirm it after this
  size_t line = kNoLine;  // the node in whose line it stands
  bool is_line_lost = false;
  Nanos check_at = 0;  // when to see whether that is of use
  Nanos pause_until = 0;
  Nanos keep_until = 0;  // votes of nodes before that one
  timing::Backoff retry = timing::kQuorumRetry;
  std::string blocker;  // the client that had the lock at the last answer; empty: not known
};

// What all votes of a lease are asked: to be released, or extended. Those that are late go on
// without it.
struct Errand final : Matter {
  Errand(uint64_t id_, std::shared_ptr<lock::Request> request_)
      : Matter(false, id_, std::move(request_)) {}

  std::vector<std::shared_ptr<Ballot>> ballots;
};

}  // namespace redlatch::quorum
