// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "attempt.h"

#include <algorithm>

#include "resp/command_writer.h"

namespace redlatch::wasm {

bool Attempt::dials(const Wire &wire) const {
  return !is_over() && dialogue_->is_dialling() && &wire == wires_[dialogue_->wire()].get();
}

void Attempt::on_dialled(const Wire &wire, Nanos now) {
  if (!dials(wire)) return;
  dialogue_->on_dialled(sender(), now);
  continue_dialogue();
}

void Attempt::on_dial_failed(const Wire &wire, const DialFailure &seen, Nanos now) {
  if (!dials(wire)) return;
  dialogue_->on_failed(verdict_of(seen, Peer(dialogue_->target())), now);
  continue_dialogue();
}

// Replies that are left when something is to be sent answer nothing.
void Attempt::on_replies(const Wire &wire, Replies replies, Nanos now) {
  if (now >= dialogue_->limit()) return on_time(now);
  const auto found = std::find_if(wires_.begin(), wires_.end(),
                                  [&](const auto &mine) { return mine.get() == &wire; });
  const auto from = static_cast<Dialogue::Wire>(found - wires_.begin());
  bool is_answered = false;
  for (resp::ReplyPtr &reply : replies) {
    if (reply->kind == Reply::Kind::kPush) {
      if (Dialogue::keeps_push(from, pushes_.size())) pushes_.push_back(std::move(reply));
      continue;
    }
    const bool is_awaited =
        !is_over() && from == dialogue_->wire() && dialogue_->awaited_count() > 0;
    if (!is_awaited || !out_.empty()) continue;
    dialogue_->on_reply(from, *reply, sender(), now);
    is_answered = true;
  }
  if (is_answered) continue_dialogue();
}

void Attempt::on_closed(const Wire &, Nanos now) {
  if (is_over()) return;
  dialogue_->on_closed({}, now);
  continue_dialogue();
}

void Attempt::on_time(Nanos now) {
  if (is_over() || now < dialogue_->limit()) return;
  dialogue_->on_late(now);
  continue_dialogue();
}

void Attempt::end(Nanos now) {
  while (!is_over()) dialogue_->on_late(now);
  continue_dialogue();
}

driver::Dialogue::Send Attempt::sender() {
  return [this](auto argv) { resp::append_command(out_, argv); };
}

void Attempt::continue_dialogue() {
  for (const auto end : {Dialogue::kCommands, Dialogue::kMessages, Dialogue::kSentinel}) {
    if (dialogue_->uses(end)) continue;
    wires_[end].reset();
    if (end == Dialogue::kCommands) pushes_.clear();
  }
  if (is_over()) return;
  auto &wire = wires_[dialogue_->wire()];
  if (dialogue_->is_dialling()) {
    wire = std::make_unique<Wire>(dialogue_->target(), *this);
  } else {
    wire->send(out_);
  }
}

}  // namespace redlatch::wasm
