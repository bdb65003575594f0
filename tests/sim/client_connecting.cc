// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: its attempts to connect. It does what the product's dialogue says, on the simulated
// network.
#include <algorithm>
#include <utility>

#include "client.h"
#include "cluster.h"
#include "driver/node_attempt.h"
#include "driver/services.h"
#include "group.h"
#include "memory.h"
#include "reply_view.h"
#include "sentinel.h"

namespace redlatch::sim {

using driver::Dialogue;

namespace {

Outcome not_reachable() { return failure(Status::kUnavailable, "the server is not reachable"); }

}  // namespace

void Client::connect(Wire &wire) {
  if (wire.opening || wire.is_end_due) return;
  driver::PrimaryFollower *follower = guide_ ? &guide_->follower() : nullptr;
  if (follower != nullptr && follower->is_hurried() && !wire.is_up()) wire.redials.hurry();
  {
    const CoreMemory::Scope scope;
    if (!wire.connection.begin_attempt(*service_, follower, now())) return;
    wire.opening =
        std::make_unique<driver::NodeAttempt>(wire.settings, *service_, wire.node, follower);
  }
  wire.hurried_at = kNever;
  note_dial(wire);
  wire.login_try = std::make_unique<LoginTry>(*this, context_, wire.opening->login());
  prepare(wire);
  go_on(wire);
}

void Client::prepare(Wire &wire) {
  if (reads_slots(wire)) return;
  const std::string &channel = wire.opening->channel();
  if (!wire.channel.empty() && wire.channel != channel) {
    context_.checker.changed_channel(wire.channel, channel);
  }
  wire.channel = channel;
  if (guide_) guide_->tend_watch();
}

// Dials with the password of the moment, or waits for it.
void Client::go_on(Wire &wire) {
  const auto stage = wire.login_try->go_on();
  if (stage == LoginTry::Stage::kWaiting) return;
  if (stage == LoginTry::Stage::kOver) return conclude(wire);
  wire.opened_at = context_.schedule.now();
  context_.stats.openings++;
  context_.on_opening(slot_, wire.node);
  if (reads_slots(wire)) recent_redirects_.clear();
  {
    const CoreMemory::Scope scope;
    (void)wire.opening->begin(now());
  }
  dial(wire);
}

void Client::wake_tries() {
  for (size_t i = 0; i < wires_.size(); i++) {
    if (wires_[i]->opening && wires_[i]->dialogue() == nullptr) go_on(*wires_[i]);
  }
  side_.wake_try();
}

void Client::dial(Wire &wire) {
  const Settings &target = wire.dialogue()->target();
  if (guide_ && !target.is_of_sentinel) wire.at = number_in({target.host, target.port});
  wire.attempt++;
  wire.limit = 0;
  watch_limit(wire);
  const Nanos way = context_.network.delay() + context_.network.delay();
  later(way, [this, &wire, attempt = wire.attempt] {
    if (wire.dialogue() != nullptr && wire.attempt == attempt) dialled(wire);
  });
}

// A server that is down refuses at once. If it cannot be reached the limit ends the dial.
void Client::dialled(Wire &wire) {
  const Settings &target = wire.dialogue()->target();
  if (!is_reachable(wire, target)) return;
  const bool is_accepted = open(wire, target);
  step(wire, [&](Dialogue &dialogue, const Dialogue::Send &send) {
    is_accepted ? dialogue.on_dialled(send, now()) : dialogue.on_failed(not_reachable(), now());
  });
}

bool Client::is_reachable(const Wire &wire, const Settings &target) const {
  const HostPort address{target.host, target.port};
  if (target.is_of_sentinel) return !guide_->is_parted(number_in(address));
  if (reads_slots(wire)) return !is_parted(server_at(address));
  return context_.schedule.now() >= wire.blocked_until && !is_parted(wire.at);
}

bool Client::open(Wire &wire, const Settings &target) {
  const HostPort address{target.host, target.port};
  const Dialogue::Wire end = wire.dialogue()->wire();
  uint64_t &link = wire.link_of(end);
  if (target.is_of_sentinel) {
    wire.sentinel = number_in(address);
    Sentinel &sentinel = context_.group->sentinel(wire.sentinel);
    link = context_.network.open(wire, sentinel);
    return sentinel.accept(link);
  }
  Server &server = *context_.servers[reads_slots(wire) ? server_at(address) : wire.at];
  link = context_.network.open(wire, server, end == Dialogue::kMessages);
  return server.accept(link);
}

// Every event of an attempt to connect goes through here.
template <class Event>
void Client::step(Wire &wire, const Event &event) {
  Dialogue &dialogue = *wire.dialogue();
  CommandList out;
  const auto send = [&out](Argv argv) {
    const CoreMemory::Pause pause;
    out.emplace_back(argv);
  };
  {
    const CoreMemory::Scope scope;
    event(dialogue, Dialogue::Send(send));
  }
  if (const char *broken = dialogue.check()) {
    context_.verdict.broken("an attempt to connect is legal", broken);
  }
  for (const auto end : {Dialogue::kCommands, Dialogue::kMessages, Dialogue::kSentinel}) {
    uint64_t &link = wire.link_of(end);
    if (link == 0 || dialogue.uses(end)) continue;
    context_.network.close(std::exchange(link, 0), Network::Ending::kSoon);
    const bool is_of_messages =
        end == Dialogue::kMessages || (end == Dialogue::kCommands && wire.messages_link == 0);
    if (is_of_messages) wire.early.clear();
  }
  if (dialogue.is_over()) return finish(wire);
  if (dialogue.is_dialling()) return dial(wire);
  if (!out.empty()) context_.network.send_up(wire.link_of(dialogue.wire()), std::move(out));
  watch_limit(wire);
}

void Client::answer(Wire &wire, uint64_t link, const Messages &messages) {
  const uint64_t attempt = wire.attempt;
  const bool is_for_messages = link == wire.messages_link;
  for (const Message &message : messages) {
    if (!wire.owns(link)) return;
    if (wire.dialogue() == nullptr || wire.attempt != attempt) return take(wire, link, {message});
    if (message.kind != Message::Kind::kReply) {
      const bool is_kept =
          is_for_messages || Dialogue::keeps_push(wire.end_of(link), wire.early.size());
      if (is_kept) wire.early.push_back(message);
      continue;
    }
    if (now() >= wire.dialogue()->limit()) break;
    const Dialogue::Wire from = wire.end_of(link);
    const ReplyView view(message.value);
    step(wire, [&](Dialogue &dialogue, const Dialogue::Send &send) {
      dialogue.on_reply(from, view.get(), send, now());
    });
  }
}

void Client::watch_limit(Wire &wire) {
  if (wire.limit == wire.dialogue()->limit()) return;
  wire.limit = wire.dialogue()->limit();
  if (wire.limit == kNever) return;
  const Nanos left = std::max<Nanos>(clock_.when(wire.limit) - context_.schedule.now(), 0);
  later(left, [this, &wire, attempt = wire.attempt, limit = wire.limit] {
    const Dialogue *const held = wire.dialogue();
    if (held == nullptr || wire.attempt != attempt || held->limit() != limit) return;
    step(wire, [this](Dialogue &dialogue, const Dialogue::Send &) { dialogue.on_late(now()); });
  });
}

void Client::finish(Wire &wire) {
  driver::NodeAttempt &attempt = *wire.opening;
  wire.login_try->note_dialled(wire.dialogue()->outcome());
  {
    const CoreMemory::Scope scope;
    attempt.end(now());
  }
  if (wire.login_try->go_on() == LoginTry::Stage::kOver) return conclude(wire);
  hang_up(wire, Network::Ending::kSoon);
  go_on(wire);
}

void Client::conclude(Wire &wire) {
  using Result = driver::NodeAttempt::Result;
  wire.login_try.reset();
  wire.ended = std::move(wire.opening);
  Result result{};
  {
    const CoreMemory::Scope scope;
    result = wire.ended->conclude();
  }
  if (result == Result::kSlots) return on_slots(wire);
  if (result == Result::kCluster) return become_cluster(wire);
  if (result == Result::kConnected) {
    check_opening(wire, wire.ended->facts());
    return on_connected(wire);
  }
  context_.trace.say(context_.schedule.now(), "client %d does not connect to node %zu: %s", slot_,
                     wire.at, wire.ended->outcome().message.c_str());
  hang_up(wire, Network::Ending::kSoon);
  give_up(wire);
}

// Rule: an outage is one line of the log, and its end another; and so is another primary.
void Client::end_attempt(Wire &wire) {
  const std::unique_ptr<driver::NodeAttempt> ended = std::move(wire.ended);
  const bool is_only = !context_.plan.is_quorum() && !context_.plan.is_cluster();
  const bool is_ok = ended->outcome().ok();
  const auto level = is_ok ? driver::LogLevel::kInfo : driver::LogLevel::kWarning;
  const uint64_t &count = line_counts_[static_cast<size_t>(level)];
  const bool is_named = guide_ && is_ok && std::exchange(wire.named_at, wire.at) != wire.at;
  bool is_right = true;
  call([&](lock::LockService &service, Nanos now) {
    const uint64_t before = count;
    wire.connection.on_attempt_over(service, *ended, is_only, now);
    if (is_ok && !reads_slots(wire) && !wire.connection.is_usable()) return;  // dropped again
    const bool is_change = std::exchange(wire.is_away, !is_ok) == is_ok;
    is_right = count - before == (is_change ? 1U : 0U) + (is_named ? 1U : 0U);
  });
  if (is_right) return;
  context_.verdict.broken("the log has changes only",
                          "client " + std::to_string(slot_) + ": " + ended->outcome().message);
}

void Client::on_connected(Wire &wire) {
  const ServerFacts facts = wire.ended->facts();
  wire.connection.make(facts, wire.ended->login().login().number);
  wire.down_since = kNever;
  wire.may_skip_pause = facts.is_channel_taken;
  if (facts.channel_owner) redirected_at_ = now();
  wire.refused_at = kNever;
  wire.slots.clear();  // also of commands that the service sent to a connection that had ended
  wire.up_since = context_.schedule.now();
  wire.left_since = kNever;
  context_.trace.say(context_.schedule.now(), "client %d is connected to node %zu, %s, up %lld s",
                     slot_, wire.at, facts.run_id.c_str(),
                     static_cast<long long>(facts.age.uptime_s));
  // A node that does not say who it is, as one whose clock went back to before its start, is not
  // known to have restarted. Its connection is given up.
  if (!facts.run_id.empty()) {
    if (!wire.run_id.empty() && wire.run_id != facts.run_id) {
      context_.checker.learnt_of_restart(wire.node, wire.channel);
    }
    wire.run_id = facts.run_id;
  }
  note_channel(wire, facts);
  wire.polls_since = facts.is_channel_taken ? context_.schedule.now() : kNever;
  authenticate(wire);
  end_attempt(wire);
  take(wire, wire.messages_link != 0 ? wire.messages_link : wire.link,
       std::exchange(wire.early, {}));
}

void Client::give_up(Wire &wire) {
  wire.is_end_due = true;
  later(scheduling(), [this, &wire] {
    wire.is_end_due = false;
    if (is_closed_) return;
    note_pause(wire);
    end_attempt(wire);
  });
}

void Client::note_end(Wire &wire) {
  if (wire.dialogue() == nullptr) return disconnect(wire);
  step(wire, [this](Dialogue &dialogue, const Dialogue::Send &) { dialogue.on_closed({}, now()); });
}

}  // namespace redlatch::sim
