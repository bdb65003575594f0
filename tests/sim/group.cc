// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "group.h"

#include <algorithm>
#include <utility>

#include "caller.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kSync = 100 * kMs;
constexpr Nanos kRetry = 200 * kMs;

}  // namespace

Group::Group(Context &context, GroupRules &rules)
    : context_(context),
      rules_(rules),
      random_(context.plan.seed, 30'000),
      replicas_(context.servers.size()),
      epochs_(context.servers.size()) {
  epochs_[primary_] = epoch_;
  rules.join(context);
  for (size_t i = 0; i < static_cast<size_t>(context.plan.sentinel_count); i++) {
    sentinels_.push_back(std::make_unique<Sentinel>(context.plan, context.schedule, context.network,
                                                    context.trace, i));
  }
  for (size_t i = 0; i < replicas_.size(); i++) {
    server(i).join(*this);
    if (i == primary_) continue;
    server(i).demote();
    replicas_[i].of = primary_;
    replicas_[i].is_synced = true;
  }
}

// ---- replication -------------------------------------------------------------------------------

void Group::wrote(size_t primary, Effects effects) {
  const auto shared = std::make_shared<Effects>(std::move(effects));
  const uint64_t offset = server(primary).offset();
  for (size_t i = 0; i < replicas_.size(); i++) {
    Replica &replica = replicas_[i];
    if (i == primary || replica.of != primary || !replica.is_synced || replica.is_cut) continue;
    const Nanos way = random_.between(context_.plan.delay_min, context_.plan.replication_max);
    replica.last = std::max({replica.last, context_.schedule.now() + way, replica.stalled});
    context_.schedule.at(replica.last, [this, i, offset, shared, number = replica.number] {
      Replica &there = replicas_[i];
      // What follows a gap cannot be used: it needs another synchronisation.
      const bool is_next = there.number == number && there.is_synced && !there.is_cut;
      if (!is_next || !server(i).is_up()) return;
      server(i).apply(*shared);
      there.applied = offset;
      rules_.took(i, there.of, *shared);
      context_.schedule.in(context_.network.delay(),
                           [this, i, number, offset] { confirm(i, number, offset); });
    });
  }
}

void Group::confirm(size_t i, uint64_t number, uint64_t offset) {
  Replica &replica = replicas_[i];
  if (replica.number != number || replica.is_cut) return;
  replica.confirmed = std::max(replica.confirmed, offset);
  server(replica.of).note_confirmed();
}

int64_t Group::confirmed_count(size_t primary, uint64_t offset) const {
  return std::count_if(replicas_.begin(), replicas_.end(), [&](const Replica &replica) {
    return replica.of == primary && replica.is_synced && replica.confirmed >= offset;
  });
}

void Group::follow(size_t i, size_t primary) {
  Replica &replica = replicas_[i];
  replica = Replica{.of = primary, .number = replica.number + 1, .stalled = replica.stalled};
  context_.schedule.in(kSync, [this, i, number = replica.number] { synchronise(i, number); });
}

void Group::synchronise(size_t i, uint64_t number) {
  Replica &replica = replicas_[i];
  if (replica.number != number || replica.is_synced) return;
  if (!server(i).is_up() || !server(replica.of).is_up() || replica.is_cut) {
    return context_.schedule.in(kRetry, [this, i, number] { synchronise(i, number); });
  }
  server(i).copy(server(replica.of));
  rules_.copied(i, replica.of);
  replica.is_synced = true;
  replica.applied = replica.confirmed = server(replica.of).offset();
  server(replica.of).note_confirmed();
}

// ---- failovers ---------------------------------------------------------------------------------

void Group::inject(Fault fault) {
  switch (fault) {
    case Fault::kFailover:
      return fail_over();
    case Fault::kPrimaryCrash:
      return crash_primary();
    case Fault::kOldPrimary:
      return pause_primary();
    case Fault::kSplit:
      return split();
    case Fault::kReplicaLag:
      return stall_replica();
    case Fault::kStaleSentinel:
      return hold_back_sentinel();
    case Fault::kSentinelDown:
      return end_sentinel();
    case Fault::kWatchCut:
      return cut_watch();
    default:
      return;
  }
}

// One that is up and has the data of the primary, be it late; kNone if there is none.
size_t Group::any_replica() {
  std::vector<size_t> able;
  for (size_t i = 0; i < replicas_.size(); i++) {
    const bool is_able =
        i != primary_ && replicas_[i].of == primary_ && replicas_[i].is_synced && server(i).is_up();
    if (is_able) able.push_back(i);
  }
  return able.empty() ? kNone : able[random_.below(able.size())];
}

bool Group::is_any_busy() const {
  return std::any_of(context_.slots.begin(), context_.slots.end(), [](const Slot &slot) {
    return slot.client && slot.client->is_connected(0) && slot.client->is_busy();
  });
}

bool Group::promote(size_t heir) {
  if (heir == kNone) return false;
  Replica &replica = replicas_[heir];
  const size_t old = primary_;
  context_.trace.say(context_.schedule.now(), "node %zu becomes the primary, %d writes behind",
                     heir, static_cast<int>(server(old).offset() - replica.applied));
  context_.trace.mix(heir + 3000);
  replica = Replica{.number = replica.number + 1};
  primary_ = heir;
  server(heir).promote();
  rules_.promoted(heir);
  context_.stats.failovers++;
  epochs_[heir] = ++epoch_;
  inform_sentinels();
  for (size_t i = 0; i < replicas_.size(); i++) {
    if (i == heir || i == old) continue;
    context_.schedule.in(between(0, 500), [this, i, heir] {
      if (heir == primary_ && i != primary_) follow(i, heir);
    });
  }
  return true;
}

// The one that leads says at once that a replica is promoted, and up to 6 s later that the primary
// has changed. The others follow it; some learn it without a message.
void Group::inform_sentinels() {
  const size_t leader = random_.below(sentinels_.size());
  const bool has_leader =
      leader != parted_ && sentinels_[leader]->can_lead() && random_.chance(800);
  for (size_t i = 0; i < sentinels_.size(); i++) {
    const Nanos late = between(0, i == 0 ? 500 : 1500);
    Sentinel::View view{primary_, epoch_, !random_.chance(400)};
    if (i == parted_) continue;  // it learns of it when the network is whole again
    if (has_leader && i == leader) {
      view.is_announced = true;
      sentinels_[i]->lead(view, between(0, 6000));
      continue;
    }
    context_.schedule.in(late, [this, i, view] { sentinels_[i]->learn(view); });
  }
}

// The old primary hears that it is none.
void Group::resign(size_t old) {
  is_busy_ = false;
  if (old == primary_) return;
  context_.trace.say(context_.schedule.now(), "node %zu follows node %zu", old, primary_);
  server(old).demote();
  follow(old, primary_);
}

void Group::replace(Nanos detection, Nanos resignation) {
  is_busy_ = true;
  context_.schedule.in(detection, [this, old = primary_, resignation, detection] {
    (void)promote(any_replica());
    context_.schedule.in(resignation - detection, [this, old] { resign(old); });
  });
}

// The primary takes nothing until the heir has everything.
void Group::fail_over() {
  const size_t heir = any_replica();
  if (is_busy_ || heir == kNone) return;
  is_busy_ = true;
  const Nanos until = context_.schedule.now() + kSecond;
  server(primary_).pause(until);
  check_handover(heir, until);
}

void Group::check_handover(size_t heir, Nanos until) {
  const bool has_all =
      replicas_[heir].is_synced && replicas_[heir].applied == server(primary_).offset();
  if (has_all) {
    context_.stats.inject(Fault::kFailover, is_any_busy());
    const size_t old = primary_;
    (void)promote(heir);
    return resign(old);
  }
  if (context_.schedule.now() + 20 * kMs >= until) {
    is_busy_ = false;
    return;
  }
  context_.schedule.in(10 * kMs, [this, heir, until] { check_handover(heir, until); });
}

void Group::crash_primary() {
  if (is_busy_) return;
  context_.stats.inject(Fault::kPrimaryCrash, is_any_busy());
  const size_t old = primary_;
  server(old).crash();
  const Nanos detection = between(200, 1500);
  replace(detection, detection + between(50, 6000));
  // It comes back as a primary, and is soon put right.
  const Nanos back = random_.chance(500) ? detection + between(0, 3000) : between(20, 400);
  context_.schedule.in(back, [this, old] { server(old).restart(true); });
}

void Group::pause_primary() {
  if (is_busy_) return;
  context_.stats.inject(Fault::kOldPrimary, is_any_busy());
  const Nanos detection = between(200, 1500);
  const Nanos pause = detection + between(0, 2500);
  server(primary_).pause(context_.schedule.now() + pause);
  replace(detection, pause + between(50, 4500));
}

// The primary keeps one sentinel and some of the clients.
void Group::split() {
  if (is_busy_) return;
  context_.stats.inject(Fault::kSplit, is_any_busy());
  const Nanos length = between(500, 6000);
  const Nanos until = context_.schedule.now() + length;
  parted_ = random_.below(sentinels_.size());
  const size_t old = primary_;
  for (size_t i = 0; i < replicas_.size(); i++) replicas_[i].is_cut = i != old;
  for (const Slot &slot : context_.slots) {
    if (!slot.client) continue;
    const bool is_inside = random_.chance(400);
    for (size_t i = 0; i < replicas_.size(); i++) {
      if ((i == old) != is_inside) slot.client->part_from_server(i, until);
    }
    for (size_t i = 0; i < sentinels_.size(); i++) {
      if ((i == parted_) != is_inside) slot.client->part_from_sentinel(i, until);
    }
  }
  replace(between(200, 1500), length + between(50, 3000));
  context_.schedule.at(until, [this] {
    const size_t sentinel = std::exchange(parted_, kNone);
    const Sentinel::View view{primary_, epoch_, true};
    context_.schedule.in(between(0, 1000),
                         [this, sentinel, view] { sentinels_[sentinel]->learn(view); });
    for (size_t i = 0; i < replicas_.size(); i++) {
      // Those that have lost something follow anew, also one that still follows the old primary.
      if (replicas_[i].is_cut && i != primary_) follow(i, replicas_[i].of);
      replicas_[i].is_cut = false;
    }
  });
}

// ---- smaller faults ----------------------------------------------------------------------------

void Group::stall_replica() {
  const size_t replica = any_replica();
  if (replica == kNone) return;
  context_.stats.inject(Fault::kReplicaLag, true);
  replicas_[replica].stalled =
      context_.schedule.now() + between(50, random_.chance(700) ? 500 : 4000);
}

void Group::hold_back_sentinel() {
  context_.stats.inject(Fault::kStaleSentinel, true);
  sentinels_[random_.below(sentinels_.size())]->hold_back(context_.schedule.now() +
                                                          between(500, 20'000));
}

void Group::end_sentinel() {
  Sentinel &one = *sentinels_[random_.below(sentinels_.size())];
  if (!one.is_up()) return;
  context_.stats.inject(Fault::kSentinelDown, true);
  one.crash();
  context_.schedule.in(between(50, 5000), [this, &one] {
    one.restart();
    // It may be later than the others.
    context_.schedule.in(between(0, 500), [this, &one] { one.learn({primary_, epoch_, true}); });
  });
}

void Group::cut_watch() {
  Client *client = context_.slots[random_.below(context_.slots.size())].client.get();
  if (client == nullptr) return;
  const uint64_t link = client->disturb_watch(random_.below(sentinels_.size()));
  context_.stats.inject(Fault::kWatchCut, link != 0);
  context_.network.cut(link, Network::Ending::kSoon);
}

void Group::calm() {
  for (const auto &sentinel : sentinels_) sentinel->hold_back(context_.schedule.now());
}

}  // namespace redlatch::sim
