// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: the rules about its connections.
#include <algorithm>
#include <string>

#include "client.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kLongestPause = Redials::kOfServer.last;

}  // namespace

// Two dials, two handshakes, an identity and a probe, and the error of the clock.
Nanos Client::opening_limit() const {
  return 6 * context_.plan.timeout + context_.plan.timeout / 10 + kSecond;
}

void Client::check_openings() const {
  check_drain();
  if (is_closed_) return;
  if (guide_) guide_->check_redials();
  const Nanos limit = opening_limit();
  for (const auto &wire : wires_) {
    check_left(*wire);
    check_polling(*wire);
    check_silence(*wire);
    check_redials(*wire);
    const Nanos begin = std::max(wire->opened_at, paused_until_);
    if (wire->dialogue() == nullptr || context_.schedule.now() - begin < limit) continue;
    context_.verdict.broken("an opening ends within its limits", "client " + std::to_string(slot_));
  }
}

// Rule: a client does not poll for longer than its old connection lives.
void Client::check_polling(const Wire &wire) const {
  constexpr Nanos kLongestLife = 15 * kSecond;  // Network::Ending::kLate, and the way of messages
  if (!wire.is_up() || wire.polls_since == kNever) return;
  if (context_.schedule.now() - wire.polls_since <= kLongestLife) return;
  context_.verdict.broken("a client does not poll for longer than its old connection lives",
                          "client " + std::to_string(slot_) + ", node " + std::to_string(wire.at));
}

// Rule: while a lock is waited for, a connection for messages that has died is not kept for long:
// one limit without a message, another one without an answer, and the time of a pause.
void Client::check_silence(Wire &wire) const {
  const Nanos now = context_.schedule.now();
  const bool is_deaf = wire.is_up() && wire.messages_link != 0 &&
                       wire.messages_link == wire.silent_link && is_waiting() && !is_paused() &&
                       !context_.is_calm && context_.servers.size() == 1;
  wire.silent_since = is_deaf ? std::min(wire.silent_since, now) : kNever;
  if (!is_deaf || now - wire.silent_since <= 2 * context_.plan.timeout + 2 * kSecond) return;
  context_.verdict.broken("a dead connection for messages is noticed",
                          "client " + std::to_string(slot_));
}

void Client::check_retained() {
  if (!retained_.has_idle()) return;
  const bool is_up = !is_cluster() && !is_paused() && !is_resuming_ && is_all_up();
  const char *rule =
      retained_.check(is_up, now(), [this](const std::string &name, const std::string &token) {
        return context_.checker.is_held_by(std::string(kNamespace) + name, token);
      });
  if (rule == nullptr) return;
  context_.verdict.broken(rule, "client " + std::to_string(slot_) + " " + retained_.kept_longest());
}

void Client::silence_messages(size_t node) {
  constexpr Nanos kLong = 60 * kSecond;
  Wire &wire = *wires_[node];
  if (wire.silent_link != wire.messages_link) wire.silent_since = kNever;
  wire.silent_link = wire.messages_link;
  for (const bool is_up : {true, false}) {
    context_.network.stall(wire.messages_link, is_up, context_.schedule.now() + kLong);
  }
}

// ---- pauses between attempts to connect --------------------------------------------------------

// Calls that do not wait dial at once. A client without calls needs no server.
void Client::note_start(const lock::Request &request) {
  if (!is_busy()) {
    for (const auto &wire : wires_) wire->down_since = kNever;
  }
  using Op = lock::Request::Op;
  const bool is_patient = request.op == Op::kRelease ||
                          ((request.op == Op::kAcquire || request.op == Op::kUpgrade) &&
                           request.wait_ms != 0 && !request.several.names) ||  // which are tried
                          (request.task && request.task->is_election());
  // A flight begins with a read, which does not wait.
  if (is_patient && !request.is_flight()) return;
  for (const auto &wire : wires_) wire->redials.hurry();
}

// Rule: a server that cannot be reached is dialled ever more seldom. Not so a node of a quorum,
// which every round of a request dials; and a node of a cluster is dialled when a slot comes to it,
// once the commands about the slot are answered, or lost: maybe only after a pause of the process.
void Client::note_dial(Wire &wire) {
  const Nanos begin = std::max(redirected_at_, clock_.read(paused_until_));
  const Nanos settled = begin + 2 * context_.plan.timeout + kLongestPause + kSecond;
  if (context_.plan.is_quorum() || (is_cluster() && now() < settled)) wire.redials.hurry();
  wire.down_since = std::min(wire.down_since, context_.schedule.now());
  if (wire.redials.begin(now())) return;
  context_.verdict.broken("a server that is away is dialled ever more seldom",
                          "client " + std::to_string(slot_) + ", node " + std::to_string(wire.at));
}

void Client::note_pause(Wire &wire) {
  wire.redials.ended(now(), std::exchange(wire.may_skip_pause, false));
}

// One that has shown to be a replica is left, and its answers count less for a while.
void Client::note_reply(Wire &wire, const Value &value) {
  if (value.is_error()) {
    const std::string_view text = value.text;
    if (text.starts_with("MOVED") || text.starts_with("ASK")) redirected_at_ = now();
    if (text.starts_with("READONLY")) wire.must_pause_until = now() + kSecond;
    return;
  }
  wire.redials.may_restart();
  if (now() >= wire.must_pause_until) wire.redials.must_restart();
}

// Rules: what has calls to serve does not pause for too long; and once nothing disturbs it, it is
// connected after the longest pause and the time of an opening.
void Client::check_redials(const Wire &wire) const {
  if (context_.plan.is_quorum() || is_cluster() || !is_busy() || is_paused()) return;
  const auto who = [&] { return "client " + std::to_string(slot_); };
  if (wire.redials.is_too_long(clock_.read(paused_until_), now())) {
    context_.verdict.broken("a client that is needed dials again in time", who());
  }
  const Nanos since = std::max({wire.down_since, context_.calm_since, paused_until_});
  const bool is_late = context_.schedule.now() - since > kLongestPause + opening_limit();
  if (!context_.is_calm || wire.down_since == kNever || !is_late) return;
  context_.verdict.broken("a server that is there again is found", who());
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
