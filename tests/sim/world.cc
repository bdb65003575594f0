// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "world.h"

#include <algorithm>

#include "cluster_rules.h"
#include "group_rules.h"
#include "memory.h"
#include "quorum_rules.h"
#include "rules.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kCalm = 40 * kSecond;  // work continues without new faults
constexpr Nanos kClaim = 3 * kSecond;
constexpr uint64_t kBusySecond = 20'000;  // events

}  // namespace

std::string Result::what_is_missing(const Plan &plan) const {
  const auto needed = static_cast<uint64_t>(plan.least_grants() * (plan.duration / kSecond) / 60);
  if (stats.grants < needed) {
    return "only " + std::to_string(stats.grants) + " grants of " + std::to_string(needed);
  }
  if (plan.min_replicas > 0 && (stats.confirmed == 0 || stats.unconfirmed == 0)) {
    return "replicas confirmed no grant, or each one";
  }
  for (size_t i = 0; i < kFaultCount; i++) {
    const auto fault = static_cast<Fault>(i);
    if (plan.has(fault) && stats.hits[i] == 0) {
      return std::string(name_of(fault)) + " hit nothing";
    }
  }
  return {};
}

World::World(const Plan &plan, const Mutant *mutant, FILE *words)
    : plan_(plan),
      trace_(words),
      verdict_(schedule_, trace_),
      network_(plan_, schedule_, stats_),
      beliefs_(schedule_, stats_, trace_, verdict_),
      checker_(make_checker(mutant)),
      slots_(static_cast<size_t>(plan_.client_count)),
      context_{plan_,  schedule_, network_, servers_,  stats_,
               trace_, verdict_,  beliefs_, *checker_, slots_},
      random_(plan.seed, 3),
      shutdowns_(plan.seed, 16),
      bytes_before_(CoreMemory::bytes()) {
  beliefs_.set_checker(*checker_);
  if (plan_.is_group()) {
    group_ = std::make_unique<Group>(context_, dynamic_cast<GroupRules &>(*checker_));
    context_.group = group_.get();
  }
  if (plan_.is_cluster()) {
    cluster_ = std::make_unique<Cluster>(context_, dynamic_cast<ClusterRules &>(*checker_));
    context_.cluster = cluster_.get();
  }
  if (plan_.has(Fault::kPassword)) {
    passwords_ = std::make_unique<Passwords>(context_);
    context_.passwords = passwords_.get();
  }
  for (const Fault setting : {Fault::kClockRate, Fault::kPollOnly}) {
    if (plan_.has(setting)) stats_.inject(setting, true);
  }
  context_.on_opening = [this](int client, size_t node) { strike_opening(client, node); };
  context_.stepped = plan_.is_quorum() ? some_nodes(few()) : std::vector<size_t>{0};
  for (int slot = 0; slot < plan_.client_count; slot++) populate(slot);
  for (int i = 0; i < plan_.peer_count; i++) {
    peers_.push_back(std::make_unique<Peer>(context_, i));
    peers_.back()->begin();
  }
}

World::~World() { slots_.clear(); }

std::unique_ptr<Checker> World::make_checker(const Mutant *mutant) {
  for (int i = 0; i < plan_.server_count(); i++) {
    const bool is_one = !plan_.is_quorum() && !plan_.is_group() && !plan_.is_cluster();
    const int number = is_one ? 0 : i + 1;
    servers_.push_back(std::make_unique<Server>(plan_, schedule_, network_, stats_, trace_,
                                                verdict_, mutant, number));
  }
  const RuleParts parts{plan_, schedule_, stats_, verdict_, beliefs_};
  if (plan_.is_group()) return std::make_unique<GroupRules>(parts, servers_);
  if (plan_.is_cluster()) return std::make_unique<ClusterRules>(parts, servers_);
  if (plan_.is_quorum()) return std::make_unique<QuorumRules>(parts, servers_);
  auto rules = std::make_unique<Rules>(parts, *servers_.front());
  servers_.front()->add_witness(*rules);
  return rules;
}

void World::populate(int number) {
  Slot &slot = slots_[static_cast<size_t>(number)];
  slot.client = std::make_unique<Client>(context_, number, slot.life);
  for (int i = 0; i < plan_.caller_count; i++) {
    const uint64_t stream = 10'000 + 100 * static_cast<uint64_t>(number) +
                            static_cast<uint64_t>(i) + slot.life * 100'000;
    slot.callers.push_back(std::make_unique<Caller>(context_, *slot.client, stream));
    slot.callers.back()->on_given = [this, number](const GivenLease &given) {
      hand_over(number, given);
    };
    slot.callers.back()->begin();
  }
  slot.life++;
}

// An idle caller of another process attaches the lease.
void World::hand_over(int from, const GivenLease &given) {
  for (int i = 1; i < plan_.client_count; i++) {
    Slot &slot = slots_[static_cast<size_t>((from + i) % plan_.client_count)];
    for (const auto &caller : slot.callers) {
      if (slot.client && caller->take(given)) return;
    }
  }
}

void World::run_until(Nanos end) {
  const uint64_t limit =
      kBusySecond * static_cast<uint64_t>(std::min(plan_.node_count + plan_.shard_count, 3));
  while (!verdict_.is_broken() && schedule_.next_at() <= end) {
    schedule_.run_next();
    if (schedule_.now() / kSecond != second_) {
      second_ = schedule_.now() / kSecond;
      events_before_ = schedule_.event_count();
    } else if (schedule_.event_count() - events_before_ > limit) {
      verdict_.broken("nobody spins", "more than " + std::to_string(limit) + " events in 1 s");
    }
    trace_.mix(static_cast<uint64_t>(schedule_.now()));
  }
}

Result World::run() {
  schedule_fault();
  watch();
  run_until(plan_.duration - kCalm);
  calm();
  run_until(plan_.duration);
  end_work();
  end_everything();
  Result result;
  result.simulated = worked_until_;
  result.is_broken = verdict_.is_broken();
  result.rule = verdict_.rule();
  result.how = verdict_.how();
  result.at = verdict_.at();
  result.hash = trace_.hash();
  stats_.events = schedule_.event_count();
  result.stats = stats_;
  return result;
}

// ---- in the long run ---------------------------------------------------------------------------

void World::watch() {
  for (const auto &server : servers_) server->expire();
  if (group_) context_.stepped_back = group_->stepped_back();
  beliefs_.look();
  checker_->watch(context_);
  check_waits();
  for (const Slot &slot : slots_) {
    if (slot.client) slot.client->check_openings();
    if (slot.client) slot.client->wallet().watch();
  }
  schedule_.in(kWatchInterval, [this] { watch(); });
}

// Rule of the calm: every waiter is served.
void World::check_waits() {
  if (!context_.is_calm) return;
  const Nanos places = plan_.client_count * plan_.caller_count;
  const Nanos unheard = plan_.is_quorum() ? kSecond : kClaim + 100 * kMs;  // per dead waiter ahead
  const Nanos limit = 20 * kSecond + 2 * plan_.timeout + plan_.lease_max + plan_.restart_guard +
                      context_.stepped_back + places * (plan_.hold_max + unheard);
  for (const Slot &slot : slots_) {
    for (const auto &caller : slot.callers) {
      if (caller->waiting_since() == kNever) continue;
      const Nanos begin = std::max(caller->waiting_since(), context_.calm_since);
      if (schedule_.now() - begin > limit) {
        verdict_.broken("who waits is served",
                        caller->name() + ": client " + std::to_string(slot.client->slot()) +
                            " waits for " + std::to_string((schedule_.now() - begin) / kMs) +
                            " ms");
      }
    }
  }
}

// ---- the end -----------------------------------------------------------------------------------

bool World::is_quiet() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot &slot) {
    return !slot.client || std::all_of(slot.callers.begin(), slot.callers.end(),
                                       [](const auto &caller) { return caller->is_idle(); });
  });
}

// Callers begin nothing new. Every waiter is served, or its client is shut down.
void World::end_work() {
  context_.is_working = false;
  for (const Slot &slot : slots_) {
    for (const auto &caller : slot.callers) caller->wind_up();
    if (slot.client && random_.chance(200)) slot.client->shut_down();
  }
  const Nanos limit = schedule_.now() + 3600 * kSecond;  // a rule is broken far earlier
  while (!is_quiet() && !verdict_.is_broken() && schedule_.now() < limit) {
    run_until(schedule_.now() + kSecond);
  }
  if (!is_quiet() && !verdict_.is_broken()) verdict_.broken("every call ends", "one did not");
}

// Some more clients are shut down, the others just end. Afterwards neither clients nor nodes may
// have anything left.
void World::end_everything() {
  if (verdict_.is_broken()) return;
  for (Slot &slot : slots_) {
    if (slot.client && random_.chance(500)) slot.client->shut_down();
  }
  // A client undoes an ACQUIRE without a reply until its lease would have ended.
  run_until(schedule_.now() + 2 * plan_.lease_max + 5 * kSecond + context_.stepped_back);
  if (verdict_.is_broken()) return;
  for (const Slot &slot : slots_) {
    if (slot.client && !slot.client->is_closed() && !slot.client->is_through()) {
      verdict_.broken("a client forgets what is over, and all that was given back is answered",
                      "client " + std::to_string(slot.client->slot()));
    }
  }
  if (beliefs_.count() != 0) verdict_.broken("nobody believes in the end", "somebody does");
  for (Slot &slot : slots_) {
    slot.callers.clear();
    slot.client.reset();
  }
  if (CoreMemory::bytes() != bytes_before_) {
    verdict_.broken("the core's memory returns to zero",
                    std::to_string(CoreMemory::bytes() - bytes_before_) + " bytes are left");
  }
  const Nanos gone = schedule_.now();
  worked_until_ = gone;
  for (const Nanos later :
       {plan_.lease_max + context_.stepped_back + kSecond, 620 * kSecond, 3700 * kSecond}) {
    schedule_.skip_to(gone + later);
    for (const auto &server : servers_) server->expire();
    checker_->check_leftovers(later - context_.stepped_back);
  }
}

}  // namespace redlatch::sim
