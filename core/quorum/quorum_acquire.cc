// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/quorum_acquire.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/limits.h"
#include "protocol/token.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;
using State = Vote::State;

namespace {

// How long votes are kept while queued: clients that see the nodes in different orders could wait
// for each other.
constexpr Nanos kLongestKeep = 1000 * kMs;
// How often a queued acquire makes sure that the node still answers.
constexpr Nanos kQueueCheck = 500 * kMs;

}  // namespace

QuorumAcquire::QuorumAcquire(Nodes &nodes, Requests &requests,
                             const std::shared_ptr<Request> &request, Nanos now)
    : QuorumRequest(nodes, requests, request, request->lease),
      votes_(nodes, *this, *request),
      is_try_(request->wait_ms == 0),
      wait_until_(request->wait_ms > 0 ? after(now, request->wait_ms * kMs) : kNever) {
  if (!lease_) return;
  lease_->name = request->name;
  lease_->token.reserve(protocol::kTokenSize);
}

// A lease of a user outlives its client.
QuorumAcquire::~QuorumAcquire() {
  if (held_ && lease_->state.load() == Lease::kHeld)
    end_lease(Lease::kLost, lock::LossReason::kClosed);
}

QuorumAcquire *QuorumAcquire::holder_of(const Lease &lease, const compound::Table &requests) {
  auto *acquire = static_cast<QuorumAcquire *>(requests.find(&lease));
  return acquire != nullptr && acquire->held_ ? acquire : nullptr;
}

void QuorumAcquire::start(Nanos now) {
  nodes_.keep_all_connected(now);
  wake_at(wait_until_);
  mark();
}

void QuorumAcquire::review(Nanos now) {
  take_answers(now);
  if (held_) {
    held_->top_up(now);
    return maintain(now);
  }
  if (const Outcome wrong = nodes_.eligibility().fatal_fault(); !wrong.ok()) {
    return fail(wrong.status, wrong.message, now);
  }
  if (now >= wait_until_) return fail_late(now);
  switch (phase_) {
    case Phase::kGathering:
      return gather(now);
    case Phase::kRound:
      return count_votes(now);
    case Phase::kQueued:
      return check_queue(now);
    case Phase::kPausing:
      return now >= pause_until_ ? begin_round(now) : wake_by(pause_until_);
    case Phase::kFencing:
      return check_fence(now);
  }
}

// A call fails, and its votes are released. A held lease is reviewed again soon.
void QuorumAcquire::on_no_memory(Nanos now) noexcept {
  if (request_) return fail(Status::kNoMemory, {}, now);
  wake_at(now + lock::kNoMemoryRetry);
}

bool QuorumAcquire::awaits(size_t node) const noexcept {
  return request_ || votes_[node].state == State::kConnecting;
}

// After a restart other clients do not ask the node before the guard has passed, and by then every
// lease that counted its vote has ended.
void QuorumAcquire::withdraw_vote(size_t node, const Outcome &why, Nanos now) {
  const bool has_word = votes_[node].is_granted() || votes_[node].state == State::kAsked ||
                        votes_[node].state == State::kNo;
  if (!has_word) return;
  votes_.mark_unavailable(node, why, now);
  mark();
}

// ---- a round -----------------------------------------------------------------------------------

// The first acquire waits until every node has been tried, so that an unsuitable server is
// reported; for a node that does not answer no longer than for a vote.
void QuorumAcquire::gather(Nanos now) {
  bool were_tried = true;
  for (const Node &node : nodes_) {
    const bool is_new = !nodes_.eligibility().was_tried(node.index);
    if (is_new && !node.client.first_server().session.is_up())
      nodes_.keep_connected(node.index, now);
    were_tried = were_tried && nodes_.eligibility().was_tried(node.index);
  }
  const bool are_enough = nodes_.are_enough(now);
  if (are_enough && gather_until_ == kNever) gather_until_ = now + votes_.node_limit();
  if (!were_tried && now < gather_until_) return wake_by(gather_until_);
  if (lease_) return begin_round(now);
  if (are_enough) return end(Status::kOk);
  is_try_ ? fail_late(now) : pause(now);
}

void QuorumAcquire::begin_round(Nanos now) {
  if (!lease_) {
    phase_ = Phase::kGathering;
    nodes_.keep_all_connected(now);
    return gather(now);
  }
  assert(!held_ && phase_ != Phase::kFencing);
  phase_ = Phase::kRound;
  votes_.number_round();
  nodes_.connect_majority(now);
  votes_.ask_all(now);
  take_answers(now);
  count_votes(now);
}

void QuorumAcquire::take_answers(Nanos now) {
  votes_.take_answers(now);
  if (votes_.take_queue_grant()) retry_.reset();
}

void QuorumAcquire::count_votes(Nanos now) {
  const size_t yes = votes_.count(State::kYes);
  if (yes >= nodes_.majority()) return accept(now);
  size_t open = 0;
  Nanos until = wait_until_;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (i == votes_.queued_at() || !votes_[i].is_open()) continue;
    open++;
    until = std::min(until, votes_[i].due);
  }
  if (yes + open < nodes_.majority()) return end_round(now);
  wake_at(until);
}

// ---- a round without a majority ----------------------------------------------------------------

void QuorumAcquire::end_round(Nanos now) {
  if (const Outcome wrong = votes_.wrong_type(); !wrong.ok()) {
    return fail(wrong.status, wrong.message, now);
  }
  if (is_try_) return fail_late(now);
  note_blocker();
  const auto order = nodes_.eligibility().order_of(votes_.name());
  // A node that refused may have disconnected since, or have a guard. A lease there would not count
  // as a vote, but would block other clients.
  const auto first = std::find_if(order.begin(), order.end(), [&](size_t node) {
    return node == votes_.queued_at() ||
           (votes_[node].state == State::kNo && nodes_.can_vote(node, now));
  });
  const size_t answered = votes_.count(State::kYes) + votes_.count(State::kNo) +
                          (votes_.queued_at() != Votes::kNotQueued ? 1 : 0);
  if (first == order.end() || answered < nodes_.majority()) return pause(now);
  queue_at(order, static_cast<size_t>(first - order.begin()), now);
}

void QuorumAcquire::pause(Nanos now) {
  assert(!is_try_ && !held_);
  votes_.drop_all(now);
  phase_ = Phase::kPausing;
  pause_until_ = now + retry_.next(nodes_.random());
  wake_by(pause_until_);
}

void QuorumAcquire::queue_at(const std::vector<size_t> &order, size_t place, Nanos now) {
  assert(lease_ && !is_try_ && !held_);
  const size_t node = order[place];
  const bool is_new = node != votes_.queued_at();
  if (is_new) {
    votes_.leave_queue(now);
    keep_until_ = now + kLongestKeep;
  }
  const bool may_keep = votes_.options().is_renewed && now < keep_until_;
  for (size_t i = 0; i < order.size(); i++) {
    const bool is_kept = votes_[order[i]].state == State::kYes && may_keep && i < place;
    if (!is_kept && i != place) votes_.drop(order[i], now);
  }
  phase_ = Phase::kQueued;
  if (is_new) {
    // Rounded up: the place in the queue must not end before the wait.
    const bool is_limited = wait_until_ != kNever;
    votes_.queue_at(node, is_limited ? (wait_until_ - now + kMs - 1) / kMs : -1, now);
    if (votes_[node].request->is_finished()) return mark();
  }
  check_at_ = now + retry_.next(nodes_.random());
  wake_by(check_at_);
}

void QuorumAcquire::check_queue(Nanos now) {
  if (votes_.queued_at() == Votes::kNotQueued) {  // granted, or refused
    return votes_.take_queue_loss() ? pause(now) : begin_round(now);
  }
  if (now < check_at_) return wake_by(check_at_);
  Node &node = nodes_[votes_.queued_at()];
  Request &request = *votes_[node.index].request;
  const bool is_gone = !nodes_.can_vote(node.index, now) ||
                       node.client.first_server().session.late_at(votes_.node_limit()) <= now;
  if (is_gone) {
    votes_.leave_queue(now);
    return begin_round(now);
  }
  if (request.is_head()) return begin_round(now);
  check_at_ = now + kQueueCheck;
  if (now - node.last_reply_at >= kQueueCheck) {
    node.client.poll(request, now);
    check_at_ = now + votes_.node_limit();
  }
  if (now >= keep_until_) {
    for (size_t i = 0; i < nodes_.size(); i++) {
      if (i != node.index) votes_.drop(i, now);
    }
  }
  wake_by(check_at_);
}

// ---- a round with a majority -------------------------------------------------------------------

void QuorumAcquire::accept(Nanos now) {
  const Nanos left = votes_.valid_until(now) - now;
  if (left <= nodes_.settings().min_validity) {
    if (!is_try_) return pause(now);
    return fail(Status::kUnavailable,
                words::granted_too_late(votes_.name(), nodes_.counted(nodes_.majority()),
                                        std::max<Nanos>(left, 0) / kMs),
                now);
  }
  if (nodes_.settings().is_fenced) return raise_fence(now);
  grant(now);
}

// The fence is written to a majority before the caller gets the lease.
void QuorumAcquire::raise_fence(Nanos now) {
  assert(votes_.are_enough() && !held_);
  phase_ = Phase::kFencing;
  fence_due_ = now + votes_.node_limit();
  votes_.choose_fence();
  votes_.write_fences(now);
  check_fence(now);
}

void QuorumAcquire::check_fence(Nanos now) {
  const size_t written = votes_.count(State::kYes);
  const size_t open = votes_.count(State::kRaising);
  if (written >= nodes_.majority()) return grant(now);
  if (written + open >= nodes_.majority() && now < fence_due_) return wake_by(fence_due_);
  if (!is_try_) return pause(now);
  fail(Status::kUnavailable, words::fence_unwritten(votes_.name(), nodes_.counted(written)), now);
}

void QuorumAcquire::grant(Nanos now) {
  assert(request_ && lease_ && !held_ && votes_.are_enough());
  const Nanos valid = votes_.valid_until(now);
  if (valid <= now + nodes_.settings().min_validity) return accept(now);
  held_.emplace(nodes_, votes_, *lease_, request_->options.max_hold, valid, now);
  answer(Status::kOk);
  maintain(now);
}

// ---- held, and its end -------------------------------------------------------------------------

void QuorumAcquire::maintain(Nanos now) {
  const Nanos next = held_->maintain(now);
  if (next > now) return wake_at(next);
  end_lease(Lease::kLost, held_->why_lost(now));
  give_back(now, true);
}

void QuorumAcquire::extend(Nanos ttl, Nanos now) {
  held_->extend(ttl, now);
  mark();
}

// No other client can attach such a lease, so the nodes need not be asked.
void QuorumAcquire::detach(Nanos now) {
  votes_.leave(now);
  end_lease(Lease::kDetached);
  give_back(now);
}

void QuorumAcquire::give_back(Nanos now, bool is_lost) noexcept {
  votes_.drop_all(now, is_lost);
  forget();
}

void QuorumAcquire::shut_down(Nanos now) noexcept {
  if (request_) return fail(Status::kClosed, words::kShutDown, now);
  end_lease(Lease::kReleased);
  give_back(now);
}

// ---- failure -----------------------------------------------------------------------------------

void QuorumAcquire::fail(Status status, std::string_view message, Nanos now) noexcept {
  votes_.drop_all(now);
  end(status, message);
}

void QuorumAcquire::fail_late(Nanos now) {
  note_blocker();
  const Outcome why = why_not(now);
  fail(why.status, why.message, now);
}

void QuorumAcquire::note_blocker() {
  const bool is_queued = phase_ == Phase::kQueued;
  if (is_queued || phase_ == Phase::kRound) votes_.note_blocker(is_queued);
}

bool QuorumAcquire::waits_for_itself() const {
  if (!request_ || request_->wait_ms == 0 || request_->waiter.number == 0) return false;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node &node) {
    const auto *lease = static_cast<const NodeLease *>(node.client.locks().lease_on(votes_.name()));
    const auto *holder =
        lease != nullptr ? static_cast<const QuorumAcquire *>(lease->owner) : nullptr;
    return holder != nullptr && holder->held_ && holder->lease_->starter == request_->waiter.number;
  });
}

// Any node may know its name.
operate::Holder QuorumAcquire::holder() const {
  if (waits_for_itself()) return {operate::Holder::Kind::kThread};
  if (votes_.blocker().empty()) return {};
  for (const Node &node : nodes_) {
    const auto holder = node.client.first_server().names.holder(votes_.blocker());
    if (!lock::words::name_of(holder).empty()) return holder;
  }
  return {};
}

Outcome QuorumAcquire::why_not(Nanos now) const {
  size_t able = 0;
  const Vote *busy = nullptr;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (votes_[i].state == State::kNo) busy = &votes_[i];
    if (votes_[i].state != State::kUnavailable && nodes_.can_vote(i, now)) able++;
  }
  const NodeCount majority = nodes_.counted(nodes_.majority());
  if (lease_ && able >= nodes_.majority()) {
    if (!is_try_) {
      return failure(Status::kTimeout,
                     words::not_granted(votes_.name(), majority, request_->wait_ms, holder()));
    }
    return failure(Status::kBusy,
                   words::busy(votes_.name(), nodes_.counted(votes_.count(State::kYes)),
                               majority.count, busy != nullptr ? busy->why.message : ""));
  }
  Status status = Status::kOk;
  std::string whys;
  for (size_t i = 0; i < nodes_.size(); i++) {
    const Vote &vote = votes_[i];
    const bool is_unavailable = vote.state == State::kUnavailable;
    const Outcome why = is_unavailable ? vote.why : nodes_.why_no_vote(i, now);
    if (why.ok()) continue;
    const bool is_known = status == Status::kOk || status == why.status;
    status = is_known ? why.status : Status::kUnavailable;
    words::add_reason(whys, why.message);
  }
  constexpr std::array kReported = {Status::kDenied, Status::kUnsupported, Status::kServer,
                                    Status::kInvalid, Status::kNoMemory};
  if (std::find(kReported.begin(), kReported.end(), status) == kReported.end()) {
    status = Status::kUnavailable;
  }
  const std::string_view lock = lease_ ? std::string_view(votes_.name()) : std::string_view();
  return failure(status, words::too_few_may_vote(lock, majority, whys));
}

}  // namespace redlatch::quorum
