// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/calls.h"

#include <algorithm>

namespace redlatch::lock {

using protocol::EvalMode;

bool LockClient::Calls::OfSlot::take_redirect(const Call &call, const Reply &reply,
                                              Nanos now) const {
  return client_.take_redirect(call, reply, now);
}

// ---- about a lock ------------------------------------------------------------------------------

void LockClient::Calls::ServeQueue::on_answer(const Call &call, const Reply &reply,
                                              Nanos now) const {
  protocol::CountAnswer answer;
  if (decode(reply, answer)) return;
  client_.note_time(call.sent_at, now, answer.server_ms);
  client_.maybe_serve_queue(call.shared<LockState>(), answer.has_more, now);
}

const LockState *LockClient::Calls::ServeQueue::lock(const Call &call) const {
  return &call.about<LockState>();
}

// ---- for another node --------------------------------------------------------------------------

void LockClient::Calls::Delegated::on_answer(const Call &call, const Reply &reply,
                                             Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  command.owner.on_delegated_over(command, &reply, now);
}

void LockClient::Calls::Delegated::on_lost(const Call &call, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  command.owner.on_delegated_over(command, nullptr, now);
}

void LockClient::Calls::Asking::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  auto &command = call.about<DelegatedCommand>();
  // As without the right to it. The command behind it is redirected back.
  if (reply.is_error()) command.owner.on_delegated_over(command, &reply, now);
}

}  // namespace redlatch::lock
