// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/lock_state.h"

#include "lock/server.h"

namespace redlatch::lock {

// ---- of a lease --------------------------------------------------------------------------------

std::string Lease::lost_words() const {
  if (state.load() != kHeld) return reason.empty() ? words::same(words::loss(loss)) : reason;
  return words::same(words::loss(loss_at(deadline.load())));
}

Outcome Lease::why_not_held() const {
  const auto known = state.load();
  if (known == kLost || known == kHeld) {
    return failure(Status::kLost, words::lost(name, lost_words()));
  }
  return failure(Status::kNotHeld, words::ended_before(name));
}

// ---- of a request ------------------------------------------------------------------------------

bool Request::is_queued() const {
  if (several.awaited != nullptr && !several.awaited->is_finished()) {
    return several.awaited->is_queued();
  }
  if (op == Op::kUpgrade && record != nullptr) {
    return record->replicas.is_writer_unconfirmed || record->upgrade->get().is_queued();
  }
  if (task && task->is_election()) return wait_ms != 0;  // for another leader
  if (op != Op::kAcquire || !lock) return false;
  if (is_confirming(*this)) return true;
  if (record != nullptr) return record->phase == TokenRecord::Phase::kQueued;
  const LockState &state = *lock;
  const TokenRecord *shared = state.place();
  if (shared == nullptr) return false;
  return shared->phase == TokenRecord::Phase::kQueued || state.waitlist->front() != this;
}

bool Request::is_held_here() const {
  if (several.awaited != nullptr) return several.awaited->is_held_here();
  return op == Op::kAcquire && lock && lock->holder != nullptr;
}

bool Request::is_head() const { return record != nullptr && record->is_head(); }

// ---- which lock, and which server --------------------------------------------------------------

const LockState *lock_of(const Request &request) {
  if (request.lock) return request.lock.get();
  const TokenRecord *record = request.record;
  if (record == nullptr && request.lease) record = request.lease->record;
  return record == nullptr ? nullptr : record->lock.get();
}

Server &server_of(const Request &request) {
  const LockState *lock = lock_of(request);
  return lock == nullptr ? *request.server : *lock->server;
}

std::optional<uint16_t> NameQuery::slot() const {
  if (record) return record->lock->slot();
  const LockState *lock = request ? lock_of(*request) : nullptr;
  return lock == nullptr ? std::nullopt : std::optional(lock->slot());
}

// ---- of a lock ---------------------------------------------------------------------------------

LockState::LockState(Server &at, std::string_view name_, protocol::Format format)
    : name(name_), keys(at.settings.name_space, name_, format), server(&at) {}

bool LockState::join(TokenRecord *opened, const std::shared_ptr<Request> &caller) {
  using Transition = Waitlist::Transition;
  Waitlist::Step step;
  if (opened != nullptr) step = waitlist.give(&Waitlist::open, *opened);
  const bool is_open = step.transition != Transition::kDefect;
  if (is_open) step = waitlist.give(&Waitlist::join, *caller);
  assert(step.transition != Transition::kDefect);
  if (step.transition == Transition::kDefect) return false;
  caller->listed = caller;
  return true;
}

// ---- of a token --------------------------------------------------------------------------------

std::string_view TokenRecord::sibling() const {
  if (identity.mode != protocol::Mode::kRead || identity.owner.empty()) return {};
  const TokenRecord *other = lock->owned;
  while (other != nullptr && (other->identity.owner != identity.owner ||
                              other->identity.mode != protocol::Mode::kRead)) {
    other = other->next_listed;
  }
  return other == nullptr ? std::string_view() : other->identity.token;
}

void TokenRecord::note_new_server() {
  acquisition.give(&Acquisition::on_new_server);
  if (Checked<Cleanup> *started = started_cleanup()) started->give(&Cleanup::on_new_server);
}

Checked<Upgrade> &TokenRecord::ensure_upgrade() {
  if (!upgrade) upgrade = std::make_unique<Checked<Upgrade>>();
  return *upgrade;
}

void TokenRecord::become_reader() {
  identity.mode = protocol::Mode::kRead;
  lease->mode = identity.mode;
  if (lock->holder == this) lock->holder = nullptr;
}

}  // namespace redlatch::lock
