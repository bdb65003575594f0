// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: when its name is needed at the server, and which answers wait for names of others.
// operate::Names writes and reads the names.
#include <algorithm>
#include <new>
#include <utility>

#include "lock/calls.h"

namespace redlatch::lock {

namespace {

constexpr std::string_view kHolderIs = "; holder: ";

}  // namespace

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

void LockClient::announce_held(Nanos now) {
  client_names_.announce_by(now + operate::Names::kMoment);
}

std::optional<uint16_t> LockClient::slot_of(const operate::NameQuery &asked) const {
  const auto &query = static_cast<const NameQuery &>(asked);
  if (query.record) return query.record->lock->slot();
  const LockState *lock = query.request ? lock_of(*query.request) : nullptr;
  return lock == nullptr ? std::nullopt : std::optional(lock->slot());
}

// @return whether the answer to an inspection waits for names.
bool LockClient::name_clients(const std::shared_ptr<Request> &request, Nanos now) {
  auto &inspection = request->as<operate::Inspect>();
  inspection.unnamed_count = 0;
  for (auto &cid : inspection.clients()) {
    if (cid == channel_.cid()) {
      inspection.name_client(cid, settings_.holder);
      continue;
    }
    auto query = std::make_shared<NameQuery>();
    query->cid = std::move(cid);
    query->request = request;
    if (client_names_.ask(std::move(query), now)) inspection.unnamed_count++;
  }
  return inspection.unnamed_count > 0;
}

// @return whether a refused try is answered later, when the name of the holder is known.
bool LockClient::awaits_name(TokenRecord &record, const std::string &message, Nanos now) {
  const std::string_view cid = record.lock->blocker;
  if (cid.empty() || cid == channel_.cid() || !client_names_.is_due(cid, now)) return false;
  auto query = std::make_shared<NameQuery>();
  query->cid = cid;
  // A vote is one of several answers: it does not wait for the name, which the next round knows.
  if (!record.is_vote) {
    query->record = record.shared_from_this();
    query->message.reserve(message.size() + kHolderIs.size() + kMaxLabelBytes);
    query->message = message;
  }
  return client_names_.ask(std::move(query), now) && !record.is_vote;
}

void LockClient::ask_wanted_name(LockState &lock, Nanos now) {
  if (!lock.is_name_wanted || lock.blocker.empty()) return;
  lock.is_name_wanted = false;
  if (lock.blocker == channel_.cid() || !client_names_.is_due(lock.blocker, now)) return;
  auto query = std::make_shared<NameQuery>();
  query->cid = lock.blocker;
  (void)client_names_.ask(std::move(query), now);
}

// The request will most likely time out: ask who the holder is.
void LockClient::on_slow(Request &request, Nanos now) {
  timers_.set(request, request.wait_until);
  if (is_confirming(request)) return;
  LockState &lock = *request.lock;
  TokenRecord *record = request.record != nullptr ? request.record : lock.place();
  if (record == nullptr || now < lock.blocker_due) return;
  lock.blocker_due = now + operate::ClientNames::kRetryAfter;
  lock.is_name_wanted = true;
  if (record->phase == Phase::kQueued) ask(*record, now);
}

// With or without the name: otherwise the request or the try that waits for it would be stuck.
void LockClient::on_name(operate::NameQuery &asked, std::string_view name, Nanos now) {
  auto &query = static_cast<NameQuery &>(asked);
  const auto &request = query.request;
  try {
    if (!name.empty()) query.message.append(kHolderIs).append(name);
    if (request) request->as<operate::Inspect>().name_client(query.cid, name);
  } catch (const std::bad_alloc &) {
    // The name stays unknown.
  }
  const auto record = std::exchange(query.record, nullptr);
  if (record && !record->is_gone && record->front() != nullptr)
    refuse_try(*record, Status::kBusy, query.message, now);
  if (!request || request->is_finished()) return;
  if (--request->as<operate::Inspect>().unnamed_count == 0) {
    finish_immediate(*request, Status::kOk);
  }
}

// A thread that waits for a lock that it shares waits as well, unless both read or share by one
// owner.
bool LockClient::waits_for_itself(const Request &request) const {
  const bool is_waiting = request.op == Request::Op::kAcquire && request.wait_ms != 0;
  if (!is_waiting || request.waiter == 0 || !request.lock || is_confirming(request)) return false;
  const LockState &lock = *request.lock;
  const auto is_in_the_way = [&](const TokenRecord &record) {
    if (record.lock.get() != &lock || record.phase != Phase::kHeld) return false;
    if (!record.lease || record.lease->starter != request.waiter) return false;
    const AcquireOptions &options = request.options;
    const bool is_again = lock.keys.format == protocol::Format::kHash;
    return is_again ? record.identity.owner != options.owner
                    : record.identity.mode != protocol::Mode::kRead ||
                          options.mode != protocol::Mode::kRead;
  };
  if (lock.holder != nullptr) return is_in_the_way(*lock.holder);
  return lock.has_sharers &&
         std::any_of(locks_.records().begin(), locks_.records().end(),
                     [&](const auto &entry) { return is_in_the_way(*entry.second); });
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
