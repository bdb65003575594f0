// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumAcquire: one acquire on most of the nodes, from the call to its grant, and the lease that
// it is then. A request to connect is one as well: it ends when a round could begin.
//
//   kGathering --> kRound --majority--> kFencing --> held --release, loss--> forgotten
//                    | ^
//                    v |  a grant at the node where it is queued; a timer
//              kQueued, kPausing
//
// Where to wait: all clients go through the nodes of a lock in one order. A refused client queues
// at the first node that refused it, and keeps only the votes of nodes before that one. So when
// clients split the votes, the one that got furthest continues, the others queue behind it, and no
// circle of waiters can form (resource ordering, Havender 1968). The place in the queue is a hint:
// its head repeats the round from time to time, because that node may not hear of a release.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "quorum/quorum_lease.h"
#include "quorum/quorum_request.h"
#include "quorum/votes.h"
#include "timing/backoff.h"

namespace redlatch::quorum {

class QuorumAcquire final : public QuorumRequest {
 public:
  QuorumAcquire(Nodes &nodes, Requests &requests, const std::shared_ptr<lock::Request> &request,
                Nanos now);
  ~QuorumAcquire() override;
  // The one that holds `lease`, which is the user's; nullptr: it is not held.
  static QuorumAcquire *holder_of(const lock::Lease &lease, const compound::Table &requests);

  void start(Nanos now);
  void review(Nanos now) override;
  void on_no_memory(Nanos now) noexcept override;
  void fail(Status status, std::string_view message, Nanos now) noexcept override;
  void shut_down(Nanos now) noexcept override;
  bool awaits(size_t node) const noexcept override;
  void withdraw_vote(size_t node, const Outcome &why, Nanos now) override;
  // True if the thread that waits for it has the lock itself.
  bool waits_for_itself() const;

  // A lease that is held.
  const Votes &votes() const { return votes_; }
  // May find that it is lost.
  void maintain(Nanos now);
  void extend(Nanos ttl, Nanos now);
  void detach(Nanos now);
  // The user gives it up: end_lease(), and then this.
  void give_back(Nanos now, bool is_lost = false) noexcept;

 private:
  enum class Phase : uint8_t {
    kGathering,  // until the nodes are connected
    kRound,      // each node is asked for its vote
    kQueued,     // in the queue of a node where another client holds the lock
    kPausing,    // no node to queue at
    kFencing,    // enough votes: the fence is being written
  };

  void gather(Nanos now);
  void begin_round(Nanos now);
  void take_answers(Nanos now);
  void count_votes(Nanos now);
  void end_round(Nanos now);
  void pause(Nanos now);
  void queue_at(const std::vector<size_t> &order, size_t place, Nanos now);
  void check_queue(Nanos now);
  void accept(Nanos now);
  void raise_fence(Nanos now);
  void check_fence(Nanos now);
  void grant(Nanos now);
  void fail_late(Nanos now);
  void note_blocker();
  operate::Holder holder() const;
  Outcome why_not(Nanos now) const;
  void wake_by(Nanos when) noexcept { wake_at(std::min(when, wait_until_)); }

  Phase phase_ = Phase::kGathering;
  Votes votes_;
  std::optional<QuorumLease> held_;
  const bool is_try_;
  const Nanos wait_until_;
  Nanos gather_until_ = kNever;
  Nanos fence_due_ = kNever;
  Nanos check_at_ = 0;  // when to check the node in whose queue it is
  Nanos pause_until_ = 0;
  Nanos keep_until_ = 0;  // how long the votes of nodes before it in the order are kept
  timing::Backoff retry_ = timing::kQuorumRetry;
};

}  // namespace redlatch::quorum
