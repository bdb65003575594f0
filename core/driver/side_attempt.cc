// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/side_attempt.h"

#include <cassert>

namespace redlatch::driver {

void SideAttempt::on_dialled(const Send &send, Nanos now) {
  assert(is_dialling());
  is_dialling_ = false;
  limit_ = after(now, settings_.command_timeout);
  handshake_.start(send);
}

void SideAttempt::take(const Reply &reply, const Send &send, Nanos now) {
  handshake_.on_reply(reply, send, now);
  if (handshake_.stage() != protocol::Handshake::Stage::kOver) return;
  outcome_ = handshake_.outcome();
  if (outcome_->ok() && handshake_.facts().role == NodeRole::kReplica) {
    outcome_ = failure(Status::kServer, settings_.address() + " is a replica");
  }
}

}  // namespace redlatch::driver
