// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: the rules about its connections.
#include <algorithm>
#include <string>

#include "client.h"

namespace redlatch::sim {

// Two dials, two handshakes, an identity and a probe, and the error of the clock.
void Client::check_openings() const {
  const Nanos limit = 6 * context_.plan.timeout + context_.plan.timeout / 10 + kSecond;
  for (const auto &wire : wires_) {
    check_left(*wire);
    check_polling(*wire);
    check_silence(*wire);
    const Nanos begin = std::max(wire->opened_at, paused_until_);
    if (!wire->dialogue || context_.schedule.now() - begin < limit) continue;
    context_.verdict.broken("an opening ends within its limits", "client " + std::to_string(slot_));
  }
}

// Rule: a client does not poll for longer than its old connection lives.
void Client::check_polling(const Wire &wire) const {
  constexpr Nanos kLongestLife = 15 * kSecond;  // Network::Ending::kLate, and the way of messages
  if (!wire.is_up || wire.polls_since == kNever) return;
  if (context_.schedule.now() - wire.polls_since <= kLongestLife) return;
  context_.verdict.broken("a client does not poll for longer than its old connection lives",
                          "client " + std::to_string(slot_) + ", node " + std::to_string(wire.at));
}

// Rule: while a lock is waited for, a connection for messages that has died is not kept for long:
// one limit without a message, another one without an answer, and the time of a pause.
void Client::check_silence(Wire &wire) const {
  const Nanos now = context_.schedule.now();
  const bool is_deaf = wire.is_up && wire.messages_link != 0 &&
                       wire.messages_link == wire.silent_link && is_waiting() && !is_paused() &&
                       !context_.is_calm && context_.servers.size() == 1;
  wire.silent_since = is_deaf ? std::min(wire.silent_since, now) : kNever;
  if (!is_deaf || now - wire.silent_since <= 2 * context_.plan.timeout + 2 * kSecond) return;
  context_.verdict.broken("a dead connection for messages is noticed",
                          "client " + std::to_string(slot_));
}

void Client::silence_messages(size_t node) {
  constexpr Nanos kLong = 60 * kSecond;
  Wire &wire = *wires_[node];
  wire.silent_link = wire.messages_link;
  for (const bool is_up : {true, false}) {
    context_.network.stall(wire.messages_link, is_up, context_.schedule.now() + kLong);
  }
}

// What it found out is true, unless the server has ended the connection since.
void Client::check_opening(const Wire &wire, const ServerFacts &facts) {
  const uint64_t messages = wire.messages_link != 0 ? wire.messages_link : wire.link;
  const auto broken = [&](std::string_view rule) {
    context_.verdict.broken(rule, "client " + std::to_string(slot_));
  };
  if (facts.is_push_trusted && !server(wire).is_probed(wire.link, messages)) {
    broken("messages are trusted after a probe");
  }
  if (facts.is_sharded != context_.plan.is_sharded ||
      facts.can_track != (context_.plan.protocol == 3)) {
    broken("a handshake finds out what the server understands");
  }
  if (facts.is_replica != server(wire).has_read_replica(wire.link) &&
      context_.network.is_open(wire.link)) {
    broken("a handshake knows a replica");
  }
  if (guide_ && !server(wire).has_read_primary(wire.link) && context_.network.is_open(wire.link)) {
    broken("only a server that says that it is the primary is used");
  }
}

}  // namespace redlatch::sim
