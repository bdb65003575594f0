// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "dialogue_host.h"

#include <algorithm>

#include "base/dial_failure.h"
#include "resp/command_writer.h"

namespace redlatch::wasm {

void DialogueHost::on_dialled(const Wire &, Nanos now) {
  dialogue_.on_dialled(sender(), now);
  proceed();
}

// Replies that are left when something is to be sent answer nothing.
void DialogueHost::on_replies(const Wire &wire, Replies replies, Nanos now) {
  if (now >= dialogue_.limit()) return on_time(now);
  const auto found = std::find_if(wires_.begin(), wires_.end(),
                                  [&](const auto &mine) { return mine.get() == &wire; });
  const auto from = static_cast<Dialogue::Wire>(found - wires_.begin());
  const bool is_asking = !dialogue_.is_dialling();
  bool is_answered = false;
  for (resp::ReplyPtr &reply : replies) {
    if (reply->kind == Reply::Kind::kPush) {
      if (Dialogue::keeps_push(from, pushes_.size())) pushes_.push_back(std::move(reply));
    } else if (is_asking && out_.empty()) {
      dialogue_.on_reply(from, *reply, sender(), now);
      is_answered = true;
    }
  }
  if (is_answered) proceed();
}

void DialogueHost::on_closed(const Wire &, std::string_view why, Nanos now) {
  if (is_over()) return;
  dialogue_.on_closed(unreachable(dialogue_.target().address(), why), now);
  proceed();
}

void DialogueHost::on_time(Nanos now) {
  if (is_over() || now < dialogue_.limit()) return;
  dialogue_.on_late(now);
  proceed();
}

void DialogueHost::stop(Nanos now) {
  while (!is_over()) dialogue_.on_late(now);
  proceed();
}

driver::Dialogue::Send DialogueHost::sender() {
  return [this](auto argv) { resp::append_command(out_, argv); };
}

// After each event.
void DialogueHost::proceed() {
  for (const auto end : {Dialogue::kCommands, Dialogue::kMessages, Dialogue::kSentinel}) {
    if (dialogue_.uses(end)) continue;
    wires_[end].reset();
    if (end == Dialogue::kCommands) pushes_.clear();
  }
  if (is_over()) return;
  auto &wire = wires_[dialogue_.wire()];
  if (dialogue_.is_dialling()) {
    wire = std::make_unique<Wire>(dialogue_.target(), *this);
  } else {
    wire->send(out_);
  }
}

}  // namespace redlatch::wasm
