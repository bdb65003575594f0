// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "leader_observer.h"

#include <chrono>
#include <utility>

#include "lock_report.h"
#include "signals.h"

namespace redlatch::cli {
namespace {

// After an error other than an outage, which the library waits for.
constexpr auto kPauseAfterError = std::chrono::seconds(1);

rl_status result_of(rl_request* request) {
  rl_status status = RL_PENDING;
  while (status == RL_PENDING || status == RL_INTERRUPTED) status = rl_request_wait(request, -1);
  return status;
}

}  // namespace

Leader::Leader(const rl_info* info) {
  const LockReport report(info);
  if (report.holders.empty()) return;
  id = report.holders.front().candidate;
  term = report.fence;
  since_ms = report.holders.front().since_ms;
}

LeaderObserver::LeaderObserver(rl_client* client, std::string name, Listener listener)
    : client_(client), name_(std::move(name)), listener_(std::move(listener)) {
  const AllSignalsBlocked blocked;
  thread_ = std::thread([this] { observe(); });
}

LeaderObserver::~LeaderObserver() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    if (request_ != nullptr) rl_request_cancel(request_);
    stopped_.notify_all();
  }
  thread_.join();
}

void LeaderObserver::observe() {
  std::int64_t seen = -1;
  bool was_led = false;
  while (const RequestHandle request{start(seen)}) {
    const rl_status status = result_of(request.get());
    forget_request();
    if (status == RL_E_CLOSED) return;
    if (status != RL_OK) {
      pause();
      continue;
    }
    const InfoHandle info(rl_request_take_info(request.get()));
    if (!info) continue;
    seen = rl_info_number(info.get(), RL_PART_LOCK, 0, RL_FIELD_POSITION);
    const Leader leader(info.get());
    if (!leader.id.empty() || was_led) listener_(leader);
    was_led = !leader.id.empty();
  }
}

// NULL = the end has come, or there is no memory.
rl_request* LeaderObserver::start(std::int64_t seen) {
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return nullptr;
  request_ = rl_leader_watch_start(client_, name_.data(), name_.size(), seen, -1);
  return request_;
}

void LeaderObserver::forget_request() {
  const std::lock_guard lock(mutex_);
  request_ = nullptr;
}

void LeaderObserver::pause() {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, kPauseAfterError, [this] { return is_stopping_; });
}

}  // namespace redlatch::cli
