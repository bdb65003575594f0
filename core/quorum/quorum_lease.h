// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumLease: a lease that most of the nodes hold: until when it is valid, and what is done about
// votes that are missing.
#pragma once

#include "base/clock.h"
#include "lock/request.h"
#include "quorum/nodes.h"
#include "quorum/votes.h"

namespace redlatch::quorum {

class QuorumLease final : private Votes::Holder {
 public:
  // All outlive it. `lease` is the user's, which is granted until `valid`.
  QuorumLease(Nodes &nodes, Votes &votes, lock::Lease &lease, Nanos max_hold, Nanos valid,
              Nanos now);

  // @return when to call it again; not after `now`: the lease is lost.
  Nanos maintain(Nanos now);
  lock::Loss why_lost(Nanos now) const;
  // Ask for the missing votes of a certain lease, if it is time.
  void top_up(Nanos now);
  // The user extends it.
  void extend(Nanos ttl, Nanos now);

 private:
  bool is_certain(Nanos now) const override;
  void on_vote_lost(const Vote &vote, bool is_gone, Nanos now) override;
  Nanos next_top_up(Nanos now);

  Nodes &nodes_;
  Votes &votes_;
  lock::Lease &lease_;
  Nanos top_up_at_;        // when to ask for the missing votes again
  Nanos extended_at_ = 0;  // by its user
  Nanos doubted_at_ = 0;   // a node had forgotten it: confirmations before this do not count
};

}  // namespace redlatch::quorum
