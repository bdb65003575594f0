// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/fan_out.h"

#include <algorithm>
#include <new>

#include "quorum/quorum_acquire.h"

namespace redlatch::quorum {

using lock::Request;

FanOut::~FanOut() {
  for (const Part &part : parts_) part.request->owner = nullptr;
}

NodeRequest &FanOut::add(size_t node) {
  parts_.push_back({node, std::make_shared<NodeRequest>(request_->op)});
  NodeRequest &request = *parts_.back().request;
  request.owner = this;
  return request;
}

// Each node gets one attempt to connect: the state of a node that is away is known then.
void FanOut::add_all_nodes() {
  for (size_t i = 0; i < nodes_.size(); i++) {
    add(i).wait_ms = std::max<int64_t>(request_->wait_ms, 0);
  }
}

void FanOut::add_votes(const Votes &votes) {
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (votes[i].state != Vote::State::kYes) continue;
    NodeRequest &request = add(i);
    request.lease = votes[i].lease;
    request.extend_to = request_->extend_to;
  }
}

void FanOut::start(Nanos now) noexcept {
  for (const Part &part : parts_) {
    try {
      nodes_[part.node].client.start(part.request, now);
    } catch (const std::bad_alloc &) {
      part.request->status = Status::kNoMemory;
    }
  }
  mark();
}

void FanOut::on_unreachable(size_t node, Nanos now) noexcept {
  if (request_->op == Request::Op::kCheck) nodes_[node].client.cancel(*parts_[node].request, now);
}

// It succeeds if a node has answered.
void FanOut::review_check() {
  Status status = Status::kUnavailable;
  std::string whys;
  for (const Part &part : parts_) {
    const Status answer = part.request->status.load();
    if (answer == Status::kPending) return;
    const Outcome &refusal = nodes_.eligibility().refusal_of(part.node);
    const auto &why = refusal.ok()
                          ? nodes_[part.node].client.first_server().session.failure().message
                          : refusal.message;
    words::add_reason(whys, why);
    const bool is_final = answer == Status::kOk || answer == Status::kClosed;
    if (is_final && status != Status::kOk) status = answer;
  }
  end(status, status == Status::kOk ? "" : words::no_node_asked(whys));
}

void FanOut::review(Nanos now) {
  if (request_->op == Request::Op::kCheck) return review_check();
  const Outcome outcome = result();
  if (outcome.status == Status::kPending) return;
  forget();
  if (auto *acquire = QuorumAcquire::holder_of(*request_->lease, table_)) acquire->maintain(now);
  answer(outcome.status, outcome.message);
}

Outcome FanOut::result() const {
  const size_t majority = nodes_.majority();
  size_t done = 0;
  size_t open = 0;
  size_t unknown = 0;
  for (const Part &part : parts_) {
    const Status status = part.request->status.load();
    const bool is_gone = status == Status::kLost || status == Status::kNotHeld;
    if (status == Status::kPending) {
      open++;
      continue;
    }
    if (status == Status::kOk) done++;
    if (status != Status::kOk && !is_gone) unknown++;
  }
  if (done >= majority) return {};
  if (done + open >= majority) return {Status::kPending, {}};
  std::string whys;  // needs memory, which a success must not
  for (const Part &part : parts_) {
    const bool has_ended = part.request->status.load() != Status::kPending;
    if (has_ended && !part.request->message.empty()) words::add_reason(whys, part.request->message);
  }
  const bool is_release = request_->op == Request::Op::kRelease;
  if (done + unknown >= majority) {
    return failure(Status::kOutcomeUnknown,
                   words::done_in_part(is_release, nodes_.counted(done), whys));
  }
  const std::string reason = words::too_few_had_it(whys);
  if (is_release) {
    request_->lease->loss = lock::LossReason::kNoMajority;
    request_->lease->reason = reason;
  }
  return failure(Status::kLost, lock::words::lost(request_->lease->name, reason));
}

}  // namespace redlatch::quorum
