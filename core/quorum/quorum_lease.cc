// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/quorum_lease.h"

#include <algorithm>
#include <utility>

#include "timing/lease_clock.h"

namespace redlatch::quorum {

QuorumLease::QuorumLease(Nodes &nodes, Votes &votes, lock::Lease &lease, Nanos max_hold,
                         Nanos valid, Nanos now)
    : nodes_(nodes), votes_(votes), lease_(lease), top_up_at_(next_top_up(now)) {
  const auto first = std::find_if(votes.begin(), votes.end(),
                                  [](const Vote &vote) { return vote.state == Vote::State::kYes; });
  lease.token = first->lease->token;
  lease.fence = votes.fence();
  lease.end_at = max_hold > 0 ? after(now, max_hold) : kNever;
  lease.deadline = std::min(valid, lease.end_at);
  lease.state.store(lock::Lease::kHeld, std::memory_order_release);
  votes.set_holder(*this, now);
}

Nanos QuorumLease::maintain(Nanos now) {
  // Its state was already reported as lost: a later vote does not restore it.
  const bool was_valid = now < lease_.deadline.load();
  const Nanos valid = std::min(votes_.valid_until(now), lease_.end_at);
  if (was_valid) lease_.deadline.store(valid, std::memory_order_release);
  if (!was_valid || valid <= now) return 0;
  // After that time the replies of the votes to be confirmed trigger the next step.
  const bool is_awaited = now >= top_up_at_ || votes_.count(Vote::State::kYes) == nodes_.size();
  return is_awaited ? valid : std::min(valid, top_up_at_);
}

lock::Loss QuorumLease::why_lost(Nanos now) const {
  if (now >= lease_.end_at) return lock::LossReason::kMaxHold;
  const size_t count = votes_.count(Vote::State::kYes);
  std::string whys;
  for (const Vote &vote : votes_) {
    if (!vote.why.message.empty()) words::add_reason(whys, vote.why.message);
  }
  return {lock::LossReason::kNoMajority, words::too_few_have_it(nodes_.counted(count), whys)};
}

// ---- votes that are missing --------------------------------------------------------------------

// True if a majority holds the lease without the votes that are requested now, and has confirmed it
// since a node was found to have forgotten it: all nodes may have forgotten it, and a lock that was
// released by force must not be rebuilt node by node.
bool QuorumLease::is_certain(Nanos now) const {
  if (now >= lease_.deadline.load()) return false;
  const Nanos valid = votes_.valid_until(now);
  return valid > now && valid >= timing::deadline_of(doubted_at_, votes_.options().ttl);
}

// With each renewal, earlier by a random time: leases taken together do not ask together.
Nanos QuorumLease::next_top_up(Nanos now) {
  if (!votes_.options().is_renewed) return kNever;  // an extension by its user asks as well
  const Nanos ttl = votes_.options().ttl;
  const auto most = static_cast<uint64_t>(ttl / 12 + 1);
  return timing::renewal_of(now, ttl) - static_cast<Nanos>(nodes_.random() % most);
}

// The nodes refused, did not answer, were unreachable, or have forgotten it. Each additional vote
// is one more node that may forget before another client can get a majority. Rounds of other
// clients lose votes by this, but cannot win meanwhile.
void QuorumLease::top_up(Nanos now) {
  if (now < top_up_at_ || !is_certain(now)) return;
  top_up_at_ = next_top_up(now);
  votes_.ask_missing(now);
}

// A forgotten vote is requested again when the other nodes have confirmed theirs, after a pause:
// they are asked at once. Without renewal the extension by the user asks them all.
void QuorumLease::on_vote_lost(const Vote &vote, bool is_gone, Nanos now) {
  const bool is_renewed = votes_.options().is_renewed;
  const Nanos soonest = std::max(now, vote.asked_at + votes_.options().ttl / 12);
  if (is_renewed || is_gone) top_up_at_ = std::min(top_up_at_, soonest);
  if (!is_gone) return;
  doubted_at_ = is_renewed ? now : extended_at_;
  if (is_renewed) votes_.confirm(now);
}

void QuorumLease::extend(Nanos ttl, Nanos now) {
  votes_.set_ttl(ttl);
  top_up_at_ = extended_at_ = now;
}

}  // namespace redlatch::quorum
