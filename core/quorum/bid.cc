// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Quorum: from a call to enough votes.
//
// Where to wait: all clients go through the nodes of a lock in one order. Who was refused stands in
// line at the first node that refused it, and keeps only votes of nodes before that one. So of
// those who split the votes the one that got furthest goes on, the others stand behind it, and
// nobody waits in a circle (resource ordering, Havender 1968). The line is a hint: whoever is its
// head tries the others again now and then, because the node may not hear of a release.
#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "base/text.h"
#include "quorum/quorum.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;
using State = Vote::State;

namespace {

// How long votes are kept while in line. Clients that see the nodes in different orders could wait
// for each other.
constexpr Nanos kLongestKeep = 1000 * kMs;
// How often those in line make sure that its node still answers.
constexpr Nanos kLineCheck = 500 * kMs;

bool is_open(const Vote &vote) {
  return vote.state == State::kAsked || vote.state == State::kDialing;
}

}  // namespace

// ---- the call ----------------------------------------------------------------------------------

Outcome Quorum::check(const Request &request) const {
  const Nanos lease =
      request.op == Request::Op::kExtend ? request.extend_to : request.options.lease;
  const std::string shown = "lease of " + std::to_string(lease / kMs) + " ms";
  if (is_guarded() && lease > settings_.restart_guard) {
    return failure(Status::kInvalid, shown + ": allowed are at most the " +
                                         std::to_string(settings_.restart_guard / kMs) +
                                         " ms of restart_guard, within which a node that restarted "
                                         "has no vote");
  }
  if (settings_.min_validity >= lease) {
    return failure(Status::kInvalid, shown + ": it must be longer than the " +
                                         std::to_string(settings_.min_validity / kMs) +
                                         " ms of min_validity");
  }
  return {};
}

void Quorum::start_bid(const std::shared_ptr<Request> &request, Nanos now) {
  const bool is_acquire = request->op == Request::Op::kAcquire;
  if (is_acquire) {
    if (const auto wrong = check(*request); !wrong.ok()) {
      return finish(*request, wrong.status, wrong.message);
    }
  }
  timers_.admit();
  std::shared_ptr<Bid> bid;
  try {
    bid = std::make_shared<Bid>(++last_matter_, request, nodes_.size());
    bid->options = request->options;
    bid->options.local_burst = 0;
    // A label is written with the time of the grant, which ACQUIRE returns.
    bid->options.is_unfenced = !settings_.is_fenced && bid->options.label.empty();
    bid->options.foreign = {};
    bid->options.max_hold = 0;  // counted here, from the grant on
    bid->is_try = request->wait_ms == 0;
    if (request->wait_ms > 0) bid->wait_until = after(now, request->wait_ms * kMs);
    if (is_acquire) {
      bid->lease = request->lease;
      bid->name = request->name;
      bid->lease->name = request->name;
      bid->lease->token.reserve(protocol::kTokenSize);
      index_.emplace(bid->lease.get(), bid.get());
    }
    keep(bid, *request);
  } catch (...) {
    if (bid && bid->lease) index_.erase(bid->lease.get());
    timers_.dismiss();
    throw;
  }
  for (const auto &node : nodes_) keep_connected(*node, now);
  timers_.set(*bid, bid->wait_until);
  mark(bid.get());
}

void Quorum::review(Bid &bid, Nanos now) {
  take_answers(bid, now);
  if (bid.phase == Bid::Phase::kHeld) {
    if (now >= bid.top_up_at && is_certain(bid, now)) top_up(bid, now);
    return look_after(bid, now);
  }
  if (const Outcome wrong = refusal(); !wrong.ok()) {
    return fail(bid, wrong.status, wrong.message, now);
  }
  if (now >= bid.wait_until) return fail_late(bid, now);
  switch (bid.phase) {
    case Bid::Phase::kGathering:
      return gather(bid, now);
    case Bid::Phase::kRound:
      return count_votes(bid, now);
    case Bid::Phase::kWaiting:
      return check_line(bid, now);
    case Bid::Phase::kPausing:
      if (now >= bid.pause_until) return begin_round(bid, now);
      return timers_.set(bid, std::min(bid.pause_until, bid.wait_until));
    case Bid::Phase::kFencing:
      return check_fence(bid, now);
    case Bid::Phase::kHeld:
      return;
  }
}

// The first use waits until every node has been tried, so that one which cannot be a node shows;
// for one that does not answer no longer than for a vote.
void Quorum::gather(Bid &bid, Nanos now) {
  for (const auto &node : nodes_) {
    if (!node->was_tried && !node->engine.is_up()) keep_connected(*node, now);
  }
  const bool were_tried =
      std::all_of(nodes_.begin(), nodes_.end(), [](const auto &node) { return node->was_tried; });
  const bool is_enough = voter_count(now) >= majority_;
  if (is_enough && bid.gather_until == kNever) bid.gather_until = now + node_limit(bid);
  if (were_tried || now >= bid.gather_until) {
    if (bid.lease) return begin_round(bid, now);
    if (is_enough) return succeed(bid);
    return bid.is_try ? fail_late(bid, now) : pause(bid, now);
  }
  timers_.set(bid, std::min(bid.gather_until, bid.wait_until));
}

// ---- a round -----------------------------------------------------------------------------------

void Quorum::begin_round(Bid &bid, Nanos now) {
  if (!bid.lease) {
    bid.phase = Bid::Phase::kGathering;
    for (const auto &node : nodes_) keep_connected(*node, now);
    return gather(bid, now);
  }
  bid.phase = Bid::Phase::kRound;
  bid.rid = ++last_rid_;
  const auto is_there = [&](const auto &node) {
    return node->engine.is_up() || node->engine.is_dialing(now);
  };
  for (const auto &node : nodes_) keep_connected(*node, now);
  const auto there = std::count_if(nodes_.begin(), nodes_.end(), is_there);
  if (static_cast<size_t>(there) < majority_) hurry(now);
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = bid.votes[i];
    vote.is_spent = false;
    if (i == bid.line || vote.state == State::kYes) continue;
    drop_vote(bid, i, now);
    vote.state = State::kNone;
    const Node &node = *nodes_[i];
    if (can_vote(node, now)) {
      ask(bid, i, bid.rid, now);
    } else if (!node.engine.is_up() && node.engine.is_dialing(now)) {
      vote.state = State::kDialing;
      vote.due = now + node_limit(bid);
    } else {
      silence(bid, i, why_no_vote(node, now), now);
    }
  }
  take_answers(bid, now);
  count_votes(bid, now);
}

// Ask a node that was not asked in the round, or whose vote was lost. With the token of the round,
// unless a RELEASE of that token may still arrive: no earlier message can release a new token.
void Quorum::ask_later(Bid &bid, size_t node, Nanos now) {
  const uint64_t next = ++last_rid_;  // always: engines number their holds by it
  ask(bid, node, bid.votes[node].is_spent ? next : bid.rid, now);
}

// `rid`: of a token of which `node` was never sent a RELEASE.
void Quorum::ask(Bid &bid, size_t node, uint64_t rid, Nanos now) {
  const bool is_in_line = node == bid.line;
  const auto ballot = std::make_shared<Ballot>(Request::Op::kAcquire);
  const auto share = std::make_shared<Share>();
  ballot->matter = &bid;
  ballot->name = bid.name;
  ballot->options = bid.options;
  // What was handed over is certain for its whole lease, not just for the claim.
  ballot->options.is_confirmed = is_in_line;
  ballot->lease = share;
  ballot->rid = rid;
  ballot->wait_ms = 0;
  if (is_in_line) {
    // Rounded up: the place in line is not to end before the wait.
    const bool is_limited = bid.wait_until != kNever;
    ballot->wait_ms = is_limited ? (bid.wait_until - now + kMs - 1) / kMs : -1;
  }
  nodes_[node]->engine.start(ballot, now);
  Vote &vote = bid.votes[node];
  vote.ballot = ballot;
  vote.share = share;
  vote.due = is_in_line ? kNever : now + node_limit(bid);
  vote.rid = rid;
  vote.asked_at = now;
  vote.is_spent = vote.is_spent || rid == bid.rid;
  vote.state = State::kAsked;
}

// What has come in of what was asked.
void Quorum::take_answers(Bid &bid, Nanos now) {
  for (size_t i = 0; i < nodes_.size(); i++) {
    Vote &vote = bid.votes[i];
    const bool is_held = bid.phase == Bid::Phase::kHeld;
    const bool was_granted = vote.state == State::kYes || vote.state == State::kRaising;
    if (was_granted && vote.share->state_at(now) != Lease::kHeld) {
      lose_vote(bid, i, now);
      continue;
    }
    if (vote.state == State::kDialing) {
      const Node &node = *nodes_[i];
      if (can_vote(node, now)) {
        ask_later(bid, i, now);
      } else if (node.engine.is_up() || (!is_held && !node.engine.is_dialing(now))) {
        silence(bid, i, why_no_vote(node, now), now);
      }
    }
    if (vote.state == State::kAsked && vote.ballot->is_finished()) take_answer(bid, i, now);
    if (vote.state == State::kRaising && vote.fence->is_finished()) {
      const Outcome outcome{vote.fence->status.load(), vote.fence->message};
      outcome.ok() ? count_in(bid, i, now) : silence(bid, i, outcome, now);
    }
    const bool is_late = !is_held && is_open(vote) && now >= vote.due;
    if (!is_late) continue;
    silence(bid, i,
            failure(Status::kUnavailable, nodes_[i]->settings.address() + ": no answer within " +
                                              std::to_string(node_limit(bid) / kMs) + " ms"),
            now);
  }
}

void Quorum::take_answer(Bid &bid, size_t node, Nanos now) {
  Vote &vote = bid.votes[node];
  const Outcome outcome{vote.ballot->status.load(), vote.ballot->message};
  const bool is_taken = outcome.status == Status::kBusy || outcome.status == Status::kTimeout;
  const bool is_answer = outcome.ok() || is_taken;
  nodes_[node]->trouble = is_answer ? std::string() : outcome.message;
  const bool is_of_line = bid.line == node;
  if (is_of_line) {
    bid.line = Bid::kNoLine;
    bid.is_line_lost = !outcome.ok();
  }
  if (outcome.ok() && can_vote(*nodes_[node], now)) {
    if (is_of_line) bid.retry.reset();
    vote.share->matter = &bid;
    const bool is_granted = bid.phase == Bid::Phase::kFencing || bid.phase == Bid::Phase::kHeld;
    const bool must_raise = settings_.is_fenced && is_granted;
    must_raise ? write_fence(bid, node, now) : count_in(bid, node, now);
  } else if (outcome.ok()) {
    silence(bid, node, why_no_vote(*nodes_[node], now), now);
  } else if (is_taken) {
    // From the engine, which forgets the lock when all of it is given back.
    vote.blocker = nodes_[node]->engine.blocker_of(bid.name);
    if (is_of_line && !vote.blocker.empty()) bid.blocker = vote.blocker;
    vote.let_go();
    vote.state = State::kNo;
    vote.why = outcome;
  } else {
    silence(bid, node, outcome, now);
  }
}

// The time until which a majority has confirmed it; 0 if too few have.
Nanos Quorum::valid_until(const Bid &bid, Nanos now) const {
  std::array<Nanos, kMaxNodes> deadlines{};
  size_t count = 0;
  for (const Vote &vote : bid.votes) {
    if (vote.state != State::kYes || vote.share->state_at(now) != Lease::kHeld) continue;
    deadlines[count++] = vote.share->deadline.load();
  }
  return timing::valid_until({deadlines.data(), count}, majority_);
}

void Quorum::count_votes(Bid &bid, Nanos now) {
  const size_t yes = bid.count(State::kYes);
  if (yes >= majority_) return accept(bid, now);
  size_t open = 0;
  Nanos due = bid.wait_until;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (i == bid.line || !is_open(bid.votes[i])) continue;
    open++;
    due = std::min(due, bid.votes[i].due);
  }
  if (yes + open < majority_) return end_round(bid, now);
  timers_.set(bid, due);
}

// ---- no ----------------------------------------------------------------------------------------

void Quorum::end_round(Bid &bid, Nanos now) {
  const size_t answered = bid.count(State::kYes) + bid.count(State::kNo);
  if (bid.is_try) return fail_late(bid, now);
  note_blocker(bid);
  const auto order = order_of(bid.name);
  const auto first = std::find_if(order.begin(), order.end(), [&](size_t node) {
    return node == bid.line || bid.votes[node].state == State::kNo;
  });
  if (first == order.end() || answered + (bid.line != Bid::kNoLine ? 1 : 0) < majority_) {
    return pause(bid, now);
  }
  stand_in_line(bid, order, static_cast<size_t>(first - order.begin()), now);
}

void Quorum::pause(Bid &bid, Nanos now) {
  drop_votes(bid, now);
  bid.phase = Bid::Phase::kPausing;
  bid.pause_until = now + bid.retry.next(entropy_.next());
  timers_.set(bid, std::min(bid.pause_until, bid.wait_until));
}

void Quorum::stand_in_line(Bid &bid, const std::vector<size_t> &order, size_t place, Nanos now) {
  const size_t line = order[place];
  const bool is_new = line != bid.line;
  if (is_new && bid.line != Bid::kNoLine) drop_vote(bid, bid.line, now);
  if (is_new) bid.keep_until = now + kLongestKeep;
  const bool may_keep = bid.options.is_renewed && now < bid.keep_until;
  for (size_t i = 0; i < order.size(); i++) {
    const Vote &vote = bid.votes[order[i]];
    const bool is_kept = vote.state == State::kYes && may_keep && i < place;
    if (!is_kept && i != place) drop_vote(bid, order[i], now);
  }
  bid.phase = Bid::Phase::kWaiting;
  if (is_new) {
    bid.line = line;
    bid.is_line_lost = false;
    ask(bid, line, ++last_rid_, now);
    if (bid.votes[line].ballot->is_finished()) return mark(&bid);
  }
  bid.check_at = now + bid.retry.next(entropy_.next());
  timers_.set(bid, std::min(bid.check_at, bid.wait_until));
}

void Quorum::check_line(Bid &bid, Nanos now) {
  if (bid.line == Bid::kNoLine) {  // granted, or of no use
    return std::exchange(bid.is_line_lost, false) ? pause(bid, now) : begin_round(bid, now);
  }
  if (now < bid.check_at) return timers_.set(bid, std::min(bid.check_at, bid.wait_until));
  Node &node = *nodes_[bid.line];
  const Ballot &ballot = *bid.votes[bid.line].ballot;
  const bool is_gone = !can_vote(node, now) || node.engine.is_late(node_limit(bid), now);
  if (is_gone) {
    drop_vote(bid, bid.line, now);
    return begin_round(bid, now);
  }
  if (lock::Engine::is_head(ballot)) return begin_round(bid, now);
  bid.check_at = now + kLineCheck;
  if (now - node.heard_at >= kLineCheck) {
    node.engine.poll(*bid.votes[bid.line].ballot, now);
    bid.check_at = now + node_limit(bid);
  }
  if (now >= bid.keep_until) {
    for (size_t i = 0; i < nodes_.size(); i++) {
      if (i != bid.line) drop_vote(bid, i, now);
    }
  }
  timers_.set(bid, std::min(bid.check_at, bid.wait_until));
}

// ---- votes -------------------------------------------------------------------------------------

// What still comes of it is nobody's business.
void Vote::let_go() noexcept {
  if (ballot) ballot->matter = nullptr;
  if (share) share->matter = nullptr;
  if (fence) fence->matter = nullptr;
  ballot.reset();
  share.reset();
  fence.reset();
  state = State::kNone;
  due = kNever;
}

// Give back what `node` has granted, or may still grant.
void Quorum::drop_vote(Bid &bid, size_t node, Nanos now, bool is_lost) noexcept {
  Vote &vote = bid.votes[node];
  if (bid.line == node) bid.line = Bid::kNoLine;
  if (vote.state == State::kNo || vote.state == State::kSilent) return;  // as good as the why
  const auto ballot = vote.ballot;
  const auto share = vote.share;
  vote.let_go();
  lock::Engine &engine = nodes_[node]->engine;
  if (ballot && !ballot->is_finished()) engine.cancel(*ballot, now);
  if (!share) return;
  if (is_lost) {
    engine.abandon_lost(*share, now);
  } else {
    engine.abandon(*share, now);
  }
}

void Quorum::drop_votes(Bid &bid, Nanos now, bool is_lost) noexcept {
  for (size_t i = 0; i < nodes_.size(); i++) drop_vote(bid, i, now, is_lost);
}

void Quorum::silence(Bid &bid, size_t node, Outcome why, Nanos now) {
  drop_vote(bid, node, now);
  bid.votes[node].state = State::kSilent;
  bid.votes[node].why = std::move(why);
}

// ---- failure -----------------------------------------------------------------------------------

void Quorum::fail(Bid &bid, Status status, std::string_view message, Nanos now) noexcept {
  const auto request = bid.request;
  drop_votes(bid, now);
  forget(bid);
  finish(*request, status, message);
}

void Quorum::fail_late(Bid &bid, Nanos now) {
  note_blocker(bid);
  const Outcome why = why_not(bid, now);
  fail(bid, why.status, why.message, now);
}

// The client that has the lock at most of the nodes that said no in this round: another one may
// have a vote for a moment. While in line, only that node says who it is.
void Quorum::note_blocker(Bid &bid) const {
  if (bid.phase == Bid::Phase::kWaiting) {
    if (bid.line == Bid::kNoLine) return;
    const auto blocker = nodes_[bid.line]->engine.blocker_of(bid.name);
    if (!blocker.empty()) bid.blocker = blocker;
    return;
  }
  if (bid.phase != Bid::Phase::kRound) return;
  int64_t most = 0;
  for (const Vote &vote : bid.votes) {
    if (vote.state != State::kNo || vote.blocker.empty()) continue;
    const auto votes = std::count_if(bid.votes.begin(), bid.votes.end(), [&](const Vote &other) {
      return other.state == State::kNo && other.blocker == vote.blocker;
    });
    if (votes > most) bid.blocker = vote.blocker;
    most = std::max<int64_t>(most, votes);
  }
}

bool Quorum::waits_for_itself(const Request &request) const {
  const bool is_waiting = request.op == Request::Op::kAcquire && request.wait_ms != 0;
  const auto *bid = is_waiting ? static_cast<Bid *>(find(request)) : nullptr;
  if (bid == nullptr || request.waiter == 0) return false;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto &node) {
    const auto *share = static_cast<const Share *>(node->engine.lease_on(bid->name));
    const Matter *matter = share != nullptr ? share->matter : nullptr;
    if (matter == nullptr || !matter->is_bid) return false;
    const auto &holder = static_cast<const Bid &>(*matter);
    return holder.phase == Bid::Phase::kHeld && holder.lease->starter == request.waiter;
  });
}

// "; holder: " and its name, which any node may have been asked for.
std::string Quorum::holder_words(const Bid &bid) const {
  if (bid.request && waits_for_itself(*bid.request)) return "; holder: the thread that waits";
  if (bid.blocker.empty()) return {};
  for (const auto &node : nodes_) {
    if (auto words = node->engine.words_of_blocker(bid.blocker); !words.empty()) return words;
  }
  return {};
}

Outcome Quorum::why_not(const Bid &bid, Nanos now) const {
  const size_t count = nodes_.size();
  size_t able = 0;
  const std::string lock = "lock " + quoted(bid.name);
  const Vote *busy = nullptr;
  for (size_t i = 0; i < count; i++) {
    const Vote &vote = bid.votes[i];
    if (vote.state == State::kNo) busy = &vote;
    if (vote.state != State::kSilent && can_vote(*nodes_[i], now)) able++;
  }
  if (bid.lease && able >= majority_) {
    if (!bid.is_try) {
      return failure(Status::kTimeout, lock + " was not granted by " + of_nodes(majority_) +
                                           " within " + in_seconds(bid.request->wait_ms) +
                                           holder_words(bid));
    }
    return failure(Status::kBusy, lock + " was granted by " + of_nodes(bid.count(State::kYes)) +
                                      ", and needs " + std::to_string(majority_) + ": " +
                                      (busy != nullptr ? busy->why.message : ""));
  }
  Status status = Status::kOk;
  std::string whys;
  for (size_t i = 0; i < count; i++) {
    const Vote &vote = bid.votes[i];
    const bool is_silent = vote.state == State::kSilent;
    const Outcome why = is_silent ? vote.why : why_no_vote(*nodes_[i], now);
    if (why.ok()) continue;
    const bool is_known = status == Status::kOk || status == why.status;
    status = is_known ? why.status : Status::kUnavailable;
    whys += "; " + why.message;
  }
  constexpr std::array kTold = {Status::kDenied, Status::kUnsupported, Status::kServer,
                                Status::kInvalid, Status::kNoMemory};
  if (std::find(kTold.begin(), kTold.end(), status) == kTold.end()) status = Status::kUnavailable;
  return failure(status, (bid.lease ? lock + ": " : std::string()) + "too few nodes may vote, " +
                             std::to_string(majority_) + " of " + std::to_string(count) +
                             " are needed" + whys);
}

}  // namespace redlatch::quorum
