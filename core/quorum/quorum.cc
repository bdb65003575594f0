// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Quorum: calls, time, and what they are about.
#include "quorum/quorum.h"

#include <algorithm>
#include <new>

#include "base/text.h"

namespace redlatch::quorum {

using lock::kNoMemoryRetry;
using lock::Lease;
using lock::Request;

Quorum::Quorum(std::span<const Settings> nodes, const QuorumSettings &settings,
               std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output)
    : settings_(settings),
      output_(output),
      entropy_(seed),
      majority_(timing::majority_of(nodes.size())) {
  lock::Output &reports = *this;
  for (size_t i = 0; i < nodes.size(); i++) {
    nodes_.push_back(std::make_unique<Node>(reports, i, nodes[i], random, entropy_.next()));
  }
}

// Engines end the leases of nodes; those must not point here, and users' leases outlive all of it.
Quorum::~Quorum() {
  for (const auto &[id, matter] : matters_) {
    if (!matter->is_bid) {
      for (const auto &ballot : static_cast<Errand &>(*matter).ballots) ballot->matter = nullptr;
      continue;
    }
    auto &bid = static_cast<Bid &>(*matter);
    for (Vote &vote : bid.votes) {
      if (vote.ballot) vote.ballot->matter = nullptr;
      if (vote.share) vote.share->matter = nullptr;
      if (vote.fence) vote.fence->matter = nullptr;
    }
    if (bid.phase == Bid::Phase::kHeld) end_lease(bid, Lease::kLost, {});
  }
}

// ---- calls -------------------------------------------------------------------------------------

void Quorum::start(const std::shared_ptr<Request> &request, Nanos now) {
  if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
  if (is_shut_) return finish(*request, Status::kClosed, "the Redlock was shut down");
  switch (request->op) {
    case Request::Op::kConnect:
    case Request::Op::kAcquire:
      start_bid(request, now);
      break;
    case Request::Op::kRelease:
    case Request::Op::kExtend:
      start_errand(request, now);
      break;
    case Request::Op::kDetach:
      detach(*request, now);
      break;
    default:
      finish(*request, Status::kInvalid,
             "a lease of a Redlock is neither a reader's nor one that can become it");
  }
  settle(now);
}

Status Quorum::cancel(Request &request, Nanos now) {
  Matter *matter = find(request);
  if (request.is_finished() || matter == nullptr) return request.status.load();
  constexpr char kWhy[] = "the request was cancelled";
  if (matter->is_bid) {
    fail(static_cast<Bid &>(*matter), Status::kCancelled, kWhy, now);
  } else {
    finish(request, Status::kCancelled, kWhy);
    forget(*matter);
  }
  settle(now);
  return Status::kCancelled;
}

// No other client can attach it, so the nodes need not be asked.
void Quorum::detach(Request &request, Nanos now) {
  Bid *bid = bid_of(*request.lease);
  if (bid == nullptr || request.lease->state_at(now) != Lease::kHeld) {
    const auto why = lock::Engine::why_not_held(*request.lease);
    return finish(request, why.status, why.message);
  }
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (bid->votes[i].state == Vote::State::kYes) nodes_[i]->engine.drop(*bid->votes[i].share, now);
  }
  end_lease(*bid, Lease::kDetached, {});
  drop_votes(*bid, now);
  forget(*bid);
  finish(request, Status::kOk);
}

void Quorum::abandon(Lease &lease, Nanos now) {
  Bid *bid = bid_of(lease);
  if (bid == nullptr) return;
  end_lease(*bid, Lease::kReleased, {});
  drop_votes(*bid, now);
  forget(*bid);
  settle(now);
}

void Quorum::shut_down(Nanos now) {
  is_shut_ = true;
  while (true) {
    const auto found = std::find_if(matters_.begin(), matters_.end(),
                                    [](const auto &entry) { return entry.second->is_bid; });
    if (found == matters_.end()) break;
    auto &bid = static_cast<Bid &>(*found->second);
    if (bid.request) {
      fail(bid, Status::kClosed, "the Redlock was shut down", now);
      continue;
    }
    end_lease(bid, Lease::kReleased, {});
    drop_votes(bid, now);
    forget(bid);
  }
  for (const auto &node : nodes_) node->engine.shut_down(now);
  settle(now);
}

void Quorum::give_up() {
  for (const auto &node : nodes_) node->engine.give_up();
  settle(0);
  while (!matters_.empty()) {
    Matter &matter = *matters_.begin()->second;
    finish(*matter.request, Status::kOutcomeUnknown, "no answer before the Redlock was shut down");
    forget(matter);
  }
}

size_t Quorum::drained_count() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const auto &node) {
    return node->engine.is_drained() || !node->engine.is_up();
  }));
}

bool Quorum::expects_push() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->engine.expects_push(); });
}

bool Quorum::is_outstanding() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->engine.is_outstanding(); });
}

// ---- time --------------------------------------------------------------------------------------

Nanos Quorum::next_due() const {
  Nanos due = timers_.next_due();
  for (const auto &node : nodes_) due = std::min(due, node->engine.next_due());
  return due;
}

void Quorum::on_timer(Nanos now) {
  for (const auto &node : nodes_) node->engine.on_timer(now);
  settle(now);
  while (timers_.next_due() <= now) {
    auto &bid = static_cast<Bid &>(timers_.top());
    timers_.remove(bid);
    mark(&bid);
    settle(now);
  }
}

// ---- matters -----------------------------------------------------------------------------------

void Quorum::finish(Request &request, Status status, std::string_view message) noexcept {
  try {
    request.message = clean(message);
  } catch (const std::bad_alloc &) {
    request.message.clear();  // the status says enough
  }
  request.status.store(status, std::memory_order_release);
  output_.finished(request);
}

void Quorum::mark(Matter *matter) noexcept {
  if (matter == nullptr || matter->is_marked) return;
  matter->is_marked = true;
  matter->next_marked = nullptr;
  (last_marked_ != nullptr ? last_marked_->next_marked : first_marked_) = matter;
  last_marked_ = matter;
}

// Those for whom it matters whether `node` is connected.
void Quorum::mark_waiting(const Node &node) noexcept {
  for (const auto &[id, matter] : matters_) {
    const bool is_awaited = matter->is_bid && static_cast<Bid &>(*matter).votes[node.index].state ==
                                                  Vote::State::kDialing;
    if (matter->request || is_awaited) mark(matter.get());
  }
}

// Look at all that has been marked. Without memory a call fails, and what it had is given back.
void Quorum::settle(Nanos now) noexcept {
  while (first_marked_ != nullptr) {
    Matter &matter = *first_marked_;
    const auto keep = matters_.find(matter.id)->second;
    first_marked_ = matter.next_marked;
    if (first_marked_ == nullptr) last_marked_ = nullptr;
    matter.is_marked = false;
    try {
      if (!matter.is_bid) {
        review(static_cast<Errand &>(matter), now);
      } else {
        review(static_cast<Bid &>(matter), now);
      }
    } catch (const std::bad_alloc &) {
      give_up(matter, now);
    }
  }
}

// Without memory for the words about it. What is held is looked at again soon.
void Quorum::give_up(Matter &matter, Nanos now) noexcept {
  if (!matter.is_bid) {
    const auto request = matter.request;
    forget(matter);
    return finish(*request, Status::kOutcomeUnknown);  // what was started goes on
  }
  auto &bid = static_cast<Bid &>(matter);
  if (bid.request) return fail(bid, Status::kNoMemory, {}, now);
  timers_.set(bid, now + kNoMemoryRetry);
}

Matter *Quorum::find(const lock::Subject &subject) const {
  const auto found = index_.find(&subject);
  return found == index_.end() ? nullptr : found->second;
}

// The bid that holds `lease`.
Bid *Quorum::bid_of(const Lease &lease) const {
  auto *bid = static_cast<Bid *>(find(lease));
  return bid != nullptr && bid->phase == Bid::Phase::kHeld ? bid : nullptr;
}

void Quorum::keep(std::shared_ptr<Matter> matter, const lock::Subject &subject) {
  index_.emplace(&subject, matter.get());
  try {
    matters_.emplace(matter->id, std::move(matter));
  } catch (...) {
    index_.erase(&subject);
    throw;
  }
}

// Nothing refers to it afterwards.
void Quorum::forget(Matter &matter) noexcept {
  if (matter.is_marked) {
    Matter **link = &first_marked_;
    Matter *previous = nullptr;
    while (*link != &matter) {
      previous = *link;
      link = &previous->next_marked;
    }
    *link = matter.next_marked;
    if (last_marked_ == &matter) last_marked_ = previous;
    matter.is_marked = false;
  }
  if (matter.is_bid) {
    auto &bid = static_cast<Bid &>(matter);
    timers_.remove(bid);
    timers_.dismiss();
    if (bid.lease) index_.erase(bid.lease.get());
  } else {
    for (const auto &ballot : static_cast<Errand &>(matter).ballots) ballot->matter = nullptr;
  }
  if (matter.request) index_.erase(matter.request.get());
  matters_.erase(matter.id);
}

}  // namespace redlatch::quorum
