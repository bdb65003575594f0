// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "protocol/opening.h"

#include <algorithm>
#include <cassert>

namespace redlatch::protocol {

void Opening::on_dialled(const Send &send, Nanos now) {
  assert(is_dialling_ && !is_over_);
  is_dialling_ = false;
  limit_ = after(now, settings_.command_timeout);
  current().start(send);
}

void Opening::on_reply(Wire from, const Reply &reply, const Send &send, Nanos now) {
  if (from != wire_ || awaited_count() == 0) return;
  const bool was_asking = current().stage() == Handshake::Stage::kIdentity;
  current().on_reply(reply, send, now);
  note_identity(was_asking, now);
  if (current().stage() == Handshake::Stage::kMessages) {
    messages_.emplace(Handshake::for_messages(commands_));
    wire_ = Wire::kMessages;
    is_dialling_ = true;
    limit_ = after(now, settings_.connect_timeout);
    return;
  }
  if (current().stage() != Handshake::Stage::kOver) return;
  if (wire_ == Wire::kMessages && messages_->outcome().ok()) {
    wire_ = Wire::kCommands;
    limit_ =
        after(now, settings_.command_timeout);  // the other connection has used up the earlier one
    commands_.on_messages(*messages_, send, now);
  }
  is_over_ = current().stage() == Handshake::Stage::kOver;
}

// The identity has a time limit of its own: a slow INFO does not use up that of the handshake.
void Opening::note_identity(bool was_asking, Nanos now) {
  const bool is_asking = current().stage() == Handshake::Stage::kIdentity;
  if (was_asking == is_asking) return;
  // A limit that has just passed leaves no time: a negative delay would mean no limit.
  if (is_asking) remaining_ = std::max<Nanos>(limit_ - now, 0);
  limit_ = after(now, is_asking ? settings_.command_timeout : remaining_);
}

const char *Opening::check() const {
  if (const char *broken = commands_.check()) return broken;
  if (messages_) {
    if (const char *broken = messages_->check()) return broken;
  }
  if (wire_ == Wire::kMessages && !messages_) return "a second connection has its handshake";
  if (is_dialling_ && is_over_) return "what is over dials nothing";
  if (!is_dialling_ && !is_over_ && awaited_count() == 0) return "a reply is awaited";
  if (is_over_ && current().stage() != Handshake::Stage::kOver) return "both handshakes end first";
  return nullptr;
}

}  // namespace redlatch::protocol
