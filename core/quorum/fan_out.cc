// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: release and extend, sent to all votes of a lease.
#include <new>

#include "base/text.h"
#include "quorum/quorum_client.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;

void QuorumClient::start_fan_out(const std::shared_ptr<Request> &request, Nanos now) {
  QuorumAcquire *acquire = acquire_of(*request->lease);
  if (acquire != nullptr) maintain(*acquire, now);  // may end the lease
  acquire = acquire_of(*request->lease);
  const bool is_release = request->op == Request::Op::kRelease;
  Outcome wrong;
  if (acquire == nullptr) wrong = lock::Engine::why_not_held(*request->lease);
  if (wrong.ok() && !is_release) wrong = check(*request);
  if (!wrong.ok()) return finish(*request, wrong.status, wrong.message);
  const auto fan_out = std::make_shared<FanOut>(++last_operation_, request);
  fan_out->requests.reserve(nodes_.size());
  std::vector<size_t> asked;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (acquire->votes[i].state != Vote::State::kYes) continue;
    auto node_request = std::make_shared<NodeRequest>(request->op);
    node_request->operation = fan_out.get();
    node_request->lease = acquire->votes[i].lease;
    node_request->extend_to = request->extend_to;
    fan_out->requests.push_back(std::move(node_request));
    asked.push_back(i);
  }
  keep(fan_out, *request);
  if (is_release) {
    // The leases of the nodes belong to the fan-out from here on.
    for (const size_t i : asked) acquire->votes[i].lease->operation = nullptr;
    end_lease(*acquire, Lease::kReleased, {});
  } else {
    acquire->options.lease = request->extend_to;
    acquire->top_up_at = acquire->extended_at = now;
    mark(acquire);
  }
  for (size_t i = 0; i < asked.size(); i++) {
    lock::Engine &engine = nodes_[asked[i]]->engine;
    try {
      engine.start(fan_out->requests[i], now);
    } catch (const std::bad_alloc &) {
      fan_out->requests[i]->status = Status::kNoMemory;
      if (is_release) engine.abandon(*acquire->votes[asked[i]].lease, now);
    }
  }
  if (is_release) {
    for (const size_t i : asked) acquire->votes[i].reset();
    drop_votes(*acquire, now);
    forget(*acquire);
  }
  mark(fan_out.get());
}

void QuorumClient::review(FanOut &fan_out, Nanos now) {
  size_t done = 0;
  size_t open = 0;
  size_t unknown = 0;
  for (const auto &node_request : fan_out.requests) {
    const Status status = node_request->status.load();
    if (status == Status::kPending) open++;
    if (status == Status::kOk) done++;
    const bool is_gone = status == Status::kLost || status == Status::kNotHeld;
    if (status != Status::kPending && status != Status::kOk && !is_gone) unknown++;
  }
  if (done < majority_ && done + open >= majority_) return;
  const auto request = fan_out.request;
  const Outcome why = done >= majority_ ? Outcome{} : why_not(fan_out, done, unknown);
  forget(fan_out);
  if (QuorumAcquire *acquire = acquire_of(*request->lease); acquire != nullptr) {
    maintain(*acquire, now);
  }
  finish(*request, why.status, why.message);
}

Outcome QuorumClient::why_not(const FanOut &fan_out, size_t done, size_t unknown) const {
  const Lease &lease = *fan_out.request->lease;
  const bool is_release = fan_out.request->op == Request::Op::kRelease;
  std::string whys;
  for (const auto &node_request : fan_out.requests) {
    const bool has_message = node_request->is_finished() && !node_request->message.empty();
    if (has_message) whys += "; " + node_request->message;
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
