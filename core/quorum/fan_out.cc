// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// FanOut: release and extend, sent to all votes of a lease; a check, sent to all nodes.
#include <algorithm>
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
  if (acquire == nullptr) wrong = request->lease->why_not_held();
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
  keep(fan_out, request.get());
  if (is_release) {
    // The leases of the nodes belong to the fan-out from here on.
    for (const size_t i : asked) acquire->votes[i].lease->operation = nullptr;
    end_lease(*acquire, Lease::kReleased, {});
  } else {
    acquire->options.ttl = request->extend_to;
    acquire->top_up_at = acquire->extended_at = now;
    mark(acquire);
  }
  for (size_t i = 0; i < asked.size(); i++) {
    lock::LockClient &client = nodes_[asked[i]]->client;
    try {
      client.start(fan_out->requests[i], now);
    } catch (const std::bad_alloc &) {
      fan_out->requests[i]->status = Status::kNoMemory;
      if (is_release) client.release_async(*acquire->votes[asked[i]].lease, now);
    }
  }
  if (is_release) {
    for (const size_t i : asked) acquire->votes[i].reset();
    drop_votes(*acquire, now);
    forget(*acquire);
  }
  mark(fan_out.get());
}

// Each node gets one attempt to connect: the state of a node that is away is known then.
void QuorumClient::start_check(const std::shared_ptr<Request> &request, Nanos now) {
  const auto check = std::make_shared<FanOut>(++last_operation_, request);
  for (size_t i = 0; i < nodes_.size(); i++) {
    auto node_request = std::make_shared<NodeRequest>(request->op);
    node_request->operation = check.get();
    node_request->wait_ms = std::max<int64_t>(request->wait_ms, 0);
    check->requests.push_back(std::move(node_request));
  }
  keep(check, request.get());
  for (size_t i = 0; i < nodes_.size(); i++) {
    try {
      nodes_[i]->client.start(check->requests[i], now);
    } catch (const std::bad_alloc &) {
      check->requests[i]->status = Status::kNoMemory;
    }
  }
  mark(check.get());
}

// No answer will come from `node`.
void QuorumClient::end_checks(size_t node, Nanos now) noexcept {
  for (const auto &[id, operation] : operations_) {
    if (operation->is_acquire || operation->request->op != Request::Op::kCheck) continue;
    nodes_[node]->client.cancel(*static_cast<FanOut &>(*operation).requests[node], now);
  }
}

// It succeeds if a node has answered.
void QuorumClient::review_check(FanOut &check) {
  Status status = Status::kUnavailable;
  std::string whys;
  for (size_t i = 0; i < nodes_.size(); i++) {
    const Status answer = check.requests[i]->status.load();
    if (answer == Status::kPending) return;
    const Outcome &refusal = eligibility_.refusal_of(i);
    const auto &why = refusal.ok() ? nodes_[i]->client.link_failure().message : refusal.message;
    whys += (whys.empty() ? "no node can be asked: " : "; ") + why;
    const bool is_final = answer == Status::kOk || answer == Status::kClosed;
    if (is_final && status != Status::kOk) status = answer;
  }
  const auto request = check.request;
  forget(check);
  finish(*request, status, status == Status::kOk ? "" : whys);
}

void QuorumClient::review(FanOut &fan_out, Nanos now) {
  if (fan_out.request->op == Request::Op::kCheck) return review_check(fan_out);
  const auto result = fan_out.result(majority_, nodes_.size());
  if (!result) return;
  const auto request = fan_out.request;
  forget(fan_out);
  if (QuorumAcquire *acquire = acquire_of(*request->lease); acquire != nullptr) {
    maintain(*acquire, now);
  }
  finish(*request, result->status, result->message);
}

std::optional<Outcome> FanOut::result(size_t majority, size_t node_count) const {
  size_t done = 0;
  size_t open = 0;
  size_t unknown = 0;
  for (const auto &node_request : requests) {
    const Status status = node_request->status.load();
    const bool is_gone = status == Status::kLost || status == Status::kNotHeld;
    if (status == Status::kPending) {
      open++;
      continue;
    }
    if (status == Status::kOk) done++;
    if (status != Status::kOk && !is_gone) unknown++;
  }
  if (done >= majority) return Outcome{};
  if (done + open >= majority) return std::nullopt;
  std::string whys;  // needs memory, which a success must not
  for (const auto &node_request : requests) {
    const bool has_ended = node_request->status.load() != Status::kPending;
    if (has_ended && !node_request->message.empty()) whys += "; " + node_request->message;
  }
  if (done + unknown >= majority) {
    const bool is_release = request->op == Request::Op::kRelease;
    return failure(Status::kOutcomeUnknown, std::string(is_release ? "released" : "extended") +
                                                " on " + std::to_string(done) + " of " +
                                                std::to_string(node_count) +
                                                " nodes; the others did not answer" + whys);
  }
  const std::string reason = "too few nodes still had it" + whys;
  if (request->op == Request::Op::kRelease) {
    request->lease->loss = lock::LossReason::kNoMajority;
    request->lease->reason = reason;
  }
  return failure(Status::kLost, "lock " + quoted(request->lease->name) + " was lost: " + reason);
}

}  // namespace redlatch::quorum
