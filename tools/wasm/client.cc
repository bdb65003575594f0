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

struct Client::Call : lock::Request, Numbered {
  using Request::Request;
};

struct Client::Hold : lock::Lease, Numbered {};

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

Client::~Client() = default;

Outcome Client::check(std::span<const Settings> nodes) {
  for (const Settings &node : nodes) {
    if (node.tls.is_on || node.sentinel.tls.is_on || !node.folder.empty()) {
      return failure(Status::kUnsupported, "TLS and embedded servers are not supported");
    }
  }
  return {};
}

// ---- calls of users ----------------------------------------------------------------------------

// The lease is known from now on, so that a grant cannot fail for want of memory.
int32_t Client::acquire(std::string_view name, const lock::AcquireOptions &options, int64_t wait_ms,
                        Nanos now) {
  const auto call = std::make_shared<Call>(lock::Request::Op::kAcquire);
  call->name = name;
  call->options = options;
  call->wait_ms = wait_ms;
  const auto hold = std::make_shared<Hold>();
  hold->number = last_call_ + 1;
  call->lease = hold;
  leases_.emplace(hold->number, hold);
  try {
    return start(call, now);
  } catch (...) {
    leases_.erase(hold->number);
    throw;
  }
}

int32_t Client::release(int32_t lease, Nanos now) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return 0;
  const auto call = std::make_shared<Call>(lock::Request::Op::kRelease);
  call->lease = found->second;
  return start(call, now);
}

int32_t Client::start(const std::shared_ptr<Call> &call, Nanos now) {
  call->number = ++last_call_;
  calls_.emplace(call->number, call);
  try {
    shared_.service->start(call, now);
  } catch (...) {
    calls_.erase(call->number);
    throw;
  }
  return call->number;
}

void Client::cancel(int32_t call, Nanos now) {
  const auto found = calls_.find(call);
  if (found != calls_.end()) (void)shared_.service->cancel(*found->second, now);
}

void Client::give_credentials(std::string_view user, std::string_view password, Nanos valid_for,
                              Nanos now) {
  shared_.credentials.set(user, password, valid_for, now);
  for (Link &link : links_) link.authenticate();
}

void Client::fail_credentials(std::string_view why, Nanos now) {
  if (!shared_.credentials.fail(why, now)) return;
  add(driver::LogLevel::kWarning, "the application gave no new credentials");
}

// ---- the output of the service -----------------------------------------------------------------

void Client::finished(lock::Request &request) {
  auto &call = static_cast<Call &>(request);
  call.next_ended = std::exchange(ended_call_, &call);
  const Status status = call.status.load();
  int64_t fence = 0;
  if (call.op == lock::Request::Op::kAcquire) {
    auto &hold = static_cast<Hold &>(*call.lease);
    fence = hold.fence.load();
    if (status != Status::kOk) hold.next_ended = std::exchange(ended_lease_, &hold);
  }
  host_finished(call.number, static_cast<int32_t>(status), fence, call.message.data(),
                call.message.size());
}

void Client::lease_ended(lock::Lease &lease) {
  auto &hold = static_cast<Hold &>(lease);
  hold.next_ended = std::exchange(ended_lease_, &hold);
  host_ended(hold.number, hold.state.load(), hold.reason.data(), hold.reason.size());
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
  if (!shared_.is_shut && shared_.credentials.asks(now)) {
    shared_.credentials.on_asked();
    host_ask();
  }
  tend_drain(now);
  while (ended_call_ != nullptr) {
    calls_.erase(std::exchange(ended_call_, ended_call_->next_ended)->number);
  }
  while (ended_lease_ != nullptr) {
    leases_.erase(std::exchange(ended_lease_, ended_lease_->next_ended)->number);
  }
}

Nanos Client::next_due() const {
  if (shared_.is_shut) return kNever;
  Nanos due = std::min(shared_.service->next_due(), shared_.credentials.next_due());
  if (drain_) due = std::min(due, drain_->limit());
  for (const Link &link : links_) due = std::min(due, link.next_due());
  return due;
}

// ---- the end -----------------------------------------------------------------------------------

void Client::shut_down(Nanos now) {
  if (drain_ || shared_.is_shut) return;
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
  drain_.reset();
  shared_.is_shut = true;
  shared_.service->give_up();
  for (Link &link : links_) link.close();
  host_shut();
}

}  // namespace redlatch::wasm
