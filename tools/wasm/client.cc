// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "client.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "driver/services.h"
#include "host.h"

namespace redlatch::wasm {

namespace {

struct NumberedLease : lock::Lease {
  int32_t number = 0;  // of the call that acquires it
};

}  // namespace

// Kept until it has its result and, if it has acquired a lease, until that has ended. The end is
// noted without memory.
struct Client::Call : lock::Request {
  Call(Op what, int32_t which) : Request(what), number(which) {}

  bool has_ended() const {
    const bool is_acquired = op == Op::kAcquire && status.load() == Status::kOk;
    return is_finished() && !(is_acquired && lease->state.load() == lock::Lease::kHeld);
  }

  const int32_t number;
  bool is_listed = false;
  Call *next_ended = nullptr;
};

Client::Client(std::vector<Settings> nodes, const std::optional<QuorumSettings> &quorum)
    : shared_{std::move(nodes), quorum, *this, *this, nullptr, {}} {
  for (size_t i = 0; i < shared_.nodes.size(); i++) {
    shared_.nodes[i].is_health_checked = false;
    open_node(i, shared_.nodes[i]);
  }
  const Randomness random;
  shared_.service = driver::open_service(shared_.nodes, shared_.quorum ? &*shared_.quorum : nullptr,
                                         random.id, random.seed, *this);
}

// It may report leases that have ended.
Client::~Client() { shared_.service.reset(); }

Outcome Client::check(std::span<const Settings> nodes) {
  for (const Settings &node : nodes) {
    if (node.tls.is_on || node.sentinel.tls.is_on || !node.folder.empty()) {
      return failure(Status::kUnsupported, "TLS and embedded servers are not supported");
    }
  }
  return {};
}

// ---- calls of users ----------------------------------------------------------------------------

void Client::acquire(int32_t number, std::string_view name, const lock::AcquireOptions &options,
                     int64_t wait_ms, Nanos now) {
  const auto call = std::make_shared<Call>(lock::Request::Op::kAcquire, number);
  call->name = name;
  call->options = options;
  call->wait_ms = wait_ms;
  const auto lease = std::make_shared<NumberedLease>();
  lease->number = number;
  call->lease = lease;
  start(call, now);
}

// A lease that has ended needs no release.
void Client::release(int32_t number, int32_t lease, Nanos now) {
  const auto found = calls_.find(lease);
  if (found == calls_.end()) return host_finished(number, 0, 0, nullptr, 0);
  const auto call = std::make_shared<Call>(lock::Request::Op::kRelease, number);
  call->lease = found->second->lease;
  start(call, now);
}

void Client::start(const std::shared_ptr<Call> &call, Nanos now) {
  calls_.emplace(call->number, call);
  try {
    shared_.service->start(call, now);
  } catch (const std::bad_alloc &) {
    calls_.erase(call->number);
    throw;
  }
}

void Client::cancel(int32_t number, Nanos now) {
  const auto found = calls_.find(number);
  if (found != calls_.end()) (void)shared_.service->cancel(*found->second, now);
}

void Client::give_credentials(std::string_view user, std::string_view password, Nanos now) {
  shared_.credentials.set(user, password, kNever, now);
  for (Link &link : links_) link.authenticate();
}

// ---- the output of the service -----------------------------------------------------------------

void Client::note_end(Call &call) {
  if (!call.has_ended() || std::exchange(call.is_listed, true)) return;
  call.next_ended = std::exchange(ended_, &call);
}

void Client::finished(lock::Request &request) {
  auto &call = static_cast<Call &>(request);
  note_end(call);
  const bool has_fence = call.op == lock::Request::Op::kAcquire;
  host_finished(call.number, static_cast<int32_t>(call.status.load()),
                has_fence ? call.lease->fence.load() : 0, call.message.data(), call.message.size());
}

void Client::lease_ended(lock::Lease &lease) {
  const auto found = calls_.find(static_cast<NumberedLease &>(lease).number);
  if (found == calls_.end()) return;  // its call has failed
  note_end(*found->second);
  host_ended(found->first, lease.state.load(), lease.reason.data(), lease.reason.size());
}

void Client::add(driver::LogLevel level, std::string_view text) noexcept {
  host_log(static_cast<int32_t>(level), text.data(), text.size());
}

// ---- events ------------------------------------------------------------------------------------

void Client::on_time(Nanos now) {
  for (Link &link : links_) link.on_time(now);
  if (shared_.service->next_due() <= now) shared_.service->on_timer(now);
}

void Client::drop_all(Nanos now) noexcept {
  for (Link &link : links_) link.give_up(now);
}

void Client::settle(Nanos now) {
  do {
    // By number, because a cluster may get further links meanwhile.
    for (size_t i = 0; i < links_.size(); i++) links_[i].tend(now);
  } while (std::any_of(links_.begin(), links_.end(), [](const Link &l) { return l.is_broken(); }));
  for (Link &link : links_) link.flush();
  if (shared_.credentials.asks(now)) {
    shared_.credentials.on_asked();
    host_ask();
  }
  tend_drain(now);
  while (ended_ != nullptr) calls_.erase(std::exchange(ended_, ended_->next_ended)->number);
}

Nanos Client::next_due() const {
  Nanos due = std::min(shared_.service->next_due(), shared_.credentials.next_due());
  if (drain_) due = std::min(due, drain_->limit());
  for (const Link &link : links_) due = std::min(due, link.next_due());
  return due;
}

// ---- the end -----------------------------------------------------------------------------------

void Client::shut_down(Nanos now) {
  if (drain_) return;
  Nanos timeout = 0;
  for (const Settings &node : shared_.nodes) timeout = std::max(timeout, node.command_timeout);
  drain_.emplace(timeout, now);
  shared_.credentials.end_watch();
  shared_.service->shut_down(now);
}

void Client::tend_drain(Nanos now) {
  if (!drain_) return;
  const bool is_cluster = shared_.nodes.front().is_cluster();
  if (!drain_->is_over(shared_.service->drained_count(), links_.size(), is_cluster, now)) return;
  shared_.service->give_up();
  is_shut_ = true;
}

}  // namespace redlatch::wasm
