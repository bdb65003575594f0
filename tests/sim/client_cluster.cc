// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: of a cluster. It notes what the servers tell the product about slots, and checks where
// the product sends its commands.
#include <algorithm>
#include <utility>

#include "client.h"
#include "cluster.h"
#include "driver/services.h"
#include "lock/server.h"
#include "memory.h"
#include "protocol/slots.h"
#include "reply_view.h"

namespace redlatch::sim {

namespace {

// Redirects of one slot in a second: those that are followed at once, and some with a pause.
constexpr int kMostBounces = 30;
constexpr Nanos kMisplacedLimit = 5 * kSecond;

}  // namespace

const cluster::ClusterClient &Client::cluster() const {
  return dynamic_cast<const cluster::ClusterClient &>(inner());
}

void Client::name_nodes(Settings &settings) const {
  settings.host.clear();
  if (context_.plan.names_one_node) {
    const HostPort one = node_address(static_cast<size_t>(slot_ % context_.plan.shard_count));
    settings.host = one.host;
    settings.port = one.port;
    return;
  }
  for (size_t i = 0; i < static_cast<size_t>(context_.plan.shard_count); i++) {
    settings.cluster.addresses.push_back(node_address(i));
  }
}

void Client::open_node(size_t, const Settings &settings) {
  const CoreMemory::Pause pause;
  wires_.push_back(std::make_unique<Wire>(*this, wires_.size(), settings));
  wires_.back()->at = server_at({settings.host, settings.port});
}

// The server that the URL names is one of several. Its connections are given up.
void Client::become_cluster(Wire &wire) {
  hang_up(wire, Network::Ending::kSoon);
  wire.ended.reset();
  const auto id = random_id();
  const uint64_t seed = random_.next();
  {
    const CoreMemory::Scope scope;
    driver::become_cluster(*service_, settings_.front(), id, seed, *this);
  }
  context_.trace.say(context_.schedule.now(), "client %d becomes one of a cluster", slot_);
  settle();
}

// ---- the map -----------------------------------------------------------------------------------

void Client::on_slots(Wire &wire) {
  later(scheduling(), [this, &wire] {
    if (is_closed_) return;
    const auto ranges = wire.ended->slots();
    const bool is_known = std::equal(ranges.begin(), ranges.end(), ranges_.begin(), ranges_.end(),
                                     [](const auto &one, const auto &other) {
                                       return one.first == other.first && one.last == other.last &&
                                              one.primary == other.primary;
                                     });
    if (!is_known || !redirects_.empty()) redirected_at_ = now();
    ranges_.assign(ranges.begin(), ranges.end());
    redirects_ = recent_redirects_;
    wire.redials.may_restart();
    end_attempt(wire);
  });
}

// ---- rules -------------------------------------------------------------------------------------

bool Client::hears(std::string_view cid) const {
  return std::any_of(wires_.begin(), wires_.end(), [&](const auto &wire) {
    const bool is_one = is_cluster() ? wire->node > 0 : wire->node == 0;
    return is_one && wire->is_up() && service_->channel(wire->node).ends_with(cid);
  });
}

// Rules: a script of several keys names the one that never exists, so that it cannot run on a slot
// that moves; a script goes to the server that was named last, except once behind ASKING; no two
// servers are sent commands about one slot at the same time; and redirects that go on are followed
// slowly.
void Client::note_command(Wire &wire, Argv argv) {
  const Argv keys = Server::keys_of(argv);
  const bool is_script = argv[0].starts_with("EVAL") && !keys.empty();
  const bool is_asked = !wire.slots.empty() && wire.slots.back() == kNoSlot && wire.is_asking;
  wire.is_asking = argv[0] == "ASKING";
  wire.slots.push_back(is_script && !is_asked ? protocol::slot_of(keys.front()) : kNoSlot);
  // It asks about a lock key that is tracked: a MOVED names the node as that of a script does.
  if (argv[0] == "EXISTS") wire.slots.back() = kNoSlot - 1 - protocol::slot_of(argv[1]);
  if (!is_script || is_asked) return;
  const auto slot = static_cast<uint16_t>(wire.slots.back());
  const auto who = [&] {
    return "client " + std::to_string(slot_) + ", slot " + std::to_string(slot) + ", node " +
           std::to_string(wire.at);
  };
  const bool has_absent = keys.back().ends_with(":rl1.n") || keys.back().ends_with(":rl1:n");
  if (keys.size() > 1 && !has_absent) {
    context_.verdict.broken("a script of several keys names the one that never exists", who());
  }
  const size_t named = named_server(slot);
  if (named != wire.at) {
    context_.verdict.broken("a command goes to the node that was named last",
                            who() + " instead of " + std::to_string(named));
  }
  for (const auto &other : wires_) {
    if (other.get() == &wire || !other->is_up()) continue;
    if (std::find(other->slots.begin(), other->slots.end(), slot) == other->slots.end()) continue;
    context_.verdict.broken("commands about a slot are under way to one node only",
                            who() + " and " + std::to_string(other->at));
  }
  Bounces &bounces = bounces_[slot];
  const Nanos now = context_.schedule.now();
  if (now - bounces.since >= kSecond) bounces = {now, 0, bounces.server};
  if (std::exchange(bounces.server, wire.at) != wire.at && ++bounces.count > kMostBounces) {
    context_.verdict.broken("a loop of redirects is followed slowly", who());
  }
}

// Rule: where only slots move, a lease that is renewed is not lost, however long that takes. Short
// ones are let off: two nodes that name each other for 100 ms are not asked all the time.
void Client::note_loss(const lock::Lease &lease) {
  context_.stats.lost++;
  check_promise(lease);
  const bool is_promised = context_.plan.scenario == Scenario::kClusterClocks &&
                           context_.plan.lease_min >= kSecond &&
                           lease.loss == lock::LossReason::kExpired &&
                           lease.reason.find("renewal is off") == std::string::npos;
  if (!is_promised) return;
  context_.verdict.broken("a renewed lease outlives the move of its slot",
                          "client " + std::to_string(slot_) + ", token " + lease.token);
}

bool Client::knows_clock(const lock::Lease &lease, size_t server, Nanos moved_at) const {
  const lock::TokenRecord *record = lease.record;
  if (record == nullptr) return true;
  const auto heard = heard_at_.find(record->lock->slot());
  if (heard == heard_at_.end() || heard->second < moved_at) return false;
  const size_t node = record->server().node;
  const auto *held = std::get_if<Checked<lock::HeldLease>>(&record->stage);
  const bool is_there = node > 0 && wires_[node]->at == server && wires_[node]->is_up();
  return is_there && (held == nullptr || !(*held)->awaits_clock());
}

bool Client::may_miss_a_stay(const lock::Lease &lease, Nanos moved_before_at) const {
  const lock::TokenRecord *record = lease.record;
  if (record == nullptr) return false;
  const auto *held = std::get_if<Checked<lock::HeldLease>>(&record->stage);
  return held != nullptr && !(*held)->is_renewed() && when((*held)->granted_at()) < moved_before_at;
}

// As the client was told last.
size_t Client::named_server(uint16_t slot) const {
  if (const auto found = redirects_.find(slot); found != redirects_.end()) return found->second;
  for (const auto &range : ranges_) {
    if (range.contains(slot)) return server_at(range.primary);
  }
  return SIZE_MAX;
}

void Client::note_answer(Wire &wire, const Value &value) {
  if (wire.slots.empty()) return;
  int slot = wire.slots.front();
  wire.slots.pop_front();
  if (slot == kNoSlot) return;
  const bool is_script = slot > kNoSlot;
  if (!is_script) slot = kNoSlot - 1 - slot;
  if (!value.is_error()) {
    if (is_script) heard_at_[static_cast<uint16_t>(slot)] = context_.schedule.now();
    return;
  }
  const ReplyView view(value);
  const auto redirect = protocol::read_redirect(view.get(), node_address(wire.at));
  if (redirect.kind != protocol::Redirect::Kind::kMoved || redirect.slot != slot) return;
  note_owner(redirect.slot, redirect.to);
}

void Client::note_channel(const Wire &wire, const ServerFacts &facts) {
  if (!facts.channel_owner) return;
  const uint16_t slot = protocol::slot_of(wire.channel);
  const size_t named = named_server(slot);
  if (named == wire.at || named == SIZE_MAX) note_owner(slot, *facts.channel_owner);
}

void Client::note_owner(uint16_t slot, const HostPort &server) {
  redirects_[slot] = recent_redirects_[slot] = server_at(server);
}

void Client::check_cluster() {
  if (const char *broken = cluster().check()) {
    context_.verdict.broken("the client of a cluster is legal", broken);
  }
  check_tickets();
  check_channels();
}

// Rule: nobody's place gets worse by a move: a waiter whose token changes keeps its ticket.
void Client::check_tickets() {
  decltype(tickets_) tickets;
  for (const auto &[request, call] : calls_) {
    const lock::TokenRecord *record = request->record;
    if (request->op != lock::Request::Op::kAcquire || record == nullptr) continue;
    const bool is_waiting = record->phase == lock::TokenRecord::Phase::kAsking ||
                            record->phase == lock::TokenRecord::Phase::kQueued;
    if (!is_waiting) continue;
    const std::string &token = record->identity.token;
    const std::string &ticket = record->acquisition->ticket();
    tickets[record] = {token, ticket};
    const auto known = tickets_.find(record);
    if (known == tickets_.end() || known->second.second.empty()) continue;
    if (known->second.first == token || known->second.second == ticket) continue;
    context_.verdict.broken("a waiter that moves keeps its ticket",
                            "client " + std::to_string(slot_) + ", token " + token);
  }
  tickets_ = std::move(tickets);
}

// Whether any slot is the server's, as the client was told last.
bool Client::is_named(size_t server) const {
  const auto is_owner = [&](const auto &entry) { return entry.second == server; };
  return std::any_of(redirects_.begin(), redirects_.end(), is_owner) ||
         std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const auto &range) { return server_at(range.primary) == server; });
}

// Rule: messages come on a channel in a slot of the node, or it is soon changed, once the client
// knows both: that the slot is another's, and that the node has slots.
void Client::check_channels() {
  for (const auto &wire : wires_) {
    if (wire->node == 0) continue;
    const bool is_misplaced =
        context_.is_calm && wire->is_up() && !context_.servers[wire->at]->store().is_replica() &&
        !context_.servers[wire->at]->is_channel_here(wire->channel) && is_named(wire->at) &&
        named_server(protocol::slot_of(wire->channel)) != wire->at;
    if (!is_misplaced) {
      wire->misplaced_since = kNever;
      continue;
    }
    const Nanos now = context_.schedule.now();
    wire->misplaced_since = std::min(wire->misplaced_since, now);
    const Nanos since = std::max({wire->misplaced_since, context_.calm_since, paused_until_});
    if (now - since <= kMisplacedLimit + 2 * context_.plan.timeout) continue;
    context_.verdict.broken(
        "a channel is in a slot of its node",
        "client " + std::to_string(slot_) + ", node " + std::to_string(wire->at));
  }
}

}  // namespace redlatch::sim
