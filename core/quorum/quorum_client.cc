// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: calls, time and operations.
#include "quorum/quorum_client.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "protocol/answer.h"

namespace redlatch::quorum {

using lock::kNoMemoryRetry;
using lock::Lease;
using lock::Request;
using Phase = QuorumAcquire::Phase;

namespace {

// A message that begins with the address, without it: that is a field of its own.
std::string_view without_address(std::string_view message, std::string_view address) {
  if (!message.starts_with(address)) return message;
  message.remove_prefix(address.size());
  message.remove_prefix(std::min(message.find_first_not_of(": "), message.size()));
  return message;
}

// For messages.
std::string_view what_of(Request::Op op) {
  switch (op) {
    case Request::Op::kUpgrade:
      return "upgrading a lease";
    case Request::Op::kDowngrade:
      return "downgrading a lease";
    case Request::Op::kAttach:
      return "attaching a lease";
    case Request::Op::kInspect:
      return "inspecting a lock";
    case Request::Op::kForce:
      return "a forced release";
    case Request::Op::kList:
      return "listing locks";
    default:
      return "this call";
  }
}

}  // namespace

QuorumClient::QuorumClient(std::span<const Settings> nodes, const QuorumSettings &settings,
                           std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output)
    : settings_(settings),
      output_(output),
      entropy_(seed),
      majority_(timing::majority_of(nodes.size())),
      eligibility_(nodes, settings) {
  lock::Output &reports = *this;
  for (size_t i = 0; i < nodes.size(); i++) {
    nodes_.push_back(std::make_unique<Node>(reports, i, nodes[i], random, entropy_.next()));
  }
}

// The clients of the nodes end their leases, which must not refer to operations any more. Leases of
// users outlive the client.
QuorumClient::~QuorumClient() {
  for (const auto &[id, operation] : operations_) {
    if (!operation->is_acquire) {
      static_cast<FanOut &>(*operation).ignore_results();
      continue;
    }
    auto &acquire = static_cast<QuorumAcquire &>(*operation);
    for (Vote &vote : acquire.votes) vote.reset();
    if (acquire.phase == Phase::kHeld) end_lease(acquire, Lease::kLost, lock::kClientGone);
  }
}

// ---- calls -------------------------------------------------------------------------------------

void QuorumClient::start(const std::shared_ptr<Request> &request, Nanos now) {
  if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
  if (is_shut_) return finish(*request, Status::kClosed, "the Redlock was shut down");
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
      const auto why = lock::needs_one_server(what_of(request->op));
      finish(*request, why.status, why.message);
  }
  review_marked(now);
}

Status QuorumClient::cancel(Request &request, Nanos now) {
  QuorumRequest *operation = find(&request);
  if (request.is_finished() || operation == nullptr) return request.status.load();
  constexpr char kWhy[] = "the request was cancelled";
  if (operation->is_acquire) {
    fail(static_cast<QuorumAcquire &>(*operation), Status::kCancelled, kWhy, now);
  } else {
    finish(request, Status::kCancelled, kWhy);
    forget(*operation);
  }
  review_marked(now);
  return Status::kCancelled;
}

// No other client can attach such a lease, so the nodes need not be asked.
void QuorumClient::detach(Request &request, Nanos now) {
  QuorumAcquire *acquire = acquire_of(*request.lease);
  if (acquire == nullptr || request.lease->state_at(now) != Lease::kHeld) {
    const auto why = request.lease->why_not_held();
    return finish(request, why.status, why.message);
  }
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (acquire->votes[i].state == Vote::State::kYes) {
      nodes_[i]->client.drop(*acquire->votes[i].lease, now);
    }
  }
  end_acquire(*acquire, Lease::kDetached, now);
  finish(request, Status::kOk);
}

// The user gave up a held lease.
void QuorumClient::end_acquire(QuorumAcquire &acquire, Lease::State state, Nanos now) {
  end_lease(acquire, state, {});
  drop_votes(acquire, now);
  forget(acquire);
}

void QuorumClient::release_async(Lease &lease, Nanos now) {
  QuorumAcquire *acquire = acquire_of(lease);
  if (acquire == nullptr) return;
  end_acquire(*acquire, Lease::kReleased, now);
  review_marked(now);
}

void QuorumClient::shut_down(Nanos now) {
  is_shut_ = true;
  while (true) {
    const auto found = std::find_if(operations_.begin(), operations_.end(),
                                    [](const auto &entry) { return entry.second->is_acquire; });
    if (found == operations_.end()) break;
    auto &acquire = static_cast<QuorumAcquire &>(*found->second);
    if (acquire.request) {
      fail(acquire, Status::kClosed, "the Redlock was shut down", now);
      continue;
    }
    end_acquire(acquire, Lease::kReleased, now);
  }
  for (const auto &node : nodes_) node->client.shut_down(now);
  review_marked(now);
}

void QuorumClient::give_up() {
  for (const auto &node : nodes_) node->client.give_up();
  review_marked(0);
  while (!operations_.empty()) {
    QuorumRequest &operation = *operations_.begin()->second;
    finish(*operation.request, Status::kOutcomeUnknown,
           "no answer before the Redlock was shut down");
    forget(operation);
  }
}

size_t QuorumClient::drained_count() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](const auto &node) {
    return node->client.is_drained() || !node->client.is_up();
  }));
}

bool QuorumClient::expects_push() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->client.expects_push(); });
}

bool QuorumClient::is_outstanding() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->client.is_outstanding(); });
}

// ---- time --------------------------------------------------------------------------------------

Nanos QuorumClient::next_due() const {
  Nanos due = timers_.next_due();
  for (const auto &node : nodes_) due = std::min(due, node->client.next_due());
  return due;
}

void QuorumClient::on_timer(Nanos now) {
  for (const auto &node : nodes_) node->client.on_timer(now);
  review_marked(now);
  while (timers_.next_due() <= now) {
    auto &acquire = static_cast<QuorumAcquire &>(timers_.top());
    timers_.remove(acquire);
    mark(&acquire);
    review_marked(now);
  }
}

// ---- reports of the nodes' clients --------------------------------------------------------------

void QuorumClient::send(size_t node, std::span<const std::string_view> argv) {
  output_.send(node, argv);
}

void QuorumClient::finished(lock::Request &request) {
  if (request.op != lock::Request::Op::kConnect) {
    mark(static_cast<NodeRequest &>(request).operation);
  }
}

void QuorumClient::lease_ended(lock::Lease &lease) {
  mark(static_cast<NodeLease &>(lease).operation);
}

void QuorumClient::lease_moved(lock::Lease &lease) {
  mark(static_cast<NodeLease &>(lease).operation);
}

void QuorumClient::drop_link(size_t node) { output_.drop_link(node); }

void QuorumClient::defect_found(std::string_view what) noexcept { output_.defect_found(what); }

// ---- events of a connection --------------------------------------------------------------------

bool QuorumClient::begin_connect(size_t node, Nanos now) {
  return nodes_[node]->client.begin_connect(node, now);
}

void QuorumClient::on_connected(size_t index, const ServerFacts &facts, Nanos now) {
  Node &node = *nodes_[index];
  if (eligibility_.note_restart(index, facts, now)) {
    withdraw_votes(index, failure(Status::kUnavailable, node.settings.address() + " has restarted"),
                   now);
  }
  node.trouble.clear();
  node.last_reply_at = now;
  node.client.on_connected(index, facts, now);
  on_validated(index, eligibility_.on_connected(index, facts), now);
  mark_waiting(node);
  review_marked(now);
}

void QuorumClient::on_connect_failed(size_t index, const Outcome &why, Nanos now) {
  Node &node = *nodes_[index];
  node.client.on_connect_failed(index, why, now);  // first: what follows may fail
  eligibility_.on_connect_failed(index, why);
  end_checks(index, now);
  mark_waiting(node);
  review_marked(now);
}

void QuorumClient::on_disconnected(size_t index, Nanos now) noexcept {
  nodes_[index]->client.on_disconnected(index, now);
  mark_waiting(*nodes_[index]);
  review_marked(now);
}

void QuorumClient::on_reply(size_t index, const Reply &reply, Nanos now) {
  Node &node = *nodes_[index];
  node.last_reply_at = now;
  node.client.on_reply(index, reply, now);
  if (protocol::is_of_replica(reply)) on_validated(index, eligibility_.on_replica(index), now);
  review_marked(now);
}

void QuorumClient::on_push(size_t index, std::string_view message, Nanos now) {
  nodes_[index]->last_reply_at = now;
  nodes_[index]->client.on_push(index, message, now);
  review_marked(now);
}

void QuorumClient::on_invalidated(size_t index, std::string_view key, Nanos now) {
  nodes_[index]->client.on_invalidated(index, key, now);
  review_marked(now);
}

void QuorumClient::on_all_invalidated(size_t index, Nanos now) {
  nodes_[index]->client.on_all_invalidated(index, now);
  review_marked(now);
}

// ---- nodes -------------------------------------------------------------------------------------

// A refused node is disconnected; the next request for votes tries it again, because the cause may
// be gone.
void QuorumClient::on_validated(size_t node, bool is_news, Nanos now) {
  const Outcome &refusal = eligibility_.refusal_of(node);
  if (is_news) output_.node_validated(node, refusal);
  if (refusal.ok()) return;
  output_.drop_link(node);
  end_checks(node, now);
  // The data of its primary replaces its grants.
  if (eligibility_.is_replica(node)) withdraw_votes(node, refusal, now);
}

// The node may grant a forgotten lock to other clients. After a restart they do not ask it before
// the guard has passed, and by then every lease that counted its vote has ended.
void QuorumClient::withdraw_votes(size_t node, const Outcome &why, Nanos now) {
  for (const auto &[id, operation] : operations_) {
    if (!operation->is_acquire) continue;
    auto &acquire = static_cast<QuorumAcquire &>(*operation);
    const auto state = acquire.votes[node].state;
    const bool is_open = state == Vote::State::kAsked || state == Vote::State::kRaising;
    if (state != Vote::State::kYes && !is_open) continue;
    mark_unavailable(acquire, node, why, now);
    mark(&acquire);
  }
}

Outcome QuorumClient::why_no_vote(const Node &node, Nanos now) const {
  const bool is_away = !node.client.is_up() && eligibility_.refusal_of(node.index).ok();
  return is_away ? node.client.link_failure() : eligibility_.why_no_vote(node.index, now);
}

size_t QuorumClient::voter_count(Nanos now) const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(),
                                           [&](const auto &node) { return can_vote(*node, now); }));
}

// Start connecting a node that is not connected.
void QuorumClient::keep_connected(Node &node, Nanos now) noexcept {
  if (node.client.is_up() && eligibility_.refusal_of(node.index).ok()) return;
  eligibility_.on_connecting(node.index);
  if (node.client.is_up()) return;  // its link is dropped first, then connected again
  if (node.connection && !node.connection->is_finished()) return;
  try {
    const auto connection = std::make_shared<Request>(Request::Op::kConnect);
    node.client.start(connection, now);
    node.connection = connection;
  } catch (const std::bad_alloc &) {
    eligibility_.on_no_attempt(node.index);  // the next round tries again
  }
}

void QuorumClient::connect_now(Nanos now) {
  for (const auto &node : nodes_) {
    if (!node->client.is_up()) node->client.connect_soon(now);
  }
}

// ---- operations --------------------------------------------------------------------------------

void QuorumClient::finish(Request &request, Status status, std::string_view message) noexcept {
  request.complete(status, message);
  output_.finished(request);
}

void QuorumClient::mark(QuorumRequest *operation) noexcept {
  if (operation == nullptr || operation->is_marked) return;
  operation->is_marked = true;
  operation->next_marked = nullptr;
  (last_marked_ != nullptr ? last_marked_->next_marked : first_marked_) = operation;
  last_marked_ = operation;
}

// Mark the operations that depend on the connection to `node`.
void QuorumClient::mark_waiting(const Node &node) noexcept {
  for (const auto &[id, operation] : operations_) {
    const bool is_awaited =
        operation->is_acquire && static_cast<QuorumAcquire &>(*operation).votes[node.index].state ==
                                     Vote::State::kConnecting;
    if (operation->request || is_awaited) mark(operation.get());
  }
}

// Review the marked operations. Without memory a call fails, and its votes are released.
void QuorumClient::review_marked(Nanos now) noexcept {
  while (first_marked_ != nullptr) {
    QuorumRequest &operation = *first_marked_;
    const auto keep = operations_.find(operation.id)->second;
    first_marked_ = operation.next_marked;
    if (first_marked_ == nullptr) last_marked_ = nullptr;
    operation.is_marked = false;
    try {
      if (!operation.is_acquire) {
        review(static_cast<FanOut &>(operation), now);
      } else {
        review(static_cast<QuorumAcquire &>(operation), now);
      }
    } catch (const std::bad_alloc &) {
      give_up(operation, now);
    }
  }
}

// After a review that ran out of memory. A held lease is reviewed again soon.
void QuorumClient::give_up(QuorumRequest &operation, Nanos now) noexcept {
  if (!operation.is_acquire) {
    const auto request = operation.request;
    forget(operation);
    return finish(*request, Status::kOutcomeUnknown);  // the requests to nodes continue
  }
  auto &acquire = static_cast<QuorumAcquire &>(operation);
  if (acquire.request) return fail(acquire, Status::kNoMemory, {}, now);
  timers_.set(acquire, now + kNoMemoryRetry);
}

QuorumRequest *QuorumClient::find(const void *subject) const {
  const auto found = index_.find(subject);
  return found == index_.end() ? nullptr : found->second;
}

// The acquire that holds `lease`.
QuorumAcquire *QuorumClient::acquire_of(const Lease &lease) const {
  auto *acquire = static_cast<QuorumAcquire *>(find(&lease));
  return acquire != nullptr && acquire->phase == Phase::kHeld ? acquire : nullptr;
}

void QuorumClient::keep(std::shared_ptr<QuorumRequest> operation, const void *subject) {
  index_.emplace(subject, operation.get());
  try {
    operations_.emplace(operation->id, std::move(operation));
  } catch (...) {
    index_.erase(subject);
    throw;
  }
}

// Nothing refers to it afterwards.
void QuorumClient::forget(QuorumRequest &operation) noexcept {
  if (operation.is_marked) {
    QuorumRequest **link = &first_marked_;
    QuorumRequest *previous = nullptr;
    while (*link != &operation) {
      previous = *link;
      link = &previous->next_marked;
    }
    *link = operation.next_marked;
    if (last_marked_ == &operation) last_marked_ = previous;
    operation.is_marked = false;
  }
  if (operation.is_acquire) {
    auto &acquire = static_cast<QuorumAcquire &>(operation);
    timers_.remove(acquire);
    timers_.dismiss();
    if (acquire.lease) index_.erase(acquire.lease.get());
  } else {
    static_cast<FanOut &>(operation).ignore_results();
  }
  if (operation.request) index_.erase(operation.request.get());
  operations_.erase(operation.id);
}

void QuorumClient::describe(std::span<NodeStatus> nodes, Nanos now) {
  for (const auto &node : nodes_) {
    NodeStatus &status = nodes[node->index];
    const Outcome why = why_no_vote(*node, now);
    if (why.ok() && node->trouble.empty()) continue;
    const bool is_away = !node->client.is_up() && eligibility_.refusal_of(node->index).ok();
    if (!why.ok()) {
      if (is_away && status.state == NodeState::kUnknown) continue;
      status.state = is_away ? NodeState::kAway : NodeState::kNoVote;
      status.reason = without_address(why.message, status.address);
    } else {
      status.state = NodeState::kNoVote;
      status.reason = node->trouble;
    }
  }
}

}  // namespace redlatch::quorum
