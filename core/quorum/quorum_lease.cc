// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: from enough votes to the end of the lease.
#include <algorithm>
#include <cassert>

#include "base/text.h"
#include "quorum/quorum_client.h"
#include "timing/lease_clock.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;
using Phase = QuorumAcquire::Phase;
using State = Vote::State;

// ---- yes ---------------------------------------------------------------------------------------

void QuorumClient::accept(QuorumAcquire &acquire, Nanos now) {
  const Nanos left = valid_until(acquire, now) - now;
  if (left <= settings_.min_validity) {
    if (!acquire.is_try) return pause(acquire, now);
    return fail(acquire, Status::kUnavailable,
                "lock " + quoted(acquire.name) + " was granted by " + of_nodes(majority_) +
                    ", too late: " + std::to_string(std::max<Nanos>(left, 0) / kMs) +
                    " ms of its ttl were left; it was released",
                now);
  }
  if (settings_.is_fenced) return raise_fence(acquire, now);
  grant(acquire, now);
}

// The highest fence of a majority is above all fences written to a majority before. It is written
// to a majority itself before the caller gets it.
void QuorumClient::raise_fence(QuorumAcquire &acquire, Nanos now) {
  assert(acquire.count(State::kYes) >= majority_ && acquire.phase != Phase::kHeld);
  acquire.phase = Phase::kFencing;
  acquire.fence = 0;
  acquire.fence_due = now + node_limit(acquire);
  for (const Vote &vote : acquire.votes) {
    if (vote.state != State::kYes) continue;
    acquire.fence = std::max(acquire.fence, vote.lease->fence.load());
  }
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (acquire.votes[i].state == State::kYes) write_fence(acquire, i, now);
  }
  check_fence(acquire, now);
}

// A node without this fence would give the next holder a lower one: its vote does not count.
void QuorumClient::write_fence(QuorumAcquire &acquire, size_t node, Nanos now) {
  Vote &vote = acquire.votes[node];
  assert(vote.lease != nullptr && vote.state != State::kRaising);
  const auto node_request = std::make_shared<NodeRequest>(Request::Op::kRaiseFence);
  node_request->operation = &acquire;
  node_request->lease = vote.lease;
  node_request->arguments->fence = acquire.fence;
  nodes_[node]->client.start(node_request, now);
  vote.fence = node_request;
  vote.state = State::kRaising;
}

void QuorumClient::check_fence(QuorumAcquire &acquire, Nanos now) {
  const size_t written = acquire.count(State::kYes);
  const size_t open = acquire.count(State::kRaising);
  if (written >= majority_) return grant(acquire, now);
  if (written + open >= majority_ && now < acquire.fence_due) {
    return timers_.set(acquire, std::min(acquire.fence_due, acquire.wait_until));
  }
  if (!acquire.is_try) return pause(acquire, now);
  fail(acquire, Status::kUnavailable,
       "lock " + quoted(acquire.name) + " was granted, but its fence was written to " +
           of_nodes(written) + " only; it was released",
       now);
}

void QuorumClient::grant(QuorumAcquire &acquire, Nanos now) {
  assert(acquire.request && acquire.lease && acquire.phase != Phase::kHeld);
  assert(acquire.count(State::kYes) >= majority_);
  const Nanos valid = valid_until(acquire, now);
  if (valid <= now + settings_.min_validity) return accept(acquire, now);
  const auto &options = acquire.request->options;
  const auto first = std::find_if(acquire.votes.begin(), acquire.votes.end(),
                                  [](const Vote &vote) { return vote.state == State::kYes; });
  Lease &lease = *acquire.lease;
  lease.token = first->lease->token;
  lease.fence = acquire.fence;
  lease.end_at = options.max_hold > 0 ? after(now, options.max_hold) : kNever;
  lease.deadline = std::min(valid, lease.end_at);
  lease.state.store(Lease::kHeld, std::memory_order_release);
  acquire.phase = Phase::kHeld;
  acquire.top_up_at = next_top_up(acquire, now);
  // Nodes that answer or connect later may add votes.
  if (acquire.queued_at != QuorumAcquire::kNotQueued) drop_vote(acquire, acquire.queued_at, now);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = acquire.votes[i];
    if (vote.state == State::kUnavailable && !nodes_[i]->client.is_up()) {
      vote.state = State::kConnecting;
    }
  }
  succeed(acquire);
  maintain(acquire, now);
}

void QuorumClient::succeed(QuorumAcquire &acquire) {
  const auto request = std::move(acquire.request);
  index_.erase(request.get());
  if (!acquire.lease) {
    acquire.request = request;
    forget(acquire);
  }
  finish(*request, Status::kOk);
}

// ---- held: votes that are missing --------------------------------------------------------------

// True if a majority holds the lease without the votes that are requested now, and has confirmed it
// since a node was found to have forgotten it: all nodes may have forgotten it, and a lock that was
// released by force must not be rebuilt node by node.
bool QuorumClient::is_certain(const QuorumAcquire &acquire, Nanos now) const {
  if (now >= acquire.lease->deadline.load()) return false;
  const Nanos valid = valid_until(acquire, now);
  return valid > now && valid >= timing::deadline_of(acquire.doubted_at, acquire.options.ttl);
}

// With each renewal, earlier by a random time: leases taken together do not ask together.
Nanos QuorumClient::next_top_up(const QuorumAcquire &acquire, Nanos now) {
  if (!acquire.options.is_renewed) return kNever;  // an extension by its user asks as well
  const Nanos lease = acquire.options.ttl;
  const auto most = static_cast<uint64_t>(lease / 12 + 1);
  return timing::renewal_of(now, lease) - static_cast<Nanos>(entropy_.next() % most);
}

// Ask for the missing votes of a certain lease: their nodes refused, did not answer, were
// unreachable, or have forgotten it. Each additional vote is one more node that may forget before
// another client can get a majority. Rounds of other clients lose votes by this, but cannot win
// meanwhile.
void QuorumClient::top_up(QuorumAcquire &acquire, Nanos now) {
  assert(acquire.phase == Phase::kHeld);
  acquire.top_up_at = next_top_up(acquire, now);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = acquire.votes[i];
    const bool is_missing =
        vote.state != State::kYes && vote.state != State::kRaising && vote.state != State::kAsked;
    if (!is_missing) continue;
    Node &node = *nodes_[i];
    keep_connected(node, now);
    if (can_vote(node, now)) {
      ask_later(acquire, i, now);
    } else if (!node.client.is_up()) {
      vote.state = State::kConnecting;
    }
  }
}

// A held lease must be certain by its other votes: else another client may have held the lock in
// between.
void QuorumClient::count_in(QuorumAcquire &acquire, size_t node, Nanos now) {
  Vote &vote = acquire.votes[node];
  assert(vote.lease != nullptr && vote.state != State::kYes);
  if (acquire.phase == Phase::kHeld && !is_certain(acquire, now)) {
    const std::string address = nodes_[node]->settings.address();
    return mark_unavailable(acquire, node,
                            failure(Status::kLost, address + ": its vote came too late"), now);
  }
  vote.request.reset();
  vote.fence.reset();
  vote.why = {};
  vote.state = State::kYes;
}

// A forgotten vote is requested again when the other nodes have confirmed theirs, after a pause.
void QuorumClient::lose_vote(QuorumAcquire &acquire, size_t node, Nanos now) {
  Vote &vote = acquire.votes[node];
  const std::string &reason = vote.lease->reason;
  const bool is_gone = vote.lease->is_gone;
  mark_unavailable(acquire, node,
                   failure(Status::kLost, nodes_[node]->settings.address() + ": " +
                                              (reason.empty() ? "the lease ended" : reason)),
                   now);
  if (is_gone && vote.rid == acquire.rid) vote.is_spent = false;
  if (acquire.phase != Phase::kHeld) return;
  const Nanos soonest = std::max(now, vote.asked_at + acquire.options.ttl / 12);
  if (acquire.options.is_renewed || is_gone) {
    acquire.top_up_at = std::min(acquire.top_up_at, soonest);
  }
  if (is_gone) doubt(acquire, now);
}

// Ask the other nodes at once whether they still hold the lease. Without renewal the extension by
// the user asks them all.
void QuorumClient::doubt(QuorumAcquire &acquire, Nanos now) {
  acquire.doubted_at = acquire.options.is_renewed ? now : acquire.extended_at;
  for (size_t i = 0; i < nodes_.size() && acquire.options.is_renewed; i++) {
    if (acquire.votes[i].state != State::kYes) continue;
    const auto node_request = std::make_shared<NodeRequest>(Request::Op::kExtend);
    node_request->lease = acquire.votes[i].lease;
    node_request->extend_to = acquire.options.ttl;
    nodes_[i]->client.start(node_request, now);
  }
}

// ---- held, and its end -------------------------------------------------------------------------

void QuorumClient::maintain(QuorumAcquire &acquire, Nanos now) {
  Lease &lease = *acquire.lease;
  // Its state was already reported as lost: a later vote does not restore it.
  const bool was_valid = now < lease.deadline.load();
  const Nanos valid = std::min(valid_until(acquire, now), lease.end_at);
  if (was_valid) lease.deadline.store(valid, std::memory_order_release);
  if (was_valid && valid > now) {
    // After that time the replies of the votes to be confirmed trigger the next step.
    const bool is_awaited = now >= acquire.top_up_at || acquire.count(State::kYes) == nodes_.size();
    return timers_.set(acquire, is_awaited ? valid : std::min(valid, acquire.top_up_at));
  }
  lock::Loss loss{lock::LossReason::kMaxHold, "max_hold was reached"};
  if (now < lease.end_at) {
    loss.reason = lock::LossReason::kNoMajority;
    loss.text = "only " + of_nodes(acquire.count(State::kYes)) + " still have it";
    for (const Vote &vote : acquire.votes) {
      if (!vote.why.message.empty()) loss.text += "; " + vote.why.message;
    }
  }
  end_lease(acquire, Lease::kLost, std::move(loss));
  drop_votes(acquire, now, true);
  forget(acquire);
}

void QuorumClient::end_lease(QuorumAcquire &acquire, Lease::State state, lock::Loss loss) noexcept {
  acquire.lease->reason = std::move(loss.text);
  acquire.lease->loss = loss.reason;
  acquire.lease->state.store(state, std::memory_order_release);
  output_.lease_ended(*acquire.lease);
}

}  // namespace redlatch::quorum
