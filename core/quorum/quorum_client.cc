// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/quorum_client.h"

#include <algorithm>

#include "protocol/answer.h"
#include "quorum/fan_out.h"

namespace redlatch::quorum {

using lock::Lease;
using lock::Request;

QuorumClient::QuorumClient(std::span<const Settings> nodes, const QuorumSettings &settings,
                           std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output)
    : output_(output), nodes_(nodes, settings, random, seed, *this), requests_(output) {}

// ---- calls -------------------------------------------------------------------------------------

void QuorumClient::start(const std::shared_ptr<Request> &request, Nanos now) {
  if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
  if (is_shut_) return refuse(*request, failure(Status::kClosed, words::kShutDown));
  if (request->arguments) return refuse(*request, lock::needs_one_server(words::what_of(*request)));
  switch (request->op) {
    case Request::Op::kConnect:
    case Request::Op::kAcquire:
      start_acquire(request, now);
      break;
    case Request::Op::kRelease:
    case Request::Op::kExtend:
      start_fan_out(request, now);
      break;
    case Request::Op::kDetach:
      detach(*request, now);
      break;
    case Request::Op::kCheck:
      start_check(request, now);
      break;
    default:
      refuse(*request, lock::needs_one_server(words::what_of(*request)));
  }
  requests_.review_marked(now);
}

void QuorumClient::refuse(Request &request, const Outcome &why) {
  requests_.finish(request, why.status, why.message);
}

Outcome QuorumClient::check(const Request &request) const {
  const Nanos lease = request.op == Request::Op::kExtend ? request.extend_to : request.options.ttl;
  const QuorumSettings &settings = nodes_.settings();
  if (nodes_.eligibility().is_guarded() && lease > settings.restart_guard) {
    return failure(Status::kInvalid,
                   words::ttl_above_guard(settings.restart_guard / kMs, lease / kMs));
  }
  if (settings.min_validity >= lease) {
    return failure(Status::kInvalid,
                   words::ttl_below_validity(settings.min_validity / kMs, lease / kMs));
  }
  return {};
}

void QuorumClient::start_acquire(const std::shared_ptr<Request> &request, Nanos now) {
  const Outcome wrong = request->op == Request::Op::kAcquire ? check(*request) : Outcome{};
  if (!wrong.ok()) return refuse(*request, wrong);
  const auto acquire = std::make_shared<QuorumAcquire>(nodes_, requests_, request, now);
  requests_.add(acquire);
  acquire->start(now);
}

void QuorumClient::start_fan_out(const std::shared_ptr<Request> &request, Nanos now) {
  const bool is_release = request->op == Request::Op::kRelease;
  QuorumAcquire *acquire = QuorumAcquire::holder_of(*request->lease, requests_);
  if (acquire != nullptr) acquire->maintain(now);  // may end the lease
  acquire = QuorumAcquire::holder_of(*request->lease, requests_);
  Outcome wrong;
  if (acquire == nullptr) wrong = request->lease->why_not_held();
  if (wrong.ok() && !is_release) wrong = check(*request);
  if (!wrong.ok()) return refuse(*request, wrong);
  const auto fan_out = std::make_shared<FanOut>(nodes_, requests_, request);
  fan_out->add_votes(acquire->votes());
  requests_.add(fan_out);
  is_release ? acquire->end_lease(Lease::kReleased) : acquire->extend(request->extend_to, now);
  fan_out->start(now);
  if (is_release) acquire->give_back(now);
}

void QuorumClient::start_check(const std::shared_ptr<Request> &request, Nanos now) {
  const auto fan_out = std::make_shared<FanOut>(nodes_, requests_, request);
  fan_out->add_all_nodes();
  requests_.add(fan_out);
  fan_out->start(now);
}

void QuorumClient::detach(Request &request, Nanos now) {
  QuorumAcquire *acquire = QuorumAcquire::holder_of(*request.lease, requests_);
  if (acquire == nullptr || request.lease->state_at(now) != Lease::kHeld) {
    return refuse(request, request.lease->why_not_held());
  }
  acquire->detach(now);
  requests_.finish(request, Status::kOk, {});
}

Status QuorumClient::cancel(Request &request, Nanos now) {
  QuorumRequest *found = requests_.find(&request);
  if (request.is_finished() || found == nullptr) return request.status.load();
  found->fail(Status::kCancelled, lock::words::kCancelled, now);
  requests_.review_marked(now);
  return Status::kCancelled;
}

void QuorumClient::release_async(Lease &lease, Nanos now) {
  QuorumAcquire *acquire = QuorumAcquire::holder_of(lease, requests_);
  if (acquire == nullptr) return;
  acquire->end_lease(Lease::kReleased);
  acquire->give_back(now);
  requests_.review_marked(now);
}

void QuorumClient::shut_down(Nanos now) {
  is_shut_ = true;
  requests_.for_each([&](QuorumRequest &request) { request.shut_down(now); });
  for (Node &node : nodes_) node.client.shut_down(now);
  requests_.review_marked(now);
}

void QuorumClient::give_up() {
  for (Node &node : nodes_) node.client.give_up();
  requests_.review_marked(0);
  requests_.for_each([](QuorumRequest &request) {
    request.fail(Status::kOutcomeUnknown, words::kUnansweredAtShutdown, 0);
  });
}

size_t QuorumClient::drained_count() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const Node &node) {
    return node.client.drained_count() == 1 || !node.client.first_server().session.is_up();
  }));
}

const Request *QuorumClient::waits_for_itself(const Request &request) const {
  if (request.op != Request::Op::kAcquire) return nullptr;
  const auto *acquire = static_cast<const QuorumAcquire *>(requests_.find(&request));
  return acquire != nullptr && acquire->waits_for_itself() ? &request : nullptr;
}

// ---- time --------------------------------------------------------------------------------------

Nanos QuorumClient::next_due() const {
  Nanos due = requests_.next_due();
  for (const Node &node : nodes_) due = std::min(due, node.client.next_due());
  return due;
}

void QuorumClient::on_timer(Nanos now) {
  for (Node &node : nodes_) node.client.on_timer(now);
  requests_.review_marked(now);
  requests_.on_timer(now);
}

// ---- reports of the nodes' clients --------------------------------------------------------------

void QuorumClient::finished(Request &request) {
  if (request.op == Request::Op::kConnect) return;
  if (auto *owner = static_cast<NodeRequest &>(request).owner) owner->mark();
}

void QuorumClient::lease_ended(Lease &lease) {
  if (auto *owner = static_cast<NodeLease &>(lease).owner) owner->mark();
}

// ---- events of a connection --------------------------------------------------------------------

void QuorumClient::on_connected(size_t index, const ServerFacts &facts, Nanos now) {
  Node &node = nodes_[index];
  if (nodes_.eligibility().note_restart(index, facts, now)) {
    withdraw_votes(index, failure(Status::kUnavailable, words::has_restarted(node.settings)), now);
  }
  node.trouble.clear();
  node.last_reply_at = now;
  node.client.on_connected(index, facts, now);
  on_validated(index, nodes_.eligibility().on_connected(index, facts), now);
  mark_waiting(index);
  requests_.review_marked(now);
}

void QuorumClient::on_connect_failed(size_t index, const Outcome &why, Nanos now) {
  nodes_[index].client.on_connect_failed(index, why, now);  // first: what follows may fail
  nodes_.eligibility().on_connect_failed(index, why);
  end_checks(index, now);
  mark_waiting(index);
  requests_.review_marked(now);
}

void QuorumClient::on_disconnected(size_t index, Nanos now) noexcept {
  nodes_[index].client.on_disconnected(index, now);
  mark_waiting(index);
  requests_.review_marked(now);
}

void QuorumClient::on_reply(size_t index, const Reply &reply, Nanos now) {
  nodes_[index].last_reply_at = now;
  nodes_[index].client.on_reply(index, reply, now);
  if (protocol::is_of_replica(reply)) {
    on_validated(index, nodes_.eligibility().on_replica(index), now);
  }
  requests_.review_marked(now);
}

void QuorumClient::on_push(size_t index, std::string_view message, Nanos now) {
  nodes_[index].last_reply_at = now;
  nodes_[index].client.on_push(index, message, now);
  requests_.review_marked(now);
}

// A refused node is disconnected; the next request for votes tries it again, because the cause may
// be gone.
void QuorumClient::on_validated(size_t node, bool is_news, Nanos now) {
  const Outcome &refusal = nodes_.eligibility().refusal_of(node);
  if (is_news) output_.node_validated(node, refusal);
  if (refusal.ok()) return;
  output_.drop_link(node);
  end_checks(node, now);
  // The data of its primary replaces its grants.
  if (nodes_.eligibility().is_replica(node)) withdraw_votes(node, refusal, now);
}

void QuorumClient::withdraw_votes(size_t node, const Outcome &why, Nanos now) {
  requests_.for_each([&](QuorumRequest &request) { request.withdraw_vote(node, why, now); });
}

void QuorumClient::mark_waiting(size_t node) noexcept {
  requests_.for_each([&](QuorumRequest &request) {
    if (request.awaits(node)) request.mark();
  });
}

void QuorumClient::end_checks(size_t node, Nanos now) noexcept {
  requests_.for_each([&](QuorumRequest &request) { request.on_unreachable(node, now); });
}

}  // namespace redlatch::quorum
