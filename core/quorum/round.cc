// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: from a call to enough votes.
//
// Where to wait: all clients go through the nodes of a lock in one order. A refused client queues
// at the first node that refused it, and keeps only the votes of nodes before that one. So when
// clients split the votes, the one that got furthest continues, the others queue behind it, and no
// circle of waiters can form (resource ordering, Havender 1968). The place in the queue is a hint:
// its head repeats the round from time to time, because that node may not hear of a release.
#include <algorithm>
#include <array>
#include <cassert>
#include <new>
#include <utility>

#include "base/text.h"
#include "quorum/quorum_client.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;
using Phase = QuorumAcquire::Phase;
using State = Vote::State;

namespace {

// How long votes are kept while queued: clients that see the nodes in different orders could wait
// for each other.
constexpr Nanos kLongestKeep = 1000 * kMs;
// How often a queued acquire makes sure that the node still answers.
constexpr Nanos kQueueCheck = 500 * kMs;

bool is_open(const Vote &vote) {
  return vote.state == State::kAsked || vote.state == State::kConnecting;
}

}  // namespace

// ---- the call ----------------------------------------------------------------------------------

Outcome QuorumClient::check(const Request &request) const {
  const Nanos lease = request.op == Request::Op::kExtend ? request.extend_to : request.options.ttl;
  const std::string got = " (got " + std::to_string(lease / kMs) + " ms)";
  if (eligibility_.is_guarded() && lease > settings_.restart_guard) {
    return failure(Status::kInvalid, "ttl must be at most " +
                                         std::to_string(settings_.restart_guard / kMs) +
                                         " ms, the restart_guard" + got);
  }
  if (settings_.min_validity >= lease) {
    return failure(Status::kInvalid, "ttl must be above " +
                                         std::to_string(settings_.min_validity / kMs) +
                                         " ms, the min_validity" + got);
  }
  return {};
}

void QuorumClient::start_acquire(const std::shared_ptr<Request> &request, Nanos now) {
  const bool is_acquire = request->op == Request::Op::kAcquire;
  if (is_acquire) {
    if (const auto wrong = check(*request); !wrong.ok()) {
      return finish(*request, wrong.status, wrong.message);
    }
  }
  timers_.admit();
  std::shared_ptr<QuorumAcquire> acquire;
  try {
    acquire = std::make_shared<QuorumAcquire>(++last_operation_, request, nodes_.size());
    acquire->options = request->options;
    acquire->options.max_local_handoffs = 0;
    // A label is written with the time of the grant, which ACQUIRE returns.
    acquire->options.is_unfenced = !settings_.is_fenced && acquire->options.label.empty();
    acquire->options.yield_every = 0;
    acquire->options.max_hold = 0;  // counted here, from the grant on
    acquire->is_try = request->wait_ms == 0;
    if (request->wait_ms > 0) acquire->wait_until = after(now, request->wait_ms * kMs);
    if (is_acquire) {
      acquire->lease = request->lease;
      acquire->name = request->name;
      acquire->lease->name = request->name;
      acquire->lease->token.reserve(protocol::kTokenSize);
      index_.emplace(acquire->lease.get(), acquire.get());
    }
    keep(acquire, request.get());
  } catch (...) {
    if (acquire && acquire->lease) index_.erase(acquire->lease.get());
    timers_.dismiss();
    throw;
  }
  for (const auto &node : nodes_) keep_connected(*node, now);
  timers_.set(*acquire, acquire->wait_until);
  mark(acquire.get());
}

void QuorumClient::review(QuorumAcquire &acquire, Nanos now) {
  take_answers(acquire, now);
  if (acquire.phase == Phase::kHeld) {
    if (now >= acquire.top_up_at && is_certain(acquire, now)) top_up(acquire, now);
    return maintain(acquire, now);
  }
  if (const Outcome wrong = eligibility_.fatal_fault(); !wrong.ok()) {
    return fail(acquire, wrong.status, wrong.message, now);
  }
  if (now >= acquire.wait_until) return fail_late(acquire, now);
  switch (acquire.phase) {
    case Phase::kGathering:
      return gather(acquire, now);
    case Phase::kRound:
      return count_votes(acquire, now);
    case Phase::kQueued:
      return check_queue(acquire, now);
    case Phase::kPausing:
      if (now >= acquire.pause_until) return begin_round(acquire, now);
      return timers_.set(acquire, std::min(acquire.pause_until, acquire.wait_until));
    case Phase::kFencing:
      return check_fence(acquire, now);
    case Phase::kHeld:
      return;
  }
}

// The first acquire waits until every node has been tried, so that an unsuitable server is
// reported; for a node that does not answer no longer than for a vote.
void QuorumClient::gather(QuorumAcquire &acquire, Nanos now) {
  for (const auto &node : nodes_) {
    if (!eligibility_.was_tried(node->index) && !node->client.is_up()) keep_connected(*node, now);
  }
  const bool were_tried = std::all_of(nodes_.begin(), nodes_.end(), [this](const auto &node) {
    return eligibility_.was_tried(node->index);
  });
  const bool is_enough = voter_count(now) >= majority_;
  if (is_enough && acquire.gather_until == kNever) acquire.gather_until = now + node_limit(acquire);
  if (were_tried || now >= acquire.gather_until) {
    if (acquire.lease) return begin_round(acquire, now);
    if (is_enough) return succeed(acquire);
    return acquire.is_try ? fail_late(acquire, now) : pause(acquire, now);
  }
  timers_.set(acquire, std::min(acquire.gather_until, acquire.wait_until));
}

// ---- a round -----------------------------------------------------------------------------------

// Higher than every number of a node's client, which takes some of its own for a new channel.
uint64_t QuorumClient::next_rid() {
  for (const auto &node : nodes_) last_rid_ = std::max(last_rid_, node->client.last_number());
  return ++last_rid_;
}

void QuorumClient::begin_round(QuorumAcquire &acquire, Nanos now) {
  if (!acquire.lease) {
    acquire.phase = Phase::kGathering;
    for (const auto &node : nodes_) keep_connected(*node, now);
    return gather(acquire, now);
  }
  assert(acquire.phase != Phase::kHeld && acquire.phase != Phase::kFencing);
  acquire.phase = Phase::kRound;
  acquire.rid = next_rid();
  const auto is_there = [&](const auto &node) {
    return node->client.is_up() || node->client.is_connecting(now);
  };
  for (const auto &node : nodes_) keep_connected(*node, now);
  const auto there = std::count_if(nodes_.begin(), nodes_.end(), is_there);
  if (static_cast<size_t>(there) < majority_) connect_now(now);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = acquire.votes[i];
    vote.is_spent = false;
    if (i == acquire.queued_at || vote.state == State::kYes) continue;
    drop_vote(acquire, i, now);
    vote.state = State::kNone;
    const Node &node = *nodes_[i];
    if (can_vote(node, now)) {
      ask(acquire, i, acquire.rid, now);
    } else if (!node.client.is_up() && node.client.is_connecting(now)) {
      vote.state = State::kConnecting;
      vote.due = now + node_limit(acquire);
    } else {
      mark_unavailable(acquire, i, why_no_vote(node, now), now);
    }
  }
  take_answers(acquire, now);
  count_votes(acquire, now);
}

// Ask a node that was not asked in the round, or whose vote was lost. The token is that of the
// round, unless a RELEASE of it may still arrive: no earlier message can release a new token.
void QuorumClient::ask_later(QuorumAcquire &acquire, size_t node, Nanos now) {
  const uint64_t next = next_rid();  // always: the nodes' clients number their acquisitions by it
  ask(acquire, node, acquire.votes[node].is_spent ? next : acquire.rid, now);
}

// `rid`: of a token that no RELEASE was sent for to `node`.
void QuorumClient::ask(QuorumAcquire &acquire, size_t node, uint64_t rid, Nanos now) {
  const bool is_queued = node == acquire.queued_at;
  const auto node_request = std::make_shared<NodeRequest>(Request::Op::kAcquire);
  const auto node_lease = std::make_shared<NodeLease>();
  node_request->operation = &acquire;
  node_request->name = acquire.name;
  node_request->options = acquire.options;
  // A lease that was handed off must be certain for its whole ttl, not only while provisional.
  node_request->options.is_confirmed = is_queued;
  node_request->lease = node_lease;
  node_request->rid = rid;
  node_request->wait_ms = 0;
  if (is_queued) {
    // Rounded up: the place in the queue must not end before the wait.
    const bool is_limited = acquire.wait_until != kNever;
    node_request->wait_ms = is_limited ? (acquire.wait_until - now + kMs - 1) / kMs : -1;
  }
  nodes_[node]->client.start(node_request, now);
  Vote &vote = acquire.votes[node];
  vote.request = node_request;
  vote.lease = node_lease;
  vote.due = is_queued ? kNever : now + node_limit(acquire);
  vote.rid = rid;
  vote.asked_at = now;
  vote.is_spent = vote.is_spent || rid == acquire.rid;
  vote.state = State::kAsked;
}

// Take the results of the requests to nodes.
void QuorumClient::take_answers(QuorumAcquire &acquire, Nanos now) {
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = acquire.votes[i];
    const bool is_held = acquire.phase == Phase::kHeld;
    const bool was_granted = vote.state == State::kYes || vote.state == State::kRaising;
    if (was_granted && vote.lease->state_at(now) != Lease::kHeld) {
      lose_vote(acquire, i, now);
      continue;
    }
    if (vote.state == State::kConnecting) {
      const Node &node = *nodes_[i];
      if (can_vote(node, now)) {
        ask_later(acquire, i, now);
      } else if (node.client.is_up() || (!is_held && !node.client.is_connecting(now))) {
        mark_unavailable(acquire, i, why_no_vote(node, now), now);
      }
    }
    if (vote.state == State::kAsked && vote.request->is_finished()) take_answer(acquire, i, now);
    if (vote.state == State::kRaising && vote.fence->is_finished()) {
      const Outcome outcome{vote.fence->status.load(), vote.fence->message};
      outcome.ok() ? count_in(acquire, i, now) : mark_unavailable(acquire, i, outcome, now);
    }
    const bool is_late = !is_held && is_open(vote) && now >= vote.due;
    if (!is_late) continue;
    mark_unavailable(
        acquire, i,
        failure(Status::kUnavailable, nodes_[i]->settings.address() + ": no answer within " +
                                          std::to_string(node_limit(acquire) / kMs) + " ms"),
        now);
  }
}

void QuorumClient::take_answer(QuorumAcquire &acquire, size_t node, Nanos now) {
  Vote &vote = acquire.votes[node];
  const Outcome outcome{vote.request->status.load(), vote.request->message};
  const bool is_taken = outcome.status == Status::kBusy || outcome.status == Status::kTimeout;
  const bool is_wrong_type = outcome.status == Status::kWrongType;
  const bool is_answer = outcome.ok() || is_taken || is_wrong_type;
  nodes_[node]->trouble = is_answer ? std::string() : outcome.message;
  const bool was_queued = acquire.queued_at == node;
  if (was_queued) {
    acquire.queued_at = QuorumAcquire::kNotQueued;
    acquire.was_queue_lost = !outcome.ok();
  }
  if (outcome.ok() && can_vote(*nodes_[node], now)) {
    if (was_queued) acquire.retry.reset();
    vote.lease->operation = &acquire;
    const bool is_granted = acquire.phase == Phase::kFencing || acquire.phase == Phase::kHeld;
    const bool must_raise = settings_.is_fenced && is_granted;
    must_raise ? write_fence(acquire, node, now) : count_in(acquire, node, now);
  } else if (outcome.ok()) {
    mark_unavailable(acquire, node, why_no_vote(*nodes_[node], now), now);
  } else if (is_taken) {
    // Read now: the node's client forgets the lock when all of it is released.
    vote.blocker = nodes_[node]->client.blocker_of(acquire.name);
    if (was_queued && !vote.blocker.empty()) acquire.blocker = vote.blocker;
    vote.reset();
    vote.state = State::kNo;
    vote.why = outcome;
  } else if (is_wrong_type) {
    const std::string where = nodes_[node]->settings.address() + ": ";
    mark_unavailable(acquire, node, failure(outcome.status, where + outcome.message), now);
  } else {
    mark_unavailable(acquire, node, outcome, now);
  }
}

// The time until which a majority has confirmed the lease; 0 if too few nodes have.
Nanos QuorumClient::valid_until(const QuorumAcquire &acquire, Nanos now) const {
  std::array<Nanos, kMaxNodes> deadlines{};
  size_t count = 0;
  for (const Vote &vote : acquire.votes) {
    if (vote.state != State::kYes || vote.lease->state_at(now) != Lease::kHeld) continue;
    assert(count < deadlines.size());
    deadlines[count++] = vote.lease->deadline.load();
  }
  return timing::valid_until({deadlines.data(), count}, majority_);
}

void QuorumClient::count_votes(QuorumAcquire &acquire, Nanos now) {
  const size_t yes = acquire.count(State::kYes);
  if (yes >= majority_) return accept(acquire, now);
  size_t open = 0;
  Nanos due = acquire.wait_until;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (i == acquire.queued_at || !is_open(acquire.votes[i])) continue;
    open++;
    due = std::min(due, acquire.votes[i].due);
  }
  if (yes + open < majority_) return end_round(acquire, now);
  timers_.set(acquire, due);
}

// ---- no ----------------------------------------------------------------------------------------

void QuorumClient::end_round(QuorumAcquire &acquire, Nanos now) {
  const size_t answered = acquire.count(State::kYes) + acquire.count(State::kNo);
  if (const Outcome wrong = wrong_type(acquire); !wrong.ok()) {
    return fail(acquire, wrong.status, wrong.message, now);
  }
  if (acquire.is_try) return fail_late(acquire, now);
  note_blocker(acquire);
  const auto order = eligibility_.order_of(acquire.name);
  const auto first = std::find_if(order.begin(), order.end(), [&](size_t node) {
    return node == acquire.queued_at || acquire.votes[node].state == State::kNo;
  });
  if (first == order.end() ||
      answered + (acquire.queued_at != QuorumAcquire::kNotQueued ? 1 : 0) < majority_) {
    return pause(acquire, now);
  }
  queue_at_node(acquire, order, static_cast<size_t>(first - order.begin()), now);
}

void QuorumClient::pause(QuorumAcquire &acquire, Nanos now) {
  assert(!acquire.is_try && acquire.phase != Phase::kHeld);
  drop_votes(acquire, now);
  acquire.phase = Phase::kPausing;
  acquire.pause_until = now + acquire.retry.next(entropy_.next());
  timers_.set(acquire, std::min(acquire.pause_until, acquire.wait_until));
}

void QuorumClient::queue_at_node(QuorumAcquire &acquire, const std::vector<size_t> &order,
                                 size_t place, Nanos now) {
  assert(acquire.lease && !acquire.is_try && acquire.phase != Phase::kHeld);
  const size_t node = order[place];
  const bool is_new = node != acquire.queued_at;
  if (is_new && acquire.queued_at != QuorumAcquire::kNotQueued) {
    drop_vote(acquire, acquire.queued_at, now);
  }
  if (is_new) acquire.keep_until = now + kLongestKeep;
  const bool may_keep = acquire.options.is_renewed && now < acquire.keep_until;
  for (size_t i = 0; i < order.size(); i++) {
    const Vote &vote = acquire.votes[order[i]];
    const bool is_kept = vote.state == State::kYes && may_keep && i < place;
    if (!is_kept && i != place) drop_vote(acquire, order[i], now);
  }
  acquire.phase = Phase::kQueued;
  if (is_new) {
    acquire.queued_at = node;
    acquire.was_queue_lost = false;
    ask(acquire, node, next_rid(), now);
    if (acquire.votes[node].request->is_finished()) return mark(&acquire);
  }
  acquire.check_at = now + acquire.retry.next(entropy_.next());
  timers_.set(acquire, std::min(acquire.check_at, acquire.wait_until));
}

void QuorumClient::check_queue(QuorumAcquire &acquire, Nanos now) {
  if (acquire.queued_at == QuorumAcquire::kNotQueued) {  // granted, or refused
    return std::exchange(acquire.was_queue_lost, false) ? pause(acquire, now)
                                                        : begin_round(acquire, now);
  }
  if (now < acquire.check_at) {
    return timers_.set(acquire, std::min(acquire.check_at, acquire.wait_until));
  }
  Node &node = *nodes_[acquire.queued_at];
  const NodeRequest &node_request = *acquire.votes[acquire.queued_at].request;
  const bool is_gone = !can_vote(node, now) || node.client.is_late(node_limit(acquire), now);
  if (is_gone) {
    drop_vote(acquire, acquire.queued_at, now);
    return begin_round(acquire, now);
  }
  if (node_request.is_head()) return begin_round(acquire, now);
  acquire.check_at = now + kQueueCheck;
  if (now - node.last_reply_at >= kQueueCheck) {
    node.client.poll(*acquire.votes[acquire.queued_at].request, now);
    acquire.check_at = now + node_limit(acquire);
  }
  if (now >= acquire.keep_until) {
    for (size_t i = 0; i < nodes_.size(); i++) {
      if (i != acquire.queued_at) drop_vote(acquire, i, now);
    }
  }
  timers_.set(acquire, std::min(acquire.check_at, acquire.wait_until));
}

// ---- votes -------------------------------------------------------------------------------------

// Later results of its requests are ignored.
void Vote::reset() noexcept {
  if (request) request->operation = nullptr;
  if (lease) lease->operation = nullptr;
  if (fence) fence->operation = nullptr;
  request.reset();
  lease.reset();
  fence.reset();
  state = State::kNone;
  due = kNever;
}

// Release what `node` has granted, or may still grant.
void QuorumClient::drop_vote(QuorumAcquire &acquire, size_t node, Nanos now,
                             bool is_lost) noexcept {
  Vote &vote = acquire.votes[node];
  if (acquire.queued_at == node) acquire.queued_at = QuorumAcquire::kNotQueued;
  if (vote.state == State::kNo || vote.state == State::kUnavailable) return;  // `why` stays
  const auto request = vote.request;
  const auto lease = vote.lease;
  vote.reset();
  lock::LockClient &client = nodes_[node]->client;
  if (request && !request->is_finished()) client.cancel(*request, now);
  if (!lease) return;
  if (is_lost) {
    client.release_after_notice(*lease, now);
  } else {
    client.release_async(*lease, now);
  }
}

void QuorumClient::drop_votes(QuorumAcquire &acquire, Nanos now, bool is_lost) noexcept {
  for (size_t i = 0; i < nodes_.size(); i++) drop_vote(acquire, i, now, is_lost);
}

void QuorumClient::mark_unavailable(QuorumAcquire &acquire, size_t node, Outcome why, Nanos now) {
  drop_vote(acquire, node, now);
  acquire.votes[node].state = State::kUnavailable;
  acquire.votes[node].why = std::move(why);
}

// ---- failure -----------------------------------------------------------------------------------

void QuorumClient::fail(QuorumAcquire &acquire, Status status, std::string_view message,
                        Nanos now) noexcept {
  const auto request = acquire.request;
  drop_votes(acquire, now);
  forget(acquire);
  finish(*request, status, message);
}

void QuorumClient::fail_late(QuorumAcquire &acquire, Nanos now) {
  note_blocker(acquire);
  const Outcome why = why_not(acquire, now);
  fail(acquire, why.status, why.message, now);
}

// Note the client that holds the lock at most of the nodes that refused in this round: another
// client may have a vote for a moment. While queued, only that node knows the holder.
void QuorumClient::note_blocker(QuorumAcquire &acquire) const {
  if (acquire.phase == Phase::kQueued) {
    if (acquire.queued_at == QuorumAcquire::kNotQueued) return;
    const auto blocker = nodes_[acquire.queued_at]->client.blocker_of(acquire.name);
    if (!blocker.empty()) acquire.blocker = blocker;
    return;
  }
  if (acquire.phase != Phase::kRound) return;
  int64_t most = 0;
  for (const Vote &vote : acquire.votes) {
    if (vote.state != State::kNo || vote.blocker.empty()) continue;
    const auto votes =
        std::count_if(acquire.votes.begin(), acquire.votes.end(), [&](const Vote &other) {
          return other.state == State::kNo && other.blocker == vote.blocker;
        });
    if (votes > most) acquire.blocker = vote.blocker;
    most = std::max<int64_t>(most, votes);
  }
}

bool QuorumClient::waits_for_itself(const Request &request) const {
  const bool is_waiting = request.op == Request::Op::kAcquire && request.wait_ms != 0;
  const auto *acquire = is_waiting ? static_cast<QuorumAcquire *>(find(&request)) : nullptr;
  if (acquire == nullptr || request.waiter == 0) return false;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto &node) {
    const auto *node_lease = static_cast<const NodeLease *>(node->client.lease_on(acquire->name));
    const QuorumRequest *operation = node_lease != nullptr ? node_lease->operation : nullptr;
    if (operation == nullptr || !operation->is_acquire) return false;
    const auto &holder = static_cast<const QuorumAcquire &>(*operation);
    return holder.phase == Phase::kHeld && holder.lease->starter == request.waiter;
  });
}

// "; holder: " and its name, which any node may know.
std::string QuorumClient::holder_words(const QuorumAcquire &acquire) const {
  if (acquire.request && waits_for_itself(*acquire.request)) {
    return "; holder: the thread that waits";
  }
  if (acquire.blocker.empty()) return {};
  for (const auto &node : nodes_) {
    if (auto words = node->client.holder_text(acquire.blocker); !words.empty()) return words;
  }
  return {};
}

Outcome QuorumClient::wrong_type(const QuorumAcquire &acquire) const {
  size_t count = 0;
  std::string whys;
  for (const Vote &vote : acquire.votes) {
    if (vote.state != State::kUnavailable || vote.why.status != Status::kWrongType) continue;
    whys += (count++ == 0 ? ": " : "; ") + vote.why.message;
  }
  if (count + majority_ <= nodes_.size()) return {};
  return failure(Status::kWrongType, "lock " + quoted(acquire.name) + " has data at its keys on " +
                                         of_nodes(count) + whys);
}

Outcome QuorumClient::why_not(const QuorumAcquire &acquire, Nanos now) const {
  const size_t count = nodes_.size();
  size_t able = 0;
  const std::string lock = "lock " + quoted(acquire.name);
  const Vote *busy = nullptr;
  for (size_t i = 0; i < count; i++) {
    const Vote &vote = acquire.votes[i];
    if (vote.state == State::kNo) busy = &vote;
    if (vote.state != State::kUnavailable && can_vote(*nodes_[i], now)) able++;
  }
  if (acquire.lease && able >= majority_) {
    if (!acquire.is_try) {
      return failure(Status::kTimeout, lock + " was not granted by " + of_nodes(majority_) +
                                           " within " + in_seconds(acquire.request->wait_ms) +
                                           holder_words(acquire));
    }
    return failure(Status::kBusy, lock + " was granted by " + of_nodes(acquire.count(State::kYes)) +
                                      ", and needs " + std::to_string(majority_) + ": " +
                                      (busy != nullptr ? busy->why.message : ""));
  }
  Status status = Status::kOk;
  std::string whys;
  for (size_t i = 0; i < count; i++) {
    const Vote &vote = acquire.votes[i];
    const bool is_unavailable = vote.state == State::kUnavailable;
    const Outcome why = is_unavailable ? vote.why : why_no_vote(*nodes_[i], now);
    if (why.ok()) continue;
    const bool is_known = status == Status::kOk || status == why.status;
    status = is_known ? why.status : Status::kUnavailable;
    whys += "; " + why.message;
  }
  constexpr std::array kReported = {Status::kDenied, Status::kUnsupported, Status::kServer,
                                    Status::kInvalid, Status::kNoMemory};
  if (std::find(kReported.begin(), kReported.end(), status) == kReported.end()) {
    status = Status::kUnavailable;
  }
  return failure(status, (acquire.lease ? lock + ": " : std::string()) +
                             "too few nodes may vote, " + std::to_string(majority_) + " of " +
                             std::to_string(count) + " are needed" + whys);
}

}  // namespace redlatch::quorum
