// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster.h"

#include <algorithm>
#include <utility>

#include "caller.h"
#include "protocol/slots.h"

namespace redlatch::sim {

using protocol::kSlotCount;
using protocol::slot_of;

namespace {

constexpr Nanos kSync = 100 * kMs;
constexpr Nanos kRetry = 200 * kMs;
constexpr std::string_view kHost = "node";

Value redirect(const char *word, uint16_t slot, size_t server) {
  return Value::error(std::string(word) + " " + std::to_string(slot) + " " +
                      node_address(server).text());
}

}  // namespace

HostPort node_address(size_t server) {
  return {std::string(kHost) + std::to_string(server), "6379"};
}

size_t server_at(const HostPort &address) { return std::stoul(address.host.substr(kHost.size())); }

Cluster::Cluster(Context &context, ClusterRules &rules)
    : context_(context),
      rules_(rules),
      random_(context.plan.seed, 31'000),
      owner_(kSlotCount),
      version_(kSlotCount, 1),
      views_(context.servers.size()) {
  const auto count = static_cast<size_t>(context.plan.shard_count);
  for (size_t i = 0; i < count; i++) shards_.push_back({i, i + count});
  for (size_t slot = 0; slot < kSlotCount; slot++) {
    owner_[slot] = static_cast<uint8_t>(slot * count / kSlotCount);
  }
  for (size_t i = 0; i < views_.size(); i++) {
    views_[i].owner = owner_;
    views_[i].version = version_;
    server(i).join(*this, *this);
    if (i >= count) server(i).set_replica(true);
  }
  lag_max_ = context.plan.replication_max;
  if (context.plan.has(Fault::kShardCrash) && random_.chance(500)) lag_max_ *= 10;
  rules.join(context);
  for (const uint16_t slot : rules.slots()) rules.moved(slot, owner_of(slot), nullptr);
}

// ---- what a server answers ---------------------------------------------------------------------

std::optional<Value> Cluster::refusal(size_t number, Argv keys, bool is_asking) {
  const View &view = views_[number];
  if (view.is_down) return Value::error("CLUSTERDOWN The cluster is down");
  const uint16_t slot = slot_of(keys.front());
  for (const std::string_view key : keys) {
    if (slot_of(key) == slot) continue;
    return Value::error("CROSSSLOT Keys in request don't hash to the same slot");
  }
  const size_t present = static_cast<size_t>(std::count_if(
      keys.begin(), keys.end(), [&](std::string_view key) { return server(number).has_key(key); }));
  const auto try_again = [] {
    return Value::error("TRYAGAIN Multiple keys request during rehashing of slot");
  };
  if (view.owner[slot] != number) {
    const bool is_coming = view.coming.contains(slot) && is_asking;
    if (!is_coming) return redirect("MOVED", slot, view.owner[slot]);
    if (keys.size() > 1 && present < keys.size()) return try_again();
    return std::nullopt;
  }
  const auto leaving = view.leaving.find(slot);
  if (leaving == view.leaving.end() || present == keys.size()) return std::nullopt;
  return present > 0 ? try_again() : redirect("ASK", slot, leaving->second);
}

// A replica delivers messages of its primary, and is not counted there.
std::optional<Value> Cluster::refusal_of_channel(size_t number, std::string_view channel) {
  const View &view = views_[number];
  if (view.is_down) return Value::error("CLUSTERDOWN The cluster is down");
  const uint16_t slot = slot_of(channel);
  if (shard_of(view.owner[slot]) == shard_of(number)) return std::nullopt;
  return redirect("MOVED", slot, view.owner[slot]);
}

Value Cluster::describe(size_t number, std::string_view what) {
  const View &view = views_[number];
  if (what == "INFO") {
    return Value::of(std::string("cluster_enabled:1\r\ncluster_state:") +
                     (view.is_down ? "fail" : "ok") + "\r\n");
  }
  Value ranges = Value::list({});
  for (size_t first = 0, last = 0; first < kSlotCount; first = last + 1) {
    last = first;
    while (last + 1 < kSlotCount && view.owner[last + 1] == view.owner[first]) last++;
    const HostPort node = node_address(view.owner[first]);
    ranges.items.push_back(
        Value::list({Value::of(static_cast<int64_t>(first)), Value::of(static_cast<int64_t>(last)),
                     Value::list({Value::of(node.host), Value::of(int64_t{6379})})}));
  }
  return ranges;
}

void Cluster::published(size_t number, std::string_view channel, std::string_view message,
                        bool is_sharded) {
  for (size_t i = 0; i < views_.size(); i++) {
    if (i == number || (is_sharded && shard_of(i) != shard_of(number))) continue;
    context_.schedule.in(between(0, 20), [this, i, is_sharded, channel = std::string(channel),
                                          message = std::string(message)] {
      if (server(i).is_up()) server(i).deliver(channel, message, is_sharded);
    });
  }
}

// ---- who knows what ----------------------------------------------------------------------------

void Cluster::learn(size_t number, uint16_t slot, size_t owner, uint32_t version) {
  View &view = views_[number];
  if (context_.schedule.now() < view.stale_until) {
    return context_.schedule.at(view.stale_until, [this, number, slot, owner, version] {
      learn(number, slot, owner, version);
    });
  }
  if (view.version[slot] < version) take_slot(number, slot, owner, version);
}

void Cluster::take_slot(size_t number, uint16_t slot, size_t owner, uint32_t version) {
  View &view = views_[number];
  const bool was_here = shard_of(view.owner[slot]) == shard_of(number);
  view.owner[slot] = static_cast<uint8_t>(owner);
  view.version[slot] = version;
  view.leaving.erase(slot);
  view.coming.erase(slot);
  if (!was_here || shard_of(owner) == shard_of(number)) return;
  server(number).unsubscribe([slot](std::string_view channel) { return slot_of(channel) == slot; });
}

void Cluster::learn_all(size_t number) {
  const Nanos until = views_[number].stale_until;
  if (context_.schedule.now() >= until) return catch_up(number);
  context_.schedule.at(until, [this, number] { learn_all(number); });
}

void Cluster::catch_up(size_t number) {
  for (size_t i = 0; i < kSlotCount; i++) {
    const auto slot = static_cast<uint16_t>(i);
    if (views_[number].version[slot] >= version_[slot]) continue;
    take_slot(number, slot, owner_of(slot), version_[slot]);
  }
}

// The others learn of it a moment later.
void Cluster::spread(uint16_t slot, size_t owner, uint32_t version) {
  const bool is_soon = context_.plan.scenario == Scenario::kClusterClocks;
  for (size_t i = 0; i < views_.size(); i++) {
    const Nanos late = between(0, random_.chance(800) || is_soon ? 100 : 600);
    context_.schedule.in(late, [this, i, slot, owner, version] { learn(i, slot, owner, version); });
  }
}

// ---- moves -------------------------------------------------------------------------------------

void Cluster::inject(Fault fault) {
  switch (fault) {
    case Fault::kSlotMove:
    case Fault::kSlotJump:
      return move_slot(fault);
    case Fault::kShardFailover:
      return fail_over();
    case Fault::kShardCrash:
      return crash();
    case Fault::kStaleMap:
      return hold_back_map();
    case Fault::kClusterDown:
      return say_down();
    default:
      return;
  }
}

bool Cluster::is_any_busy() const {
  return std::any_of(context_.slots.begin(), context_.slots.end(),
                     [](const Slot &slot) { return slot.client && slot.client->is_busy(); });
}

bool Cluster::is_ready(size_t primary) {
  return server(primary).is_up() && !server(primary).is_paused();
}

// That of a lock, or sometimes that of a channel, which does not move yet.
std::optional<uint16_t> Cluster::any_slot() {
  const auto locks = rules_.slots();
  uint16_t slot = locks[random_.below(locks.size())];
  if (random_.chance(250)) {
    const auto &client = context_.slots[random_.below(context_.slots.size())].client;
    if (!client) return std::nullopt;
    const size_t node = random_.below(client->wire_count());
    slot = slot_of(client->channel(node));
  }
  return moving_.contains(slot) ? std::nullopt : std::optional(slot);
}

void Cluster::move_slot(Fault fault) {
  const auto slot = any_slot();
  if (!slot) return;
  const size_t source = owner_[*slot];
  const size_t target = (source + 1 + random_.below(shards_.size() - 1)) % shards_.size();
  const size_t from = shards_[source].primary, to = shards_[target].primary;
  if (shards_[source].is_busy || shards_[target].is_busy || !is_ready(from) || !is_ready(to)) {
    return;
  }
  // A node that does not know of the last move of the slot cannot give it away.
  const bool is_known = views_[from].owner[*slot] == from && views_[to].owner[*slot] == from;
  if (!is_known) return;
  context_.stats.inject(fault, is_any_busy());
  context_.trace.say(context_.schedule.now(), "slot %d moves from node %zu to node %zu", *slot,
                     from, to);
  fault == Fault::kSlotJump ? jump(*slot, from, to) : begin_move(*slot, from, to);
}

std::vector<std::string> Cluster::keys_in(uint16_t slot, size_t number) {
  std::vector<std::string> keys;
  for (const auto &[key, entry] : server(number).store().keys()) {
    if (slot_of(key) == slot) keys.push_back(key);
  }
  return keys;
}

void Cluster::carry(const std::string &key, size_t from, size_t to, bool is_relative) {
  auto entry = server(from).extract(key);
  if (!entry) return;
  if (is_relative && entry->expires_ms >= 0) {
    entry->expires_ms += server(to).now_us() / 1000 - server(from).now_us() / 1000;
  }
  server(to).restore(key, *entry);
}

// In one step, with absolute times.
void Cluster::jump(uint16_t slot, size_t from, size_t to) {
  for (const std::string &key : keys_in(slot, from)) carry(key, from, to, false);
  owner_[slot] = static_cast<uint8_t>(shard_of(to));
  const uint32_t version = ++version_[slot];
  take_slot(to, slot, to, version);
  take_slot(from, slot, to, version);
  rules_.moved(slot, to, nullptr);
  spread(slot, to, version);
}

void Cluster::begin_move(uint16_t slot, size_t from, size_t to) {
  moving_[slot] = true;
  shard_at(from).moves++;
  shard_at(to).moves++;
  views_[to].coming[slot] = from;
  views_[from].leaving[slot] = to;
  move_key(slot, from, to, random_.between(kMs, context_.plan.slot_move_max));
}

void Cluster::move_key(uint16_t slot, size_t from, size_t to, Nanos pause) {
  context_.schedule.in(random_.between(0, pause), [this, slot, from, to, pause] {
    if (!is_ready(from) || !is_ready(to)) return move_key(slot, from, to, pause);
    const auto keys = keys_in(slot, from);
    if (keys.empty()) return end_move(slot, from, to);
    const std::string &key = keys[random_.below(keys.size())];
    context_.trace.say(context_.schedule.now(), "key %s moves from node %zu to node %zu",
                       key.c_str(), from, to);
    carry(key, from, to, true);
    rules_.key_moved(slot, from, to);
    move_key(slot, from, to, pause);
  });
}

// One of both nodes is told first.
void Cluster::end_move(uint16_t slot, size_t from, size_t to) {
  owner_[slot] = static_cast<uint8_t>(shard_of(to));
  const uint32_t version = ++version_[slot];
  const bool is_source_first = random_.chance(300);
  take_slot(is_source_first ? from : to, slot, to, version);
  rules_.moved(slot, to, nullptr);
  context_.trace.say(context_.schedule.now(), "slot %d is at node %zu", slot, to);
  // A lease cannot outlive a long loop of redirects.
  const bool is_short = random_.chance(800) || context_.plan.scenario == Scenario::kClusterClocks;
  const Nanos later = between(0, is_short ? 20 : 1500);
  context_.schedule.in(later, [this, slot, from, to, is_source_first, version] {
    const size_t other = is_source_first ? to : from;
    if (views_[other].version[slot] < version) take_slot(other, slot, to, version);
    moving_.erase(slot);
    shard_at(from).moves--;
    shard_at(to).moves--;
    spread(slot, to, version);
  });
}

// ---- failovers ---------------------------------------------------------------------------------

void Cluster::wrote(size_t primary, Effects effects) {
  Shard &shard = shard_at(primary);
  if (shard.primary != primary || !shard.is_synced) return;
  const auto shared = std::make_shared<Effects>(std::move(effects));
  const uint64_t offset = server(primary).offset();
  const Nanos way = random_.between(context_.plan.delay_min, lag_max_);
  shard.last = std::max(shard.last, context_.schedule.now() + way);
  context_.schedule.at(shard.last, [this, primary, offset, shared, number = shard.number] {
    Shard &there = shard_at(primary);
    if (there.number != number || !there.is_synced) return;
    server(there.replica).apply(*shared);
    there.applied = offset;
  });
}

// A server that was the primary becomes the replica.
void Cluster::follow(Shard &shard) {
  const size_t number = shard_of(shard.primary);
  shard.is_synced = false;
  context_.schedule.in(kSync, [this, number, count = shard.number] { synchronise(number, count); });
}

void Cluster::synchronise(size_t number, uint64_t count) {
  Shard &shard = shards_[number];
  if (shard.number != count || shard.is_synced) return;
  if (!server(shard.replica).is_up() || !server(shard.primary).is_up()) {
    return context_.schedule.in(kRetry, [this, number, count] { synchronise(number, count); });
  }
  server(shard.replica).copy(server(shard.primary));
  shard.is_synced = true;
  shard.applied = server(shard.primary).offset();
}

void Cluster::promote(Shard &shard) {
  const size_t old = shard.primary, heir = shard.replica;
  context_.trace.say(context_.schedule.now(), "node %zu becomes a primary, %d writes behind", heir,
                     static_cast<int>(server(old).offset() - shard.applied));
  context_.trace.mix(heir + 3000);
  std::swap(shard.primary, shard.replica);
  shard.number++;
  shard.last = 0;
  server(heir).set_replica(false);
  rules_.promoted(old, heir);
  context_.stats.failovers++;
  const size_t number = shard_of(heir);
  for (size_t slot = 0; slot < kSlotCount; slot++) {
    if (owner_[slot] != number) continue;
    take_slot(heir, static_cast<uint16_t>(slot), heir, ++version_[slot]);
  }
  for (size_t i = 0; i < views_.size(); i++) {
    views_[i].is_down = false;
    const Nanos late = between(0, random_.chance(800) ? 100 : 600);
    if (i == old) {
      catch_up(i);
    } else {
      context_.schedule.in(late, [this, i] { learn_all(i); });
    }
  }
  follow(shard);
}

// The primary takes nothing until the replica has everything.
void Cluster::fail_over() {
  const size_t number = random_.below(shards_.size());
  Shard &shard = shards_[number];
  const bool is_able = !shard.is_busy && shard.moves == 0 && shard.is_synced &&
                       is_ready(shard.primary) && server(shard.replica).is_up();
  if (!is_able) return;
  shard.is_busy = true;
  const Nanos until = context_.schedule.now() + kSecond;
  server(shard.primary).pause(until);
  check_handover(number, until);
}

void Cluster::check_handover(size_t number, Nanos until) {
  Shard &shard = shards_[number];
  const bool has_all = shard.is_synced && shard.applied == server(shard.primary).offset();
  if (has_all) {
    context_.stats.inject(Fault::kShardFailover, is_any_busy());
    const size_t old = shard.primary;
    promote(shard);
    server(old).step_down();
    shard.is_busy = false;
    return;
  }
  if (context_.schedule.now() + 20 * kMs >= until) {
    shard.is_busy = false;
    return;
  }
  context_.schedule.in(10 * kMs, [this, number, until] { check_handover(number, until); });
}

// It comes back as a replica. The cluster may be down until its replica takes over.
void Cluster::crash() {
  const size_t number = random_.below(shards_.size());
  Shard &shard = shards_[number];
  const bool is_able = !shard.is_busy && shard.moves == 0 && shard.is_synced &&
                       is_ready(shard.primary) && server(shard.replica).is_up();
  if (!is_able) return;
  context_.stats.inject(Fault::kShardCrash, is_any_busy());
  shard.is_busy = true;
  const size_t old = shard.primary;
  server(old).crash();
  if (random_.chance(700)) shard.number++;  // what was on its way is lost
  const Nanos detection = between(200, 1500);
  if (random_.chance(500)) {
    context_.schedule.in(detection / 2, [this, number] {
      for (size_t i = 0; i < views_.size(); i++) {
        if (shard_of(i) != number) views_[i].is_down = true;
      }
    });
  }
  context_.schedule.in(detection, [this, number] {
    promote(shards_[number]);
    shards_[number].is_busy = false;
  });
  context_.schedule.in(detection + between(1, 3000), [this, old] {
    server(old).set_replica(true);
    server(old).restart(true);
  });
}

// ---- smaller faults ----------------------------------------------------------------------------

void Cluster::hold_back_map() {
  const size_t number = random_.below(views_.size());
  context_.stats.inject(Fault::kStaleMap, true);
  views_[number].stale_until = context_.schedule.now() + between(100, 4000);
}

void Cluster::say_down() {
  const size_t number = any_primary();
  context_.stats.inject(Fault::kClusterDown, is_any_busy());
  views_[number].is_down = true;
  context_.schedule.in(between(50, 2000), [this, number] { views_[number].is_down = false; });
}

void Cluster::calm() {
  for (View &view : views_) {
    view.is_down = false;
    view.stale_until = context_.schedule.now();
  }
}

}  // namespace redlatch::sim
