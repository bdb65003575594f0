// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster_rules.h"

#include <algorithm>

#include "caller.h"
#include "protocol/slots.h"

namespace redlatch::sim {

namespace {

// A waiter that has moved has to remove its old place in this time, while nothing fails.
constexpr Nanos kStrayLimit = 5 * kSecond;

}  // namespace

ClusterRules::ClusterRules(const RuleParts &parts,
                           const std::vector<std::unique_ptr<Server>> &servers)
    : RuleParts(parts), servers_(servers) {
  for (int i = 0; i < plan_.name_count; i++) {
    const std::string key = std::string(kNamespace) + lock_name(i);
    place_numbers_[protocol::slot_of(key)] = places_.size();
    places_.push_back(std::make_unique<Place>(key, parts, *servers.front()));
  }
  for (size_t i = 0; i < servers.size(); i++) {
    nodes_.push_back(std::make_unique<Node>(*this, i));
    servers[i]->add_witness(*nodes_.back());
  }
}

std::vector<uint16_t> ClusterRules::slots() const {
  std::vector<uint16_t> slots;
  for (const auto &[slot, number] : place_numbers_) slots.push_back(slot);
  return slots;
}

// nullptr: a key that is of no lock.
ClusterRules::Place *ClusterRules::place_of(std::string_view key) {
  const auto found = place_numbers_.find(protocol::slot_of(key));
  if (found == place_numbers_.end() || key.starts_with(kChannelPrefix)) return nullptr;
  return places_[found->second].get();
}

ClusterRules::Place &ClusterRules::place_of_name(const std::string &name) {
  return *place_of(std::string(kNamespace) + name);
}

// ---- servers -----------------------------------------------------------------------------------

void ClusterRules::Node::before(Argv argv, int64_t now_us) {
  const Argv keys = Server::keys_of(argv);
  running = keys.empty() ? nullptr : all.place_of(keys.front());
  is_checked = running != nullptr && keys.front() == running->key;
  if (running == nullptr) return;
  if (index != running->server && index != running->other) {
    all.verdict_.broken("the simulator: a node serves its own slots only",
                        running->key + ", node " + std::to_string(index));
  }
  if (is_checked) running->rules.before(argv, now_us);
}

// A part of a lease is extended by a command with the readers' key alone, which has no rules.
void ClusterRules::Node::after(Argv argv, const Value &reply, int64_t now_us) {
  if (running == nullptr) return;
  if (is_checked) {
    running->rules.after(argv, reply, now_us);
  } else {
    running->rules.note_apart();
    running->rules.move(*all.servers_[running->server],
                        running->other == SIZE_MAX ? nullptr : all.servers_[running->other].get());
  }
  all.check_one_node(*running);
  running = nullptr;
}

void ClusterRules::Node::changed(std::string_view key) {
  Place *place = all.place_of(key);
  if (place != nullptr && index == place->server) place->rules.changed(key);
}

void ClusterRules::Node::queued(std::string_view key, std::string_view member, double score) {
  Place *place = all.place_of(key);
  if (place == nullptr || index != place->server) return;
  place->rules.queued(key, member, score);
  const auto waiter = all.waiters_.find(member);
  if (waiter != all.waiters_.end()) place->tickets[score].insert(waiter->second.client);
}

void ClusterRules::Node::dequeued(std::string_view key, std::string_view member, double score) {
  Place *place = all.place_of(key);
  if (place != nullptr && index == place->server) place->rules.dequeued(key, member, score);
}

void ClusterRules::moved(uint16_t slot, size_t server, const size_t *other) {
  const auto found = place_numbers_.find(slot);
  if (found == place_numbers_.end()) return;
  Place &place = *places_[found->second];
  if (place.server != server) {
    place.moved_before_at = std::exchange(place.moved_at, schedule_.now());
  }
  place.server = server;
  place.other = other == nullptr ? SIZE_MAX : *other;
  place.rules.move(*servers_[server], other == nullptr ? nullptr : servers_[*other].get());
  check_one_node(place);
}

void ClusterRules::key_moved(uint16_t slot, size_t from, size_t to) {
  const auto found = place_numbers_.find(slot);
  if (found == place_numbers_.end()) return;
  const Place &place = *places_[found->second];
  const bool is_there = servers_[to]->has_key(place.key) || !servers_[from]->has_key(place.key);
  moved(slot, is_there ? to : from, is_there ? &from : &to);
}

// Rule: no lock is held at two nodes. What a server has as a replica does not count.
void ClusterRules::check_one_node(const Place &place) {
  int count = 0;
  std::string where;
  for (size_t i = 0; i < servers_.size(); i++) {
    if (servers_[i]->store().is_replica() || !servers_[i]->is_up()) continue;
    if (!servers_[i]->has_key(place.key)) continue;
    count++;
    where += " " + std::to_string(i);
  }
  if (count > 1) verdict_.broken("no lock is held at two nodes", place.key + ":" + where);
}

// A lease that the heir does not have is not promised to be the only one; one that is shorter there
// is, until its end there.
void ClusterRules::promoted(size_t old, size_t heir) {
  for (size_t i = 0; i < places_.size(); i++) {
    Place &place = *places_[i];
    if (place.server != old) continue;
    place.server = heir;  // excuse_at() goes by its clock
    const auto kept = place.rules.leases_at(servers_[heir]->store(), place.key);
    for (const auto &[token, end] : place.rules.leases_at(servers_[old]->store(), place.key)) {
      const auto found = kept.find(token);
      if (found != kept.end() && found->second >= end) continue;
      if (found != kept.end()) {
        excuse_at(found->second, i, token, end);
      } else {
        stats_.lost_grants++;
        beliefs_.excuse(token);
      }
    }
    place.rules.follow(*servers_[heir]);
  }
}

// See GroupRules::excuse_at().
void ClusterRules::excuse_at(int64_t end_ms, size_t number, const std::string &token,
                             int64_t last_ms) {
  const Nanos end = servers_[places_[number]->server]->clock().when(end_ms * kMs);
  schedule_.at(end, [this, end_ms, number, token, last_ms] {
    const Place &place = *places_[number];
    const auto ends = place.rules.leases_at(servers_[place.server]->store(), place.key);
    const auto found = ends.find(token);
    if (found == ends.end() || found->second <= end_ms) return beliefs_.excuse(token);
    if (found->second < last_ms) excuse_at(found->second, number, token, last_ms);
  });
}

// ---- clients -----------------------------------------------------------------------------------

// Rule: a lease that was held is not asked for again, whatever became of it.
void ClusterRules::sent(size_t node, int client, Argv argv) {
  const Argv keys = Server::keys_of(argv);
  Place *place = keys.empty() ? nullptr : place_of(keys.front());
  if (place == nullptr || keys.front() != place->key) return;
  const auto asked = Rules::asked(argv);
  if (asked && held_.contains(asked->token)) {
    verdict_.broken("a lease that was held is not made again",
                    "client " + std::to_string(client) + ", token " + std::string(asked->token));
  }
  if (asked) note_asked(client, *asked, *place);
  const auto waiter = waiters_.find(Rules::cancelled(argv));
  if (waiter != waiters_.end()) {
    waiter->second.cancelled_at = std::min(waiter->second.cancelled_at, schedule_.now());
  }
  place->rules.sent(node, client, argv);
}

// Rules: a waiter that knows its ticket asks with it; one that begins with a ticket has had it at
// another node.
void ClusterRules::note_asked(int client, const Rules::Asking &asked, Place &place) {
  const auto who = [&] {
    return "client " + std::to_string(client) + ", token " + std::string(asked.token);
  };
  const uint64_t life = context_->slots[static_cast<size_t>(client)].life;
  const auto [waiter, is_new] =
      waiters_.try_emplace(std::string(asked.member), Waiter{client, life});
  if (asked.ticket.empty()) {
    if (waiter->second.has_ticket) verdict_.broken("a waiter asks with its ticket", who());
    return;
  }
  waiter->second.has_ticket = true;
  if (!is_new) return;
  const auto ticket = static_cast<double>(integer_of(asked.ticket));
  const auto found = place.tickets.find(ticket);
  if (found == place.tickets.end() || !found->second.contains(client)) {
    verdict_.broken("a waiter moves with its own ticket", who());
  }
  place.rules.note_ticket(asked.member, ticket);
}

void ClusterRules::granted(const lock::Request &request, Nanos last_reply_at,
                           Beliefs::Holder &holder) {
  place_of_name(request.lease->name).rules.granted(request, last_reply_at, holder);
  held_.insert(holder.token);
}

void ClusterRules::succeeded(const lock::Request &request) {
  if (request.lease) place_of_name(request.lease->name).rules.succeeded(request);
}

void ClusterRules::told(const std::string &token) {
  for (const auto &place : places_) place->rules.told(token);
}

void ClusterRules::given_up(const std::string &token) {
  for (const auto &place : places_) place->rules.given_up(token);
}

// A node whose clock is ahead ends a lease early. The client cannot know that before it knows of
// the node and of its clock. It never learns the clock of a node that the slot has left again, and
// only a renewal at the next node would make up for that.
bool ClusterRules::is_let_off(const std::string &name, const Beliefs::Holder &holder) const {
  if (plan_.scenario != Scenario::kClusterClocks || !holder.lease) return false;
  const size_t number = place_numbers_.at(protocol::slot_of(std::string(kNamespace) + name));
  const auto &client = context_->slots[static_cast<size_t>(holder.client)].client;
  const Place &place = *places_[number];
  return client && (!client->knows_clock(*holder.lease, place.server, place.moved_at) ||
                    client->may_miss_a_stay(*holder.lease, place.moved_before_at));
}

bool ClusterRules::was_granted(const std::string &token) const {
  return std::any_of(places_.begin(), places_.end(),
                     [&](const auto &place) { return place->rules.was_granted(token); });
}

std::vector<std::pair<std::string, std::string>> ClusterRules::waiters() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto &place : places_) {
    const auto some = place->rules.waiters();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

// ---- in the long run ---------------------------------------------------------------------------

void ClusterRules::watch(const Context &context) {
  for (const auto &place : places_) {
    place->rules.watch(context);
    check_strays(*place, context);
  }
}

bool ClusterRules::is_alive(const Waiter &waiter) const {
  const Slot &slot = context_->slots[static_cast<size_t>(waiter.client)];
  return slot.client && slot.life == waiter.life && !slot.client->is_paused();
}

// Rule: once nothing fails any more, a waiter that got another token leaves no place behind. Before
// that a node may be out of reach for a ttl, after which the client gives up, and the place stays
// until its turn comes.
void ClusterRules::check_strays(Place &place, const Context &context) {
  const Nanos now = schedule_.now();
  std::map<std::string, Nanos, std::less<>> strays;
  for (const auto &[lock, member] : place.rules.waiters()) {
    const auto known = place.strays.find(member);
    const auto waiter = waiters_.find(member);
    if (waiter == waiters_.end()) continue;
    if (!is_alive(waiter->second)) {
      if (known != place.strays.end()) strays.insert(*known);  // it may be paused
      continue;
    }
    const Client &client = *context.slots[static_cast<size_t>(waiter->second.client)].client;
    if (client.hears(std::string_view(member).substr(0, kCidSize))) continue;
    const Nanos since = known == place.strays.end() ? now : known->second;
    strays.emplace(member, since);
    // It may have got another token earlier, in the same channel.
    const Nanos begin = std::min(since, waiter->second.cancelled_at);
    if (!context.is_calm || begin + plan_.lease_min <= context.calm_from) continue;
    const Nanos limit = kStrayLimit + 2 * plan_.timeout;
    if (now - std::max(since, context.calm_since) <= limit) continue;
    verdict_.broken("a waiter that has moved leaves no place behind", lock + ": " + member);
  }
  place.strays = std::move(strays);
}

void ClusterRules::check_leftovers(Nanos gone_for) {
  for (const auto &place : places_) place->rules.check_leftovers(gone_for);
}

}  // namespace redlatch::sim
