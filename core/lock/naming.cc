// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: when its name is needed at the server, and which answers wait for names of others.
// operate::Names writes and reads the names.
#include <algorithm>
#include <new>
#include <utility>

#include "lock/lock_client.h"

namespace redlatch::lock {

// When a lock of this client needs the name of the client at the server; 0: at once.
Nanos LockClient::name_due() const {
  Nanos due = kNever;
  for (const auto &[id, record] : locks_.records()) {
    if (record->phase == Phase::kQueued) return 0;
    if (record->phase != Phase::kHeld) continue;
    due = std::min(due, record->held()->granted_at() + operate::Names::kMoment);
  }
  return due;
}

std::optional<uint16_t> LockClient::slot_of(const operate::NameQuery &asked) const {
  const auto &query = static_cast<const NameQuery &>(asked);
  if (query.record) return query.record->lock->slot();
  const LockState *lock = query.request ? lock_of(*query.request) : nullptr;
  return lock == nullptr ? std::nullopt : std::optional(lock->slot());
}

// With or without the name: otherwise the request or the try that waits for it would be stuck.
void LockClient::on_name(operate::NameQuery &asked, std::string_view name, Nanos now) {
  auto &query = static_cast<NameQuery &>(asked);
  try {
    if (!name.empty()) query.message.append(NameQuery::kHolderIs).append(name);
  } catch (const std::bad_alloc &) {
    // The name stays unknown.
  }
  const auto record = std::exchange(query.record, nullptr);
  if (record && !record->is_gone && record->front() != nullptr)
    waiters_.refuse_try(*record, Status::kBusy, query.message, now);
  if (query.request) requests_.on_name(*query.request, query.cid, name);
}

const Lease *LockClient::lease_on(std::string_view name) const {
  const auto lock = locks_.find(name, protocol::Format::kString);
  const TokenRecord *holder = lock ? lock->holder : nullptr;
  return holder == nullptr ? nullptr : holder->lease.get();
}

std::string_view LockClient::blocker_of(std::string_view name) const {
  const auto lock = locks_.find(name, protocol::Format::kString);
  return lock ? std::string_view(lock->blocker) : std::string_view();
}

}  // namespace redlatch::lock
