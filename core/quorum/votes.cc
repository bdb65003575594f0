// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/votes.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "timing/quorum.h"

namespace redlatch::quorum {

using lock::Request;
using State = Vote::State;

void Vote::reset() noexcept {
  if (request) request->owner = nullptr;
  if (lease) lease->owner = nullptr;
  if (fence) fence->owner = nullptr;
  request.reset();
  lease.reset();
  fence.reset();
  state = State::kNone;
  due = kNever;
}

Votes::Votes(Nodes &nodes, QuorumRequest &owner, const Request &request)
    : nodes_(nodes),
      owner_(owner),
      name_(request.name),
      options_(request.options),
      votes_(nodes.size()) {
  options_.max_local_handoffs = 0;
  // A label is written with the time of the grant, which ACQUIRE returns.
  options_.is_unfenced = !nodes.settings().is_fenced && options_.label.empty();
  options_.yield_every = 0;
  options_.max_hold = 0;  // counted by QuorumLease, from the grant on
}

Votes::~Votes() {
  for (Vote &vote : votes_) vote.reset();
}

size_t Votes::count(State state) const {
  return static_cast<size_t>(std::count_if(votes_.begin(), votes_.end(),
                                           [&](const Vote &vote) { return vote.state == state; }));
}

Nanos Votes::valid_until(Nanos now) const {
  std::array<Nanos, kMaxNodes> deadlines{};
  size_t count = 0;
  for (const Vote &vote : votes_) {
    if (vote.state != State::kYes || vote.lease->state_at(now) != lock::Lease::kHeld) continue;
    assert(count < deadlines.size());
    deadlines[count++] = vote.lease->deadline.load();
  }
  return timing::valid_until({deadlines.data(), count}, nodes_.majority());
}

// ---- asking ------------------------------------------------------------------------------------

void Votes::ask_all(Nanos now) {
  for (size_t i = 0; i < votes_.size(); i++) {
    Vote &vote = votes_[i];
    vote.is_spent = false;
    if (i == queued_at_ || vote.state == State::kYes) continue;
    drop(i, now);
    vote.state = State::kNone;
    const auto &client = nodes_[i].client;
    if (nodes_.can_vote(i, now)) {
      ask(i, rid_, now);
    } else if (!client.first_server().session.is_up() && client.first_server().is_connecting(now)) {
      vote.state = State::kConnecting;
      vote.due = now + node_limit();
    } else {
      mark_unavailable(i, nodes_.why_no_vote(i, now), now);
    }
  }
}

// Ask a node that was not asked in the round, or whose vote was lost. The token is that of the
// round, unless a RELEASE of it may still arrive: no earlier message can release a new token.
void Votes::ask_later(size_t node, Nanos now) {
  const uint64_t next = nodes_.next_rid();  // always: the nodes' clients number by it
  ask(node, votes_[node].is_spent ? next : rid_, now);
}

// `rid`: of a token that no RELEASE was sent for to `node`. `wait_ms`: in the queue of the node.
void Votes::ask(size_t node, uint64_t rid, Nanos now, int64_t wait_ms) {
  const auto request = std::make_shared<NodeRequest>(Request::Op::kAcquire);
  const auto lease = std::make_shared<NodeLease>();
  request->owner = &owner_;
  request->name = name_;
  request->options = options_;
  // A lease that was handed off must be certain for its whole ttl, not only while provisional.
  request->options.is_confirmed = wait_ms != 0;
  request->lease = lease;
  request->rid = rid;
  request->wait_ms = wait_ms;
  nodes_[node].client.start(request, now);
  Vote &vote = votes_[node];
  vote.request = request;
  vote.lease = lease;
  vote.due = wait_ms != 0 ? kNever : now + node_limit();
  vote.rid = rid;
  vote.asked_at = now;
  vote.is_spent = vote.is_spent || rid == rid_;
  vote.state = State::kAsked;
}

void Votes::queue_at(size_t node, int64_t wait_ms, Nanos now) {
  queued_at_ = node;
  was_queue_lost_ = false;
  ask(node, nodes_.next_rid(), now, wait_ms);
}

void Votes::leave_queue(Nanos now) noexcept {
  if (queued_at_ != kNotQueued) drop(queued_at_, now);
}

void Votes::ask_missing(Nanos now) {
  for (size_t i = 0; i < votes_.size(); i++) {
    Vote &vote = votes_[i];
    const bool is_missing = !vote.is_granted() && vote.state != State::kAsked;
    if (!is_missing) continue;
    nodes_.keep_connected(i, now);
    if (nodes_.can_vote(i, now)) {
      ask_later(i, now);
    } else if (!nodes_[i].client.first_server().session.is_up()) {
      vote.state = State::kConnecting;
    }
  }
}

// ---- answers -----------------------------------------------------------------------------------

void Votes::take_answers(Nanos now) {
  const bool is_held = holder_ != nullptr;
  for (size_t i = 0; i < votes_.size(); i++) {
    Vote &vote = votes_[i];
    const Node &node = nodes_[i];
    if (vote.is_granted() && vote.lease->state_at(now) != lock::Lease::kHeld) {
      lose(i, now);
      continue;
    }
    if (vote.state == State::kConnecting) {
      if (nodes_.can_vote(i, now)) {
        ask_later(i, now);
      } else if (node.client.first_server().session.is_up() ||
                 (!is_held && !node.client.first_server().is_connecting(now))) {
        mark_unavailable(i, nodes_.why_no_vote(i, now), now);
      }
    }
    if (vote.state == State::kAsked && vote.request->is_finished()) take_answer(i, now);
    if (vote.state == State::kRaising && vote.fence->is_finished()) {
      const Outcome outcome{vote.fence->status.load(), vote.fence->message};
      outcome.ok() ? count_in(i, now) : mark_unavailable(i, outcome, now);
    }
    const bool is_late = !is_held && vote.is_open() && now >= vote.due;
    if (!is_late) continue;
    mark_unavailable(
        i,
        failure(Status::kUnavailable, words::no_answer_within(node.settings, node_limit() / kMs)),
        now);
  }
}

void Votes::take_answer(size_t node, Nanos now) {
  Vote &vote = votes_[node];
  const Outcome outcome{vote.request->status.load(), vote.request->message};
  const bool is_taken = outcome.status == Status::kBusy || outcome.status == Status::kTimeout;
  const bool is_wrong_type = outcome.status == Status::kWrongType;
  const bool is_answer = outcome.ok() || is_taken || is_wrong_type;
  nodes_[node].trouble = is_answer ? std::string() : outcome.message;
  const bool was_queued = queued_at_ == node;
  if (was_queued) {
    queued_at_ = kNotQueued;
    was_queue_lost_ = !outcome.ok();
  }
  if (outcome.ok() && nodes_.can_vote(node, now)) {
    was_queue_granted_ = was_queue_granted_ || was_queued;
    vote.lease->owner = &owner_;
    fence_ ? write_fence(node, now) : count_in(node, now);
  } else if (outcome.ok()) {
    mark_unavailable(node, nodes_.why_no_vote(node, now), now);
  } else if (is_taken) {
    // Read now: the node's client forgets the lock when all of it is released.
    vote.blocker = nodes_[node].client.locks().blocker_of(name_);
    if (was_queued && !vote.blocker.empty()) blocker_ = vote.blocker;
    vote.reset();
    vote.state = State::kNo;
    vote.why = outcome;
  } else if (is_wrong_type) {
    const std::string why = words::of_node(nodes_[node].settings, outcome.message);
    mark_unavailable(node, failure(outcome.status, why), now);
  } else {
    mark_unavailable(node, outcome, now);
  }
}

// A held lease must be certain by its other votes: else another client may have held the lock in
// between.
void Votes::count_in(size_t node, Nanos now) {
  Vote &vote = votes_[node];
  assert(vote.lease != nullptr && vote.state != State::kYes);
  if (holder_ != nullptr && !holder_->is_certain(now)) {
    const std::string why = words::of_node(nodes_[node].settings, words::kVoteTooLate);
    return mark_unavailable(node, failure(Status::kLost, why), now);
  }
  vote.request.reset();
  vote.fence.reset();
  vote.why = {};
  vote.state = State::kYes;
}

void Votes::lose(size_t node, Nanos now) {
  Vote &vote = votes_[node];
  std::string_view reason = vote.lease->reason;
  if (reason.empty()) reason = lock::words::loss(lock::LossReason::kExpired);
  const bool is_gone = vote.lease->is_gone;
  const std::string why = words::of_node(nodes_[node].settings, reason);
  mark_unavailable(node, failure(Status::kLost, why), now);
  if (is_gone && vote.rid == rid_) vote.is_spent = false;
  if (holder_ != nullptr) holder_->on_vote_lost(vote, is_gone, now);
}

// ---- the fence ---------------------------------------------------------------------------------

void Votes::choose_fence() {
  fence_ = 0;
  for (const Vote &vote : votes_) {
    if (vote.state != State::kYes) continue;
    fence_ = std::max(*fence_, vote.lease->fence.load());
  }
}

void Votes::write_fences(Nanos now) {
  for (size_t i = 0; i < votes_.size(); i++) {
    if (votes_[i].state == State::kYes) write_fence(i, now);
  }
}

// A node without this fence would give the next holder a lower one: its vote does not count.
void Votes::write_fence(size_t node, Nanos now) {
  Vote &vote = votes_[node];
  assert(vote.lease != nullptr && vote.state != State::kRaising);
  const auto request = std::make_shared<NodeRequest>(Request::Op::kRaiseFence);
  request->owner = &owner_;
  request->lease = vote.lease;
  request->arguments->fence = *fence_;
  nodes_[node].client.start(request, now);
  vote.fence = request;
  vote.state = State::kRaising;
}

// ---- a lease that is held ----------------------------------------------------------------------

// Nodes that answer or connect later may add votes.
void Votes::set_holder(Holder &holder, Nanos now) {
  holder_ = &holder;
  leave_queue(now);
  for (size_t i = 0; i < votes_.size(); i++) {
    const bool is_away = !nodes_[i].client.first_server().session.is_up();
    if (votes_[i].state == State::kUnavailable && is_away) votes_[i].state = State::kConnecting;
  }
}

void Votes::confirm(Nanos now) {
  for (size_t i = 0; i < votes_.size(); i++) {
    if (votes_[i].state != State::kYes) continue;
    const auto request = std::make_shared<NodeRequest>(Request::Op::kExtend);
    request->lease = votes_[i].lease;
    request->extend_to = options_.ttl;
    nodes_[i].client.start(request, now);
  }
}

void Votes::leave(Nanos now) {
  for (size_t i = 0; i < votes_.size(); i++) {
    if (votes_[i].state == State::kYes) nodes_[i].client.leases().drop(*votes_[i].lease, now);
  }
}

// ---- giving back -------------------------------------------------------------------------------

void Votes::drop(size_t node, Nanos now, bool is_lost) noexcept {
  Vote &vote = votes_[node];
  if (queued_at_ == node) queued_at_ = kNotQueued;
  if (vote.state == State::kNo || vote.state == State::kUnavailable) return;  // `why` stays
  const auto request = vote.request;
  const auto lease = vote.lease;
  vote.reset();
  lock::LockClient &client = nodes_[node].client;
  if (request && !request->is_finished()) client.cancel(*request, now);
  if (!lease) return;
  if (is_lost) {
    client.leases().release_after_notice(*lease, now);
  } else {
    client.release_async(*lease, now);
  }
}

void Votes::drop_all(Nanos now, bool is_lost) noexcept {
  fence_.reset();
  for (size_t i = 0; i < votes_.size(); i++) drop(i, now, is_lost);
}

void Votes::mark_unavailable(size_t node, Outcome why, Nanos now) {
  drop(node, now);
  votes_[node].state = State::kUnavailable;
  votes_[node].why = std::move(why);
}

// ---- for messages ------------------------------------------------------------------------------

// The client that holds the lock at most of the nodes that refused in this round: another client
// may have a vote for a moment. While queued, only the node of the queue knows the holder.
void Votes::note_blocker(bool is_queued) {
  if (is_queued) {
    if (queued_at_ == kNotQueued) return;
    const auto blocker = nodes_[queued_at_].client.locks().blocker_of(name_);
    if (!blocker.empty()) blocker_ = blocker;
    return;
  }
  int64_t most = 0;
  for (const Vote &vote : votes_) {
    if (vote.state != State::kNo || vote.blocker.empty()) continue;
    const auto votes = std::count_if(votes_.begin(), votes_.end(), [&](const Vote &other) {
      return other.state == State::kNo && other.blocker == vote.blocker;
    });
    if (votes > most) blocker_ = vote.blocker;
    most = std::max<int64_t>(most, votes);
  }
}

Outcome Votes::wrong_type() const {
  size_t count = 0;
  std::string whys;
  for (const Vote &vote : votes_) {
    if (vote.state != State::kUnavailable || vote.why.status != Status::kWrongType) continue;
    count++;
    words::add_reason(whys, vote.why.message);
  }
  if (count + nodes_.majority() <= nodes_.size()) return {};
  return failure(Status::kWrongType, words::wrong_type(name_, nodes_.counted(count), whys));
}

}  // namespace redlatch::quorum
