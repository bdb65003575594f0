// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "composite/composite.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "composite/words.h"

namespace redlatch::composite {

using compound::PartLease;
using compound::PartRequest;
using lock::Lease;
using lock::Request;

namespace {

// A node that is slower than the others may answer for so long before the names behind it are given
// back: they are held meanwhile.
constexpr Nanos kAnswerPatience = 50 * kMs;

}  // namespace

bool Composite::Part::is_refused() const {
  if (!request) return false;
  switch (request->status.load()) {
    case Status::kAlreadyHeld:
    case Status::kDenied:
    case Status::kUnsupported:
    case Status::kInvalid:
    case Status::kWrongType:
    case Status::kClosed:
    case Status::kNoMemory:
      return true;
    default:
      return false;
  }
}

Composite::Composite(const Inner &inner, compound::Table &table,
                     const std::shared_ptr<Request> &request, Nanos now)
    : Compound(table, request, request->lease),
      inner_(inner),
      is_try_(request->wait_ms == 0),
      started_(now),
      wait_until_(request->wait_ms > 0 ? after(now, request->wait_ms * kMs) : kNever) {
  const auto &names = *request->several.names;
  assert(names.size() > 1);
  parts_.reserve(names.size());
  for (size_t i = 0; i < names.size(); i++) parts_.push_back({i, names[i], nullptr, nullptr});
  // std::string compares unsigned bytes. The prefix of all keys of a client is the same.
  std::sort(parts_.begin(), parts_.end(),
            [](const Part &a, const Part &b) { return a.what.name < b.what.name; });
  lease_->name = names.front().name;
  lease_->part_fences.resize(names.size());
}

// A lease of a user outlives its client.
Composite::~Composite() {
  for (Part &part : parts_) {
    if (part.request) part.request->owner = nullptr;
    if (part.lease) part.lease->owner = nullptr;
  }
  if (is_held() && lease_->state.load() == Lease::kHeld) {
    end_lease(Lease::kLost, lock::LossReason::kClosed);
  }
}

void Composite::start(Nanos now) noexcept {
  try {
    for (Part &part : parts_) ask(part, &part == &parts_.front() ? request_->wait_ms : 0, now);
    request_->several.awaited = parts_.front().request.get();
    mark();
  } catch (const std::bad_alloc &) {
    fail(Status::kNoMemory, {}, now);
  }
}

void Composite::review(Nanos now) {
  switch (phase_) {
    case Phase::kTrying:
      return count_tries(now);
    case Phase::kOrdered:
      return go_on(now);
    case Phase::kHeld:
      return maintain(now);
  }
}

void Composite::on_no_memory(Nanos now) noexcept {
  if (request_) return fail(Status::kNoMemory, {}, now);
  wake_at(now + lock::kNoMemoryRetry);
}

size_t Composite::first_missing(Nanos now) const {
  const auto found = std::find_if(parts_.begin(), parts_.end(),
                                  [now](const Part &part) { return !part.is_ours(now); });
  return static_cast<size_t>(found - parts_.begin());
}

// ---- its parts ---------------------------------------------------------------------------------

void Composite::ask(Part &part, int64_t wait_ms, Nanos now) {
  assert(!is_held() && !part.request && !part.lease);
  const auto lease = std::make_shared<PartLease>();
  lease->is_of_composite = true;
  lease->starter = lease_->starter;
  const auto request = std::make_shared<PartRequest>(Request::Op::kAcquire);
  request->several.is_part = true;
  request->waiter.number = request_->waiter.number;
  request->name = part.what.name;
  request->options = request_->options;
  request->options.mode = part.what.mode;
  request->options.max_hold = 0;  // it counts from the grant of all
  request->wait_ms = wait_ms;
  request->lease = lease;
  request->owner = lease->owner = this;
  part.request = request;
  part.lease = lease;
  try {
    inner_->start(request, now);
  } catch (...) {  // it has started nothing
    request->owner = lease->owner = nullptr;
    part.request = nullptr;
    part.lease = nullptr;
    throw;
  }
}

// Release a granted part, or cancel its acquire.
void Composite::drop(Part &part, Nanos now) noexcept {
  const auto request = std::exchange(part.request, nullptr);
  const auto lease = std::exchange(part.lease, nullptr);
  if (!request) return;
  if (request_ && request_->several.awaited == request.get()) request_->several.awaited = nullptr;
  request->owner = lease->owner = nullptr;
  if (!request->is_finished()) inner_->cancel(*request, now);
  inner_->release_async(*lease, now);
}

void Composite::drop_from(size_t first, Nanos now) noexcept {
  for (size_t i = first; i < parts_.size(); i++) drop(parts_[i], now);
}

// ---- acquire -----------------------------------------------------------------------------------

void Composite::count_tries(Nanos now) {
  const size_t missing = first_missing(now);
  if (missing == parts_.size()) return grant(now);
  const auto permanent = std::find_if(parts_.begin(), parts_.end(),
                                      [](const Part &part) { return part.is_refused(); });
  if (permanent != parts_.end()) return fail_by(*permanent, now);
  const bool is_open =
      std::any_of(parts_.begin(), parts_.end(), [](const Part &part) { return part.is_open(); });
  const Part &first = parts_.front();
  const bool has_failed = !first.is_open() && !first.is_granted();
  const bool is_over = is_try_ ? !is_open : now >= wait_until_ && !first.is_open();
  if (has_failed || is_over) return fail_by(parts_[missing], now);
  if (is_try_) return wake_at(kNever);  // each try has a limit of its own
  const Nanos patient_until = after(started_, kAnswerPatience);
  if (is_open && !first.is_queued() && now < patient_until) {
    return wake_at(first.is_open() ? patient_until : std::min(patient_until, wait_until_));
  }
  phase_ = Phase::kOrdered;
  drop_from(std::max<size_t>(missing, 1), now);
  go_on(now);
}

void Composite::go_on(Nanos now) {
  const size_t missing = first_missing(now);
  if (missing == parts_.size()) return grant(now);
  drop_from(missing + 1, now);
  Part &next = parts_[missing];
  if (next.is_open()) return wake_at(kNever);  // it has a limit of its own
  if (next.request && !next.is_granted()) return fail_by(next, now);
  drop(next, now);  // it was granted, and is lost
  const bool is_endless = wait_until_ == kNever;
  const int64_t left_ms = is_endless ? -1 : std::max<int64_t>((wait_until_ - now) / kMs, 1);
  ask(next, left_ms, now);  // a part that finishes at once marks this composite
  if (next.is_open()) request_->several.awaited = next.request.get();
}

void Composite::grant(Nanos now) {
  assert(request_ && !is_held() && first_missing(now) == parts_.size());
  phase_ = Phase::kHeld;
  request_->several.awaited = nullptr;
  for (const Part &part : parts_) {
    lease_->part_fences[part.place] = part.lease->fence.load();
    if (part.place != 0) continue;
    lease_->token = part.lease->token;
    lease_->fence = part.lease->fence.load();
    lease_->mode = part.what.mode;
  }
  const Nanos max_hold = request_->options.max_hold;
  lease_->end_at = max_hold > 0 ? after(now, max_hold) : kNever;
  maintain(now);  // sets the deadline
  lease_->state.store(Lease::kHeld, std::memory_order_release);
  answer(Status::kOk);
}

// `part` was not granted, or is lost again.
void Composite::fail_by(const Part &part, Nanos now) noexcept {
  Status status = is_try_ ? Status::kBusy : Status::kTimeout;
  std::string why;
  if (part.is_granted()) {
    why = words_of_loss(part, now);
  } else if (part.request && part.request->is_finished()) {
    status = part.request->status.load();
    why = lock::words::same(part.request->message);
  }
  // The last name was asked for when hardly any time was left. A part waits for whole ms.
  const bool is_late = phase_ == Phase::kOrdered && after(now, kMs) >= wait_until_;
  if (is_late && status == Status::kOutcomeUnknown) status = Status::kTimeout;
  if (!is_try_ && status == Status::kBusy) status = Status::kTimeout;
  if (status == Status::kTimeout) {
    why = words::not_granted(parts_.size(), request_->wait_ms, why);
  }
  fail(status, why, now);
}

void Composite::fail(Status status, std::string_view message, Nanos now) noexcept {
  const auto keep = shared_from_this();
  drop_from(0, now);
  end(status, message);
}

const Request *Composite::waits_for_itself() const {
  if (is_held() || is_try_) return nullptr;
  for (const Part &part : parts_) {
    if (!part.is_open()) continue;
    part.request->waiter.number = request_->waiter.number;
    if (const Request *found = inner_->waits_for_itself(*part.request)) return found;
  }
  return nullptr;
}

// ---- held, and its end -------------------------------------------------------------------------

void Composite::maintain(Nanos now) noexcept {
  Nanos deadline = lease_->end_at;
  for (const Part &part : parts_) {
    if (!part.is_ours(now)) return lose(&part, now);
    deadline = std::min(deadline, part.lease->deadline.load());
  }
  if (now >= lease_->end_at) return lose(nullptr, now);
  lease_->deadline.store(deadline, std::memory_order_release);
  wake_at(lease_->end_at);
}

std::string Composite::words_of_loss(const Part &part, Nanos now) noexcept {
  const std::string &known = part.lease->reason;
  return words::part_lost(part.what.name,
                          known.empty() ? lock::words::loss(part.lease->loss_at(now)) : known);
}

// `part`: that was lost; nullptr: max_hold is over.
void Composite::lose(const Part *part, Nanos now) noexcept {
  lock::Loss loss;
  loss.reason = part == nullptr ? lock::LossReason::kMaxHold : part->lease->loss_at(now);
  loss.text = part == nullptr ? lock::words::same(lock::words::loss(loss.reason))
                              : words_of_loss(*part, now);
  end_lease(Lease::kLost, std::move(loss));
  give_back(now);
}

void Composite::give_back(Nanos now) noexcept {
  const auto keep = shared_from_this();
  drop_from(0, now);
  forget();
}

void Composite::leave() noexcept {
  const auto keep = shared_from_this();
  for (Part &part : parts_) part.request->owner = part.lease->owner = nullptr;
  parts_.clear();
  forget();
}

std::vector<std::shared_ptr<PartLease>> Composite::leases() const {
  std::vector<std::shared_ptr<PartLease>> all;
  for (const Part &part : parts_) all.push_back(part.lease);
  return all;
}

// Also before all parts are held: then their holder finds it when the lease is granted.
void Composite::on_recalled(const lock::Lease &part) noexcept {
  lease_->recall_count++;
  lease_->recall_reason = lock::words::same(part.recall_reason);
  if (is_held()) table_.lease_recalled(*lease_);
}

void Composite::shut_down(Nanos now) noexcept {
  if (request_) return fail(Status::kClosed, lock::words::kShutDown, now);
  end_lease(Lease::kReleased);
  give_back(now);
}

}  // namespace redlatch::composite
