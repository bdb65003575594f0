// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Quorum: what all votes of a lease are asked, to be released or extended.
#include <new>

#include "base/text.h"
#include "quorum/quorum.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;

void Quorum::start_errand(const std::shared_ptr<Request> &request, Nanos now) {
  Bid *bid = bid_of(*request->lease);
  if (bid != nullptr) look_after(*bid, now);  // which may find that it is over
  bid = bid_of(*request->lease);
  const bool is_release = request->op == Request::Op::kRelease;
  Outcome wrong;
  if (bid == nullptr) wrong = lock::Engine::why_not_held(*request->lease);
  if (wrong.ok() && !is_release) wrong = check(*request);
  if (!wrong.ok()) return finish(*request, wrong.status, wrong.message);
  const auto errand = std::make_shared<Errand>(++last_matter_, request);
  errand->ballots.reserve(nodes_.size());
  std::vector<size_t> asked;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (bid->votes[i].state != Vote::State::kYes) continue;
    auto ballot = std::make_shared<Ballot>(request->op);
    ballot->matter = errand.get();
    ballot->lease = bid->votes[i].share;
    ballot->extend_to = request->extend_to;
    errand->ballots.push_back(std::move(ballot));
    asked.push_back(i);
  }
  keep(errand, *request);
  if (is_release) {
    // Not looked after any more: what becomes of the shares is this errand's business.
    for (const size_t i : asked) bid->votes[i].share->matter = nullptr;
    end_lease(*bid, Lease::kReleased, {});
  } else {
    bid->options.lease = request->extend_to;
    bid->top_up_at = bid->extended_at = now;
    mark(bid);
  }
  for (size_t i = 0; i < asked.size(); i++) {
    lock::Engine &engine = nodes_[asked[i]]->engine;
    try {
      engine.start(errand->ballots[i], now);
    } catch (const std::bad_alloc &) {
      errand->ballots[i]->status = Status::kNoMemory;
      if (is_release) engine.abandon(*bid->votes[asked[i]].share, now);
    }
  }
  if (is_release) {
    for (const size_t i : asked) bid->votes[i].let_go();
    drop_votes(*bid, now);
    forget(*bid);
  }
  mark(errand.get());
}

void Quorum::review(Errand &errand, Nanos now) {
  size_t done = 0;
  size_t open = 0;
  size_t unknown = 0;
  for (const auto &ballot : errand.ballots) {
    const Status status = ballot->status.load();
    if (status == Status::kPending) open++;
    if (status == Status::kOk) done++;
    const bool is_gone = status == Status::kLost || status == Status::kNotHeld;
    if (status != Status::kPending && status != Status::kOk && !is_gone) unknown++;
  }
  if (done < majority_ && done + open >= majority_) return;
  const auto request = errand.request;
  const Outcome why = done >= majority_ ? Outcome{} : why_not(errand, done, unknown);
  forget(errand);
  if (Bid *bid = bid_of(*request->lease); bid != nullptr) look_after(*bid, now);
  finish(*request, why.status, why.message);
}

Outcome Quorum::why_not(const Errand &errand, size_t done, size_t unknown) const {
  const Lease &lease = *errand.request->lease;
  const bool is_release = errand.request->op == Request::Op::kRelease;
  std::string whys;
  for (const auto &ballot : errand.ballots) {
    if (ballot->is_finished() && !ballot->message.empty()) whys += "; " + ballot->message;
  }
  if (done + unknown >= majority_) {
    return failure(Status::kOutcomeUnknown, std::string(is_release ? "released" : "extended") +
                                                " on " + std::to_string(done) + " of " +
                                                std::to_string(nodes_.size()) +
                                                " nodes; the others did not answer" + whys);
  }
  return failure(Status::kLost,
                 "lock " + quoted(lease.name) + " was lost: too few nodes still had it" + whys);
}

}  // namespace redlatch::quorum
