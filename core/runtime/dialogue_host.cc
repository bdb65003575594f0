// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/dialogue_host.h"

#include <algorithm>

#include "host/clock.h"
#include "resp/command_writer.h"

namespace redlatch::runtime {

using Received = net::Connection::Received;

void DialogueHost::hold() {
  while (!dialogue_.is_over()) {
    dialogue_.is_dialling() ? dial() : exchange();
    close_unused();
  }
}

DialogueHost::Dialogue::Send DialogueHost::sender() {
  return [this](auto argv) { resp::append_command(bytes_, argv); };
}

void DialogueHost::dial() {
  auto &connection = wires_[dialogue_.wire()];
  connection = std::make_unique<net::Connection>();
  const Nanos limit = dialogue_.limit();
  const auto outcome = attachment_ != nullptr
                           ? attachment_->dial(*connection, limit, wake_fd_)
                           : connection->dial(dialogue_.target(), limit, wake_fd_);
  const Nanos now = boot_now();
  outcome.ok() ? dialogue_.on_dialled(sender(), now) : dialogue_.on_failed(outcome, now);
}

// The replies that are awaited are given together, once all are there. After a refusal one more may
// be awaited, which came with them. Replies that are left when something is to be sent answer
// nothing.
void DialogueHost::exchange() {
  const Dialogue::Wire wire = dialogue_.wire();
  const size_t count = dialogue_.awaited_count();
  const Nanos limit = dialogue_.limit();
  net::Connection &connection = *wires_[wire];
  replies_.clear();
  bool is_open = connection.send_all(bytes_, limit, wake_fd_);
  bytes_.clear();
  while (is_open && replies_.size() < count) {
    const auto received = connection.receive_until(limit, wake_fd_, replies_);
    if (received == Received::kNothing) return dialogue_.on_late(boot_now());
    is_open = received != Received::kEnded;
    keep_pushes(wire);
  }
  const Outcome why = is_open ? Outcome{} : connection.why_ended(replies_);
  keep_pushes(wire);
  const Nanos now = boot_now();
  if (replies_.size() < count && why.ok() && now >= limit) return dialogue_.on_late(now);
  if (replies_.size() < count) return dialogue_.on_closed(why, now);
  for (const resp::ReplyPtr &reply : replies_) {
    if (!bytes_.empty()) break;
    dialogue_.on_reply(wire, *reply, sender(), now);
  }
}

void DialogueHost::keep_pushes(Dialogue::Wire from) {
  const auto is_reply = [](const resp::ReplyPtr &r) { return r->kind != Reply::Kind::kPush; };
  const auto pushes = std::stable_partition(replies_.begin(), replies_.end(), is_reply);
  for (auto push = pushes; push != replies_.end(); push++) {
    if (Dialogue::keeps_push(from, pushes_.size())) pushes_.push_back(std::move(*push));
  }
  replies_.erase(pushes, replies_.end());
}

void DialogueHost::close_unused() {
  for (const Dialogue::Wire wire :
       {Dialogue::kCommands, Dialogue::kMessages, Dialogue::kSentinel}) {
    if (dialogue_.uses(wire)) continue;
    wires_[wire].reset();
    if (wire == Dialogue::kCommands) pushes_.clear();
  }
}

}  // namespace redlatch::runtime
