// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// World: injects faults into clients, connections and nodes.
//
// The clocks of less than half of several nodes are stepped, because nothing would be promised
// otherwise. Exclusion is not checked for a lease without a majority of votes that were not
// forgotten (by a node without a guard, or without a restart). With one server it is not checked
// for the present holders when the server loses its data at once, or when its clock is stepped.
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>

#include "world.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kAfterFaults = 10 * kSecond;  // no fault lasts longer

// The target of a fault. Faults without a target are settings that apply throughout the run.
enum class Target : uint8_t { kNobody, kClient, kNode, kGroup, kCluster };

Target target_of(Fault fault) {
  static constexpr Fault kOfClients[] = {Fault::kStall, Fault::kCut,       Fault::kHalfOpen,
                                         Fault::kPause, Fault::kCrash,     Fault::kHostGone,
                                         Fault::kForge, Fault::kPartition, Fault::kOneWay};
  static constexpr Fault kOfNodes[] = {
      Fault::kServerPause, Fault::kServerCrash,  Fault::kServerLoss, Fault::kServerAmnesia,
      Fault::kScriptFlush, Fault::kMemory,       Fault::kNoPublish,  Fault::kReplica,
      Fault::kClockBack,   Fault::kClockForward, Fault::kMinority,   Fault::kMajority,
      Fault::kForget};
  if (fault == Fault::kPassword) return Target::kNode;
  if (fault >= Fault::kSlotMove) return Target::kCluster;
  if (fault >= Fault::kFailover) return Target::kGroup;
  if (std::ranges::find(kOfClients, fault) != std::end(kOfClients)) return Target::kClient;
  const bool is_of_node = std::ranges::find(kOfNodes, fault) != std::end(kOfNodes);
  return is_of_node ? Target::kNode : Target::kNobody;
}

// The first 8 digits of the SHA-1 of a lock key, as in a pushed grant.
std::string check_of(std::string_view key) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(key.data(), key.size(), digest, &size, EVP_sha1(), nullptr);
  char text[9];
  snprintf(text, sizeof text, "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
  return text;
}

// The number of the request and its mode, which a message repeats.
std::string request_of(const std::string &member) {
  return member.substr(protocol::kCidSize, protocol::kTokenSize + 1 - protocol::kCidSize);
}

}  // namespace

void World::schedule_fault() {
  const Nanos pause = random_.between(plan_.fault_interval / 2, plan_.fault_interval * 3 / 2);
  schedule_.in(pause, [this] {
    const bool may_forget = context_.is_working && plan_.has(Fault::kForget);
    if (context_.is_calm && !may_forget) return;
    context_.is_calm ? forget(any_node()) : inject();
    schedule_fault();
  });
}

void World::inject() {
  if (plan_.kills_newcomers()) return kill_newcomer();
  if (plan_.kills_crowds()) return kill_crowd();
  // With one server, three faults of clients for each of the server, which stops all clients.
  const bool has_passwords = plan_.scenario == Scenario::kPasswords;
  const bool is_for_client = random_.chance(plan_.is_quorum() || has_passwords ? 500 : 750);
  Target target = is_for_client ? Target::kClient : Target::kNode;
  if (plan_.is_group() && random_.chance(has_passwords ? 200 : 600)) target = Target::kGroup;
  if (plan_.is_cluster() && random_.chance(700)) target = Target::kCluster;
  std::vector<Fault> kinds;
  for (size_t i = 0; i < kFaultCount; i++) {
    const auto fault = static_cast<Fault>(i);
    if (plan_.has(fault) && target_of(fault) == target) kinds.push_back(fault);
  }
  if (kinds.empty()) return;
  const Fault fault = kinds[random_.below(kinds.size())];
  // Rarely, so that a majority of the nodes answers most of the time.
  if (fault == Fault::kMajority && !random_.chance(250)) return;
  trace_.mix(static_cast<uint64_t>(fault) + 1000);
  trace_.say(schedule_.now(), "fault: %s", std::string(name_of(fault)).c_str());
  if (target == Target::kGroup) return group_->inject(fault);
  if (target == Target::kCluster) return cluster_->inject(fault);
  return is_for_client ? inject_into_client(fault) : inject_into_node(fault);
}

// Prefers a client that has requests pending.
Client *World::any_client() {
  Client *client = nullptr;
  for (int tries = 0; tries < 3 && (client == nullptr || !client->is_busy()); tries++) {
    client = slots_[random_.below(slots_.size())].client.get();
  }
  return client;
}

std::vector<size_t> World::some_nodes(size_t count) {
  std::vector<size_t> nodes(static_cast<size_t>(plan_.node_count));
  for (size_t i = 0; i < nodes.size(); i++) nodes[i] = i;
  for (size_t i = 0; i < count; i++)
    std::swap(nodes[i], nodes[i + random_.below(nodes.size() - i)]);
  nodes.resize(count);
  return nodes;
}

// ---- clients and their connections -------------------------------------------------------------

void World::inject_into_client(Fault fault) {
  if (fault == Fault::kForge) return forge();
  Client *client = any_client();
  if (client == nullptr) return;
  switch (fault) {
    case Fault::kPause:
      stats_.inject(fault, client->is_busy());
      return pause(*client);
    case Fault::kCrash:
      if (plan_.shuts_down && shutdowns_.chance(500)) return shut_down(*client);
      [[fallthrough]];
    case Fault::kHostGone:
      return kill(client->slot(), fault);
    case Fault::kPartition:
    case Fault::kOneWay:
      return part(fault, *client);
    default:
      return break_connection(fault, *client,
                              cluster_ ? random_.below(client->wire_count()) : any_node());
  }
}

void World::pause(Client &client) {
  trace_.say(schedule_.now(), "client %d stands still", client.slot());
  client.pause(schedule_.now() + random_.between(1, random_.chance(500) ? 200 : 8000) * kMs);
}

// A fault in the middle of a handshake, of a kind that this run has.
void World::strike_opening(int slot, size_t node) {
  static constexpr Fault kKinds[] = {Fault::kStall,       Fault::kCut,         Fault::kHalfOpen,
                                     Fault::kPause,       Fault::kServerPause, Fault::kServerCrash,
                                     Fault::kScriptFlush, Fault::kMemory,      Fault::kNoPublish,
                                     Fault::kReplica};
  constexpr int kChance = 200;       // of 1000
  constexpr int64_t kMostWays = 16;  // one way of a message; a handshake takes about 12
  if (context_.is_calm || !random_.chance(kChance)) return;
  const Fault fault = kKinds[random_.below(std::size(kKinds))];
  if (!plan_.has(fault)) return;
  schedule_.in(random_.between(0, kMostWays * plan_.delay_max), [this, fault, slot, node] {
    Client *client = slots_[static_cast<size_t>(slot)].client.get();
    if (context_.is_calm || client == nullptr || !client->is_opening(node)) return;
    stats_.struck++;
    trace_.mix(static_cast<uint64_t>(fault) + 2000);
    trace_.say(schedule_.now(), "fault in a handshake: %s", std::string(name_of(fault)).c_str());
    if (fault == Fault::kPause) {
      stats_.inject(fault, true);
      return pause(*client);
    }
    const bool is_of_node = target_of(fault) == Target::kNode;
    is_of_node ? inject_into_node(fault, node) : break_connection(fault, *client, node);
  });
}

void World::break_connection(Fault fault, Client &client, size_t node) {
  stats_.inject(fault, client.is_connected(node) && client.is_busy());
  trace_.say(schedule_.now(), "between client %d and node %zu", client.slot(), node);
  const bool is_at_side = client.side_link() != 0 && random_.chance(400);
  const uint64_t commands = is_at_side ? client.side_link() : client.link(node);
  const uint64_t messages = is_at_side ? 0 : client.messages_link(node);
  if (fault == Fault::kStall) {
    const Nanos until =
        schedule_.now() + random_.between(1, random_.chance(700) ? 300 : 6000) * kMs;
    if (messages != 0 && random_.chance(300)) return client.silence_messages(node);
    const int64_t which = random_.between(0, 2);
    for (const uint64_t link : {commands, messages}) {
      if (which != 0) network_.stall(link, true, until);
      if (which != 1) network_.stall(link, false, until);
    }
    return;
  }
  const auto ending = fault == Fault::kHalfOpen ? Network::Ending::kLate : Network::Ending::kSoon;
  if (messages != 0 && random_.chance(250)) return network_.cut(messages, ending);
  if (random_.chance(500)) return network_.cut(commands, ending);
  network_.cut_when_sending(commands, ending);
}

// Cut a client off from some nodes, possibly from all.
void World::part(Fault fault, Client &client) {
  const int short_chance = plan_.scenario == Scenario::kRedlockRestart ? 200 : 700;
  const Nanos until =
      schedule_.now() + random_.between(50, random_.chance(short_chance) ? 500 : 9000) * kMs;
  const bool is_one_way = fault == Fault::kOneWay;
  const bool is_up = !is_one_way || random_.chance(500);
  const bool is_down = !is_one_way || !is_up;
  stats_.inject(fault, client.is_busy());
  if (plan_.scenario == Scenario::kRedlockRestart && random_.chance(300)) {
    // All present clients lose the same minority; clients that start later reach it.
    const std::vector<size_t> nodes = some_nodes(few());
    for (Slot &slot : slots_) {
      if (slot.client) part_from(*slot.client, nodes, is_up, is_down, until);
    }
    return;
  }
  part_from(client, some_nodes(1 + random_.below(servers_.size())), is_up, is_down, until);
}

void World::part_from(Client &client, const std::vector<size_t> &nodes, bool is_up, bool is_down,
                      Nanos until) {
  for (const size_t node : nodes) {
    trace_.say(schedule_.now(), "client %d and node %zu are parted", client.slot(), node);
    client.cut_off(node, is_up, is_down, until);
  }
}

void World::kill(int number, Fault fault) {
  Slot &slot = slots_[static_cast<size_t>(number)];
  if (!slot.client) return;
  stats_.inject(fault, slot.client->is_busy());
  trace_.say(schedule_.now(), "client %d is gone", number);
  slot.client->forget_connections(fault == Fault::kHostGone ? Network::Ending::kLate
                                                            : Network::Ending::kSoon);
  beliefs_.client_died(number);
  slot.callers.clear();
  slot.client.reset();
  const Nanos pause = plan_.kills_crowds() ? 5'000 * kMs : random_.between(10, 2000) * kMs;
  schedule_.in(pause, [this, number] {
    const auto &client = slots_[static_cast<size_t>(number)].client;
    if (client || !context_.is_working) return;
    populate(number);
    // A new client sometimes cannot reach a few nodes.
    if (context_.is_calm || !plan_.has(Fault::kPartition) || !random_.chance(500)) return;
    stats_.inject(Fault::kPartition, true);
    part_from(*client, some_nodes(1 + random_.below(few())), true, true,
              schedule_.now() + random_.between(500, 9000) * kMs);
  });
}

// A process that shuts its client down before it ends, maybe because it reaches no server, or few.
void World::shut_down(Client &client) {
  if (client.is_ending()) return;
  if (shutdowns_.chance(400)) {
    const Nanos until = schedule_.now() + shutdowns_.between(500, 9'000) * kMs;
    for (size_t node = 0; node < client.wire_count(); node++) {
      if (shutdowns_.chance(800)) client.cut_off(node, true, true, until);
    }
  }
  const int number = client.slot();
  stats_.inject(Fault::kCrash, client.is_busy());
  trace_.say(schedule_.now(), "client %d is shut down", number);
  const uint64_t life = slots_[static_cast<size_t>(number)].life;
  client.shut_down([this, number, life] {
    if (slots_[static_cast<size_t>(number)].life == life) kill(number, Fault::kCrash);
  });
}

// Kill the host of a waiter, so that the waiter is likely granted the lock afterwards.
void World::kill_newcomer() {
  for (size_t i = 0; i < slots_.size(); i++) {
    Client *client = any_client();
    if (client == nullptr || !client->is_waiting()) continue;
    return kill(client->slot(), Fault::kHostGone);
  }
}

void World::kill_crowd() {
  context_.crowd_killed_at = schedule_.now();
  const size_t spared = random_.below(slots_.size());
  for (size_t i = 0; i < slots_.size(); i++) {
    const bool is_spared = i == spared || i == (spared + 1) % slots_.size();
    if (!is_spared) kill(static_cast<int>(i), Fault::kCrash);
  }
}

// Publish a forged grant to a waiter, as another user who may publish on its channel and knows the
// format.
void World::forge() {
  Server &server = *servers_.front();
  const auto waiters = checker_->waiters();
  stats_.inject(Fault::kForge, !waiters.empty());
  if (waiters.empty()) return;
  const auto &[lock, member] = waiters[random_.below(waiters.size())];
  const int64_t now_ms = server.now_us() / 1000;
  static constexpr int64_t kFences[] = {1, 0, 1'000'000'000, 9'000'000'000'000'000,
                                        9'007'199'254'740'992};
  const size_t which = random_.below(std::size(kFences));
  const int64_t fence = which < 3 ? server.now_us() + kFences[which] : kFences[which];
  const int64_t provisional_ms = random_.chance(500) ? 99'999 : random_.between(1, 9'999);
  char numbers[64];
  snprintf(numbers, sizeof numbers, "%05lld%016lld%013lld", static_cast<long long>(provisional_ms),
           static_cast<long long>(fence), static_cast<long long>(now_ms - random_.between(0, 50)));
  const std::string message = "g" + request_of(member) + numbers + check_of(lock);
  trace_.say(schedule_.now(), "forged for %s of %s: %s", member.c_str(), lock.c_str(),
             message.c_str());
  constexpr int64_t kLead = 3'600LL * 1'000'000;
  const Nanos slack = kSecond;  // for the delivery, and clock rates
  beliefs_.forged(member.substr(0, protocol::kTokenSize), schedule_.now() + 3 * kSecond + slack,
                  server.now_us() + kLead);
  server.forge(std::string(kChannelPrefix) + member.substr(0, protocol::kCidSize), message);
}

// ---- nodes -------------------------------------------------------------------------------------

void World::inject_into_node(Fault fault) {
  if (fault == Fault::kMinority || fault == Fault::kMajority) return silence(fault);
  const auto &stepped = context_.stepped;
  if (fault == Fault::kClockBack || fault == Fault::kClockForward) {
    return step_clock(fault, stepped[random_.below(stepped.size())]);
  }
  inject_into_node(fault, any_node());
}

void World::inject_into_node(Fault fault, size_t node) {
  if (group_) node = group_->primary();
  if (cluster_) node = cluster_->any_primary();
  Server &server = *servers_[node];
  if (!server.is_up()) return;
  trace_.say(schedule_.now(), "at node %zu", node);
  const int64_t longest = plan_.is_quorum() ? 3000 : 1500;  // in ms; shorter for the only server
  switch (fault) {
    case Fault::kPassword:
      return stats_.inject(fault, passwords_->rotate());
    case Fault::kServerPause:
      stats_.inject(fault, false);
      return server.pause(schedule_.now() +
                          random_.between(1, random_.chance(700) ? 300 : 4000) * kMs);
    case Fault::kScriptFlush:
      stats_.inject(fault, false);
      return server.flush_scripts();
    case Fault::kMemory:
      stats_.inject(fault, false);
      server.set_out_of_memory(true);
      return schedule_.in(random_.between(10, longest) * kMs,
                          [&server] { server.set_out_of_memory(false); });
    case Fault::kForget:
      return forget(node);
    case Fault::kNoPublish:
      stats_.inject(fault, true);
      server.set_may_publish(false);
      return schedule_.in(random_.between(10, longest) * kMs,
                          [&server] { server.set_may_publish(true); });
    case Fault::kReplica:
      stats_.inject(fault, false);
      server.set_replica(true);
      return schedule_.in(random_.between(10, longest) * kMs,
                          [&server] { server.set_replica(false); });
    default:
      return bring_down(fault, node);
  }
}

// Several nodes at once are paused, down or unreachable.
void World::silence(Fault fault) {
  const size_t count =
      fault == Fault::kMinority ? 1 + random_.below(few()) : few() + 1 + random_.below(few() + 1);
  const Nanos until = schedule_.now() + random_.between(20, random_.chance(500) ? 500 : 8000) * kMs;
  const int64_t way = random_.between(0, 2);
  stats_.inject(fault, true);
  for (const size_t node : some_nodes(count)) {
    Server &server = *servers_[node];
    if (!server.is_up()) continue;
    trace_.say(schedule_.now(), "node %zu is silent, way %d", node, static_cast<int>(way));
    if (way == 0) server.pause(until);
    if (way == 1) crash(node, until - schedule_.now(), Fault::kServerCrash);
    if (way != 2) continue;
    for (Slot &slot : slots_) {
      if (slot.client) slot.client->cut_off(node, true, true, until);
    }
  }
}

// Hide a restart of `node` from the present clients by cutting them off. One client is killed, and
// the process that replaces it meets the node for the first time, whose clock may be stepped first.
void World::hide_restart(size_t node) {
  const Nanos until = schedule_.now() + random_.between(1, 5) * kSecond;
  for (Slot &slot : slots_) {
    if (slot.client) part_from(*slot.client, {node}, true, true, until);
  }
  const auto &stepped = context_.stepped;
  const bool is_stepped = std::find(stepped.begin(), stepped.end(), node) != stepped.end();
  if (is_stepped && plan_.has(Fault::kClockForward)) {
    schedule_.in(random_.between(50, 300) * kMs,
                 [this, node] { step_clock(Fault::kClockForward, node); });
  }
  kill(static_cast<int>(random_.below(slots_.size())), Fault::kCrash);
}

void World::bring_down(Fault fault, size_t node) {
  stats_.inject(fault, fault == Fault::kServerCrash || !servers_[node]->store().keys().empty());
  Nanos pause = random_.between(1, 500) * kMs;
  const bool is_hidden = plan_.scenario == Scenario::kRedlockRestart && random_.chance(500);
  if (is_hidden) pause = random_.between(1, 30) * kMs;
  if (is_hidden) hide_restart(node);
  // So long that every lease that was acknowledged ends first, by any clock within the margin.
  if (fault == Fault::kServerLoss) pause = plan_.lease_max + plan_.lease_max / 50 + 10 * kMs;
  crash(node, pause, fault);
}

// The node restarts after `down_for`; with its data if `fault` is kServerCrash.
void World::crash(size_t node, Nanos down_for, Fault fault) {
  Server &server = *servers_[node];
  server.crash();
  schedule_.in(down_for, [this, node, &server, fault] {
    if (std::find(gone_.begin(), gone_.end(), node) != gone_.end()) return;
    const bool keeps_data = fault == Fault::kServerCrash;
    if (!keeps_data) checker_->forgets(node, fault);
    trace_.say(schedule_.now(), "node %zu starts %s", node, keeps_data ? "again" : "empty");
    server.restart(keeps_data);
  });
}

// FLUSHALL on one node, or the eviction of one lock's key there, or on all nodes as by a forced
// release.
void World::forget(size_t node) {
  if (!servers_[node]->is_up()) return;
  const auto locks = checker_->held_at(node);
  stats_.inject(Fault::kForget, !locks.empty());
  if (locks.empty() || random_.chance(600)) {
    trace_.say(schedule_.now(), "node %zu forgets all", node);
    checker_->forgets(node, Fault::kForget);
    return servers_[node]->forget();
  }
  const std::string &lock = locks[random_.below(locks.size())];
  const bool is_everywhere = random_.chance(200);
  trace_.say(schedule_.now(), "node %zu forgets %s%s", node, lock.c_str(),
             is_everywhere ? ", as all do" : "");
  if (is_everywhere) checker_->is_taken(lock);
  for (size_t i = 0; i < servers_.size(); i++) {
    if (i != node && !is_everywhere) continue;
    checker_->evicts(i, lock);
    servers_[i]->evict(lock);
  }
}

void World::step_clock(Fault fault, size_t node) {
  Server &server = *servers_[node];
  stats_.inject(fault, true);
  Nanos by = random_.between(10, random_.chance(500) ? 500 : 20'000) * kMs;
  trace_.say(schedule_.now(), "at node %zu, by %d ms", node, static_cast<int>(by / kMs));
  if (fault == Fault::kClockBack) {
    context_.stepped_back += by;
    by = -by;
  } else {
    // Large enough that every client notices the step by the next reply.
    const bool is_far = plan_.scenario == Scenario::kRedlockRestart && random_.chance(500);
    by += 5 * kSecond + (is_far ? 2 * plan_.restart_guard : 0);
  }
  server.step_clock(by);
  checker_->stepped(node, by);
}

void World::calm() {
  if (verdict_.is_broken()) return;
  trace_.say(schedule_.now(), "calm");
  context_.is_calm = true;
  context_.calm_from = schedule_.now();
  context_.calm_since = context_.calm_from + kAfterFaults;
  network_.heal();
  if (group_) group_->calm();
  if (cluster_) cluster_->calm();
  for (const auto &server : servers_) {
    server->set_out_of_memory(false);
    server->set_may_publish(true);
    if (!group_ && !cluster_) server->set_replica(false);
  }
  for (const Slot &slot : slots_) {
    if (slot.client) slot.client->heal();
  }
  // The rules of the calm must also hold while a minority of the nodes is down.
  if (!plan_.has(Fault::kMinority) || !random_.chance(500)) return;
  gone_ = some_nodes(few());
  for (const size_t node : gone_) {
    trace_.say(schedule_.now(), "node %zu stays away", node);
    if (servers_[node]->is_up()) servers_[node]->crash();
  }
}

}  // namespace redlatch::sim
