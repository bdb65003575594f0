// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Quorum: from enough votes to the end of the lease.
#include <algorithm>

#include "base/text.h"
#include "quorum/quorum.h"
#include "timing/lease_clock.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;
using State = Vote::State;

// ---- yes ---------------------------------------------------------------------------------------

void Quorum::accept(Bid &bid, Nanos now) {
  const Nanos left = valid_until(bid, now) - now;
  if (left <= settings_.min_validity) {
    if (!bid.is_try) return pause(bid, now);
    return fail(bid, Status::kUnavailable,
                "lock " + quoted(bid.name) + " was granted by " + of_nodes(majority_) +
                    ", too late: " + std::to_string(std::max<Nanos>(left, 0) / kMs) +
                    " ms of its lease were left, and given back",
                now);
  }
  if (settings_.is_fenced) return raise_fence(bid, now);
  grant(bid, now);
}

// The highest number of a majority is above all that was written to a majority before. It is
// written to one itself before anybody may use it.
void Quorum::raise_fence(Bid &bid, Nanos now) {
  bid.phase = Bid::Phase::kFencing;
  bid.fence = 0;
  bid.fence_due = now + node_limit(bid);
  for (const Vote &vote : bid.votes) {
    if (vote.state == State::kYes) bid.fence = std::max(bid.fence, vote.share->fence.load());
  }
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (bid.votes[i].state == State::kYes) write_fence(bid, i, now);
  }
  check_fence(bid, now);
}

// A node without this fence would give the next owner a lower one: its vote does not count.
void Quorum::write_fence(Bid &bid, size_t node, Nanos now) {
  Vote &vote = bid.votes[node];
  const auto ballot = std::make_shared<Ballot>(Request::Op::kRaiseFence);
  ballot->matter = &bid;
  ballot->lease = vote.share;
  ballot->inquiry->fence = bid.fence;
  nodes_[node]->engine.start(ballot, now);
  vote.fence = ballot;
  vote.state = State::kRaising;
}

void Quorum::check_fence(Bid &bid, Nanos now) {
  const size_t written = bid.count(State::kYes);
  const size_t open = bid.count(State::kRaising);
  if (written >= majority_) return grant(bid, now);
  if (written + open >= majority_ && now < bid.fence_due) {
    return timers_.set(bid, std::min(bid.fence_due, bid.wait_until));
  }
  if (!bid.is_try) return pause(bid, now);
  fail(bid, Status::kUnavailable,
       "lock " + quoted(bid.name) + " was granted, but its fence was written to " +
           of_nodes(written) + " only: it was given back",
       now);
}

void Quorum::grant(Bid &bid, Nanos now) {
  const Nanos valid = valid_until(bid, now);
  if (valid <= now + settings_.min_validity) return accept(bid, now);
  const auto &options = bid.request->options;
  const auto first = std::find_if(bid.votes.begin(), bid.votes.end(),
                                  [](const Vote &vote) { return vote.state == State::kYes; });
  Lease &lease = *bid.lease;
  lease.token = first->share->token;
  lease.fence = bid.fence;
  lease.end_at = options.max_hold > 0 ? after(now, options.max_hold) : kNever;
  lease.deadline = std::min(valid, lease.end_at);
  lease.state.store(Lease::kHeld, std::memory_order_release);
  bid.phase = Bid::Phase::kHeld;
  bid.top_up_at = next_top_up(bid, now);
  // The others may still answer, or be connected and asked, and be more votes.
  if (bid.line != Bid::kNoLine) drop_vote(bid, bid.line, now);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = bid.votes[i];
    if (vote.state == State::kSilent && !nodes_[i]->engine.is_up()) vote.state = State::kDialing;
  }
  succeed(bid);
  look_after(bid, now);
}

void Quorum::succeed(Bid &bid) {
  const auto request = std::move(bid.request);
  index_.erase(request.get());
  if (!bid.lease) {
    bid.request = request;
    forget(bid);
  }
  finish(*request, Status::kOk);
}

// ---- held: votes that are missing --------------------------------------------------------------

// Whether a majority holds the lease without the votes that are asked for now, and has confirmed it
// since a node was found to have forgotten it: then all nodes may have forgotten it. A lock that
// was released by force must not be rebuilt node by node.
bool Quorum::is_certain(const Bid &bid, Nanos now) const {
  if (now >= bid.lease->deadline.load()) return false;
  const Nanos valid = valid_until(bid, now);
  return valid > now && valid >= timing::deadline_of(bid.doubted_at, bid.options.lease);
}

// With each renewal. Early at random, so that leases taken together do not ask together.
Nanos Quorum::next_top_up(const Bid &bid, Nanos now) {
  if (!bid.options.is_renewed) return kNever;  // its user extends it, which asks as well
  const Nanos lease = bid.options.lease;
  const auto most = static_cast<uint64_t>(lease / 12 + 1);
  return timing::renewal_of(now, lease) - static_cast<Nanos>(entropy_.next() % most);
}

// Ask for the missing votes of a certain lease: their nodes refused, did not answer, were
// unreachable, or have forgotten it. With each vote more, one more node may forget before another
// client can have a majority. This takes votes from rounds of other clients, which cannot win
// meanwhile.
void Quorum::top_up(Bid &bid, Nanos now) {
  bid.top_up_at = next_top_up(bid, now);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = bid.votes[i];
    const bool is_missing =
        vote.state != State::kYes && vote.state != State::kRaising && vote.state != State::kAsked;
    if (!is_missing) continue;
    Node &node = *nodes_[i];
    keep_connected(node, now);
    if (can_vote(node, now)) {
      ask_later(bid, i, now);
    } else if (!node.engine.is_up()) {
      vote.state = State::kDialing;
    }
  }
}

// The other votes must be a certain majority: else another client may have held the lock in
// between.
void Quorum::count_in(Bid &bid, size_t node, Nanos now) {
  Vote &vote = bid.votes[node];
  if (bid.phase == Bid::Phase::kHeld && !is_certain(bid, now)) {
    const std::string address = nodes_[node]->settings.address();
    return silence(bid, node, failure(Status::kLost, address + ": its vote came too late"), now);
  }
  vote.ballot.reset();
  vote.fence.reset();
  vote.why = {};
  vote.state = State::kYes;
}

// A forgotten vote is asked for again as soon as the other nodes have confirmed theirs, but with a
// pause.
void Quorum::lose_vote(Bid &bid, size_t node, Nanos now) {
  Vote &vote = bid.votes[node];
  const std::string &reason = vote.share->reason;
  const bool is_gone = vote.share->is_gone;
  silence(bid, node,
          failure(Status::kLost, nodes_[node]->settings.address() + ": " +
                                     (reason.empty() ? "its lease ended" : reason)),
          now);
  if (is_gone && vote.rid == bid.rid) vote.is_spent = false;
  if (bid.phase != Bid::Phase::kHeld) return;
  const Nanos soonest = std::max(now, vote.asked_at + bid.options.lease / 12);
  if (bid.options.is_renewed || is_gone) bid.top_up_at = std::min(bid.top_up_at, soonest);
  if (is_gone) doubt(bid, now);
}

// Ask the other nodes at once whether they still hold the lease. Without renewal the extension by
// the user asks them all.
void Quorum::doubt(Bid &bid, Nanos now) {
  bid.doubted_at = bid.options.is_renewed ? now : bid.extended_at;
  for (size_t i = 0; i < nodes_.size() && bid.options.is_renewed; i++) {
    if (bid.votes[i].state != State::kYes) continue;
    const auto ballot = std::make_shared<Ballot>(Request::Op::kExtend);
    ballot->lease = bid.votes[i].share;
    ballot->extend_to = bid.options.lease;
    nodes_[i]->engine.start(ballot, now);
  }
}

// ---- held, and its end -------------------------------------------------------------------------

void Quorum::look_after(Bid &bid, Nanos now) {
  Lease &lease = *bid.lease;
  // Whoever asked was told that it is lost: a vote that comes later does not bring it back.
  const bool was_valid = now < lease.deadline.load();
  const Nanos valid = std::min(valid_until(bid, now), lease.end_at);
  if (was_valid) lease.deadline.store(valid, std::memory_order_release);
  if (was_valid && valid > now) {
    // When the time has passed, the answers of the votes to be confirmed trigger the next step.
    const bool is_awaited = now >= bid.top_up_at || bid.count(State::kYes) == nodes_.size();
    return timers_.set(bid, is_awaited ? valid : std::min(valid, bid.top_up_at));
  }
  std::string reason = "the longest hold was over";
  if (now < lease.end_at) {
    reason = "only " + of_nodes(bid.count(State::kYes)) + " still have it";
    for (const Vote &vote : bid.votes) {
      if (!vote.why.message.empty()) reason += "; " + vote.why.message;
    }
  }
  end_lease(bid, Lease::kLost, std::move(reason));
  drop_votes(bid, now, true);
  forget(bid);
}

void Quorum::end_lease(Bid &bid, Lease::State state, std::string reason) noexcept {
  bid.lease->reason = std::move(reason);
  bid.lease->state.store(state, std::memory_order_release);
  output_.lease_ended(*bid.lease);
}

}  // namespace redlatch::quorum
