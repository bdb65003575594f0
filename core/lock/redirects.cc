// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/redirects.h"

#include <new>
#include <utility>

#include "lock/server.h"
#include "protocol/slots.h"

namespace redlatch::lock {

bool LockCallKind::take_redirect(const Call &call, const Reply &reply, Nanos now) const {
  return redirects_.take(call, reply, now);
}

bool Redirects::is_up(const LockState &lock) const {
  return lock.server->session.is_up() && !is_moving(lock);
}

void Redirects::note(const Server &server, const protocol::Redirect &redirect,
                     const LockState *lock) {
  const bool is_moved = redirect.kind == protocol::Redirect::Kind::kMoved;
  assert(!is_moved || lock == nullptr || lock->slot() == redirect.slot);
  if (placement_ != nullptr) placement_->redirected(server, redirect);
  if (is_moved && lock != nullptr) hold_back(redirect.slot);
}

bool Redirects::take(const Call &call, const Reply &reply, Nanos now) {
  try {
    return follow(call, reply, now);
  } catch (const std::bad_alloc &) {
    call.kind->on_lost(call, now);
    throw;
  }
}

bool Redirects::follow(const Call &call, const Reply &reply, Nanos now) {
  using Kind = protocol::Redirect::Kind;
  const Server &server = server_of(call);
  const HostPort own{server.settings.host, server.settings.port};
  const auto redirect = protocol::read_redirect(reply, own);
  const LockState *lock = kind_of(call).lock_of(call);
  if (kind_of(call).request(call) != nullptr) {
    if (redirect.kind != Kind::kNone && kind_of(call).on_left(call, now)) return true;
    // The request has ended meanwhile; the slot has moved all the same.
    const bool is_moved = redirect.kind == Kind::kMoved && redirect.to != own;
    if (lock == nullptr && is_moved) note(server, redirect, nullptr);
  }
  if (redirect.kind == Kind::kNone || lock == nullptr) return false;
  const bool names_slot = redirect.kind == Kind::kMoved || redirect.kind == Kind::kAsk;
  const bool is_elsewhere = names_slot && redirect.slot == lock->slot() && redirect.to != own;
  if (redirect.kind == Kind::kMoved && is_elsewhere) {
    note(server, redirect, lock);
    call.kind->on_not_done(call, now);
    return true;
  }
  if (redirect.kind == Kind::kDown) note(server, redirect, lock);
  if (redirect.kind == Kind::kNonLocal) {
    on_half_done(call, now);
    return true;
  }
  if (kind_of(call).is_extension(call) && redirect.kind != Kind::kDown) {
    if (call.extent == protocol::Extent::kAll) {
      // The lock key alone is there until it moves itself.
      kind_of(call).extend_lock_key(call, now);
      return true;
    }
    if (redirect.kind == Kind::kAsk && is_elsewhere) {
      const auto delegated = std::make_shared<DelegatedCommand>(DelegatedCommand{call});
      if (placement_ != nullptr && placement_->ask_elsewhere(redirect.to, delegated)) return true;
    }
  }
  return postpone(call, now);
}

// The server cannot serve the slot now, and has done nothing. Callers wait.
bool Redirects::postpone(const Call &call, Nanos now) {
  const Nanos retry_at = server_of(call).session.next_retry(now);
  return kind_of(call).on_postponed(call, retry_at, now);
}

// ---- delegated commands ------------------------------------------------------------------------

bool Redirects::send(Server &server, const std::shared_ptr<DelegatedCommand> &delegated,
                     TokenRecord &record, protocol::Command &extension, Nanos now) {
  Call &asked = delegated->call;
  if (asked.extent == protocol::Extent::kLock) asked.sent_at = now;
  asked.is_delegated = true;
  delegated->lock = record.lock;
  protocol::Command asking;
  asking.add("ASKING");
  server.session.send(asking, Call{&asking_, protocol::EvalMode::kText, now, 0, delegated});
  // As text: an answer that the script is not known is for the owner.
  const auto eval = protocol::EvalMode::kText;
  if (!server.session.try_send(extension, Call{&delegated_, eval, now, asked.lease, delegated})) {
    // ASKING would count for the next command.
    server.session.drop();
    return false;
  }
  return true;
}

// `reply`: nullptr if none will come.
void Redirects::on_delegated_over(DelegatedCommand &delegated, const Reply *reply, Nanos now) {
  const Call &call = delegated.call;
  if (std::exchange(delegated.is_over, true)) return;
  if (reply == nullptr) return on_half_done(call, now);  // the own connection is still there
  bool is_postponed = false;
  try {
    const auto redirect = protocol::read_redirect(*reply, {});
    is_postponed = redirect.kind != protocol::Redirect::Kind::kNone && postpone(call, now);
  } catch (const std::bad_alloc &) {
    on_half_done(call, now);  // nothing may wait for it
    throw;
  }
  if (!is_postponed) session::Session::deliver(call, *reply, now);
}

void Redirects::Delegated::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  redirects.on_delegated_over(command, &reply, now);
}

void Redirects::Delegated::on_lost(const Call &call, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  redirects.on_delegated_over(command, nullptr, now);
}

void Redirects::Asking::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  // As without the right to it. The command behind it is redirected back.
  if (reply.is_error()) redirects.on_delegated_over(command, &reply, now);
}

}  // namespace redlatch::lock
