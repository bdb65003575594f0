// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: requests, replies and the time.
#include "lock/lock_client.h"

#include <algorithm>
#include <utility>

#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

// True if the server has answered all that was given back to it.
bool is_drained(const Server &server, const Locks::Records &records) {
  const auto &calls = server.session.in_flight();
  return std::none_of(calls.begin(), calls.end(),
                      [](const Call &call) { return call.kind->delays_end(call); }) &&
         (server.lock_count == 0 ||
          std::all_of(records.begin(), records.end(), [&server](const auto &entry) {
            const TokenRecord &record = *entry.second;
            return &record.server() != &server ||
                   (record.phase == TokenRecord::Phase::kCleanup &&
                    record.cleanup()->was_answered() && !record.releaser);
          }));
}

}  // namespace

LockClient::LockClient(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
                       Output &output, size_t node)
    : output_(output),
      entropy_(seed),
      results_(timers_, output),
      locks_(timers_),
      waiters_({settings, output, entropy_, timers_, results_, redirects_, locks_}, cleanups_,
               leases_),
      leases_({settings, output, entropy_, timers_, results_, redirects_, locks_}, cleanups_,
              waiters_),
      cleanups_({settings, output, entropy_, timers_, results_, redirects_, locks_}, leases_),
      requests_({settings, output, entropy_, timers_, results_, redirects_, locks_}, cleanups_,
                leases_, waiters_) {
  servers_.emplace_back(settings, random, entropy_, output, node,
                        Server::Owners{leases_, *this, requests_});
}

// Leases outlive the client and must not point into it; callers and their names refer to each
// other.
LockClient::~LockClient() {
  for (auto &[id, record] : locks_.records()) {
    if (record->lease) leases_.end_lease(*record, Lease::kLost, LossReason::kClosed);
    waiters_.forget_callers(*record);
    record->releaser = nullptr;
  }
}

// ---- requests ----------------------------------------------------------------------------------

void LockClient::start(const std::shared_ptr<Request> &request, Server &server, Nanos now) {
  timers_.admit();
  if (request->wait_ms > kMaxWaitMs) request->wait_ms = -1;
  if (is_shut_) return results_.finish(*request, Status::kClosed, words::kShutDown);
  request->server = &server;
  try {
    switch (request->op) {
      case Request::Op::kAcquire:
        return waiters_.start(request, now);
      case Request::Op::kRelease:
        return waiters_.release(request, now);
      case Request::Op::kUpgrade:
        return leases_.start_upgrade(request, now);
      default:
        return requests_.start(request, now);
    }
  } catch (...) {
    if (!request->is_finished()) timers_.dismiss();
    throw;
  }
}

Status LockClient::cancel(Request &request, Nanos now) {
  if (request.is_finished()) return request.status.load();
  end_request(request, Status::kCancelled, words::kCancelled, now);
  return Status::kCancelled;
}

void LockClient::end_request(Request &request, Status status, std::string_view message, Nanos now) {
  switch (request.op) {
    case Request::Op::kAcquire:
      if (is_confirming(request))
        return leases_.fail_confirmation(*request.record, status, message, now);
      results_.finish(request, status, message);
      return waiters_.remove(request, now);
    case Request::Op::kRelease:
      return cleanups_.answer_releaser(*request.record, status, message);
    case Request::Op::kUpgrade:
      return leases_.give_up_upgrade(*request.record, status, message, now);
    default:
      return requests_.give_up(request, status, message, now);
  }
}

void LockClient::on_request_due(Request &request, Nanos now) noexcept {
  if (now < request.wait_until) return waiters_.on_slow(request, now);
  const Outcome why = why_late(request);
  end_request(request, why.status, why.message, now);
}

Outcome LockClient::why_late(const Request &request) const noexcept {
  switch (request.op) {
    case Request::Op::kAcquire:
      if (is_confirming(request)) return Confirmations::why_late(*request.record);
      return waiters_.why_not_yet(
          request, request.record != nullptr ? *request.record : *request.lock->place());
    case Request::Op::kUpgrade:
      if (request.record->replicas.is_writer_unconfirmed) {
        return Confirmations::why_late(*request.record);
      }
      if (const auto &session = request.record->server().session; !session.is_up()) {
        return copy_of(session.failure());
      }
      return {Status::kTimeout, words::not_upgraded(request.lease->name)};
    case Request::Op::kRelease:
      return {Status::kOutcomeUnknown, words::same(words::kReleaseUnanswered)};
    default:
      return requests_.why_late(request);
  }
}

// ---- the connection ----------------------------------------------------------------------------

void LockClient::on_reply(size_t node, const Reply &reply, Nanos now) {
  Server &server = at(node);
  server.session.on_reply(reply, now);
  waiters_.send_throttled(server, now);
}

void LockClient::on_push(size_t node, std::string_view message, Nanos now) {
  const auto push = protocol::parse_push(message);
  if (!push) return;
  Server &server = at(node);
  const auto record = locks_.find(push->rid);
  if (!record || &record->server() != &server) {
    if (!server.health.note_push(push->rid)) cleanups_.give_back_stale(server, *push, now);
    return;
  }
  if (push->kind == protocol::Push::Kind::kGrant)
    return waiters_.on_grant_push(*record, *push, now);
  if (push->kind == protocol::Push::Kind::kRecall)
    return waiters_.on_recall_push(*record, *push, now);
  if (push->kind == protocol::Push::Kind::kValue) return waiters_.on_value_push(*record, now);
  waiters_.on_notice_push(*record, *push, now);
}

// With or without the name: otherwise the request or the try that waits for it would be stuck.
void LockClient::on_name(operate::NameQuery &asked, std::string_view name, Nanos now) {
  auto &query = static_cast<NameQuery &>(asked);
  const auto record = std::exchange(query.record, nullptr);
  if (record && !record->is_gone && record->front() != nullptr) {
    waiters_.refuse_try(*record, Status::kBusy,
                        words::busy(record->lock->name, query.obstacle, {{}, name}), now);
  }
  if (query.request) requests_.on_name(*query.request, query.cid, name);
}

// ---- the time ----------------------------------------------------------------------------------

Nanos LockClient::next_due() const {
  Nanos due = timers_.next_due();
  for (const Server &server : servers_) {
    if (server.has_work()) due = std::min(due, server.session.connect_at());
    due = std::min({due, server.session.due(), server.names.due(), server.health.due(),
                    server.confirmations.due(), server.resend_at});
  }
  return due;
}

void LockClient::check_later(size_t node, Nanos due) {
  if (!is_shut_) at(node).health.check_at(due);
}

void LockClient::tend(Server &server, Nanos now) {
  if (server.session.late_at(server.settings.command_timeout) <= now) server.session.drop();
  if (server.names.due() <= now) server.names.announce(locks_.name_due(server), now);
  if (server.health.due() <= now) server.health.check(server.features, now);
  if (server.confirmations.due() <= now) server.confirmations.on_due(now);
  if (server.resend_at <= now) requests_.resend_postponed(server, now);
  server.session.check_messages(server.expects_push(), now);
}

void LockClient::on_timer(Nanos now) {
  for (Server &server : servers_) tend(server, now);
  bool is_renewing = false;
  while (!timers_.empty()) {
    Timed &timed = timers_.top();
    if (timed.kind == Timed::Kind::kRequest) {
      if (timed.due > now) return;
      // A request with a timer is in a list that keeps it.
      on_request_due(static_cast<Request &>(timed), now);
      continue;
    }
    const auto record = static_cast<TokenRecord &>(timed).shared_from_this();
    // Once for each: one that could not be renewed may still be due within the slack.
    const bool is_renewal = record->phase == Phase::kHeld &&
                            record->due == record->held()->renewal_at() &&
                            record->timer_ran_at != now;
    const Nanos slack =
        is_renewing && is_renewal ? timing::renewal_slack(record->held()->ttl()) : 0;
    if (timed.due > now + slack) return;
    is_renewing = is_renewing || is_renewal;
    timers_.remove(*record);
    record->timer_ran_at = now;
    switch (record->phase) {
      case Phase::kAsking:
      case Phase::kQueued:
        waiters_.on_due(*record, now);
        break;
      case Phase::kHeld:
        leases_.on_due(*record, now);
        break;
      case Phase::kRetained:
        waiters_.on_retained_due(*record, now);
        break;
      case Phase::kDetaching:  // the answer, or the end of the request, decides
        break;
      case Phase::kCleanup:
        cleanups_.on_due(*record, now);
    }
  }
}

size_t LockClient::drained_count() const {
  return static_cast<size_t>(
      std::count_if(servers_.begin(), servers_.end(),
                    [this](const Server &server) { return is_drained(server, locks_.records()); }));
}

bool LockClient::is_idle() const {
  return locks_.names().empty() &&
         std::none_of(servers_.begin(), servers_.end(),
                      [](const Server &server) { return server.has_work(); });
}

bool LockClient::expects_push() const {
  return std::any_of(servers_.begin(), servers_.end(),
                     [](const Server &server) { return server.expects_push(); });
}

bool LockClient::is_outstanding() const {
  return std::any_of(servers_.begin(), servers_.end(), [](const Server &server) {
    return server.expects_push() || !server.session.in_flight().empty();
  });
}

void LockClient::describe(std::span<NodeStatus> nodes, Nanos now) {
  for (size_t i = 0; i < nodes.size() && i < servers_.size(); i++) {
    nodes[i].clock_difference = servers_[i].clock.offset(now);
  }
}

void LockClient::give_up() {
  for (const auto &[id, record] : locks_.records()) {
    cleanups_.answer_releaser(*record, Status::kOutcomeUnknown, words::kUnansweredAtShutdown);
  }
}

void LockClient::shut_down(Nanos now) {
  is_shut_ = true;
  waiters_.stop_hand_offs();
  for (Server &server : servers_) {
    server.health.check_at(kNever);
    fail_all(server, Status::kClosed, words::kShutDown, now);
    server.names.withdraw(now);
    locks_.for_each_at(server, [&](TokenRecord &record) {
      if (record.phase == Phase::kHeld) return leases_.give_back(record, nullptr, now);
      if (record.phase == Phase::kRetained) return cleanups_.leave_retained(record, now);
      if (record.phase == Phase::kCleanup) cleanups_.retry_now(record, now);
    });
    server.session.connect_soon(now);
  }
}

}  // namespace redlatch::lock
