// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Quorum, part 4 of 5: from enough votes to the end of the lease.
#include <algorithm>

#include "base/text.h"
#include "quorum/quorum.h"

namespace redlatch::quorum {

using engine::Lease;
using engine::Request;
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
    Vote &vote = bid.votes[i];
    if (vote.state != State::kYes) continue;
    vote.fence = std::make_shared<Ballot>(Request::Op::kRaiseFence);
    vote.fence->matter = &bid;
    vote.fence->lease = vote.share;
    vote.fence->inquiry->fence = bid.fence;
    nodes_[i]->engine.start(vote.fence, now);
  }
  check_fence(bid, now);
}

void Quorum::check_fence(Bid &bid, Nanos now) {
  size_t written = 0;
  size_t open = 0;
  for (const Vote &vote : bid.votes) {
    if (!vote.fence || vote.state != State::kYes) continue;
    if (!vote.fence->is_finished()) open++;
    if (vote.fence->status.load() == Status::kOk) written++;
  }
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

// ---- held, and its end -------------------------------------------------------------------------

void Quorum::look_after(Bid &bid, Nanos now) {
  Lease &lease = *bid.lease;
  // Whoever asked was told that it is lost: a vote that comes later does not bring it back.
  const bool was_valid = now < lease.deadline.load();
  const Nanos valid = std::min(valid_until(bid, now), lease.end_at);
  if (was_valid) lease.deadline.store(valid, std::memory_order_release);
  if (was_valid && valid > now) return timers_.set(bid, valid);
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
  outlet_.lease_ended(*bid.lease);
}

}  // namespace redlatch::quorum
