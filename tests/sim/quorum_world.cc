// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "quorum_world.h"

#include <algorithm>

#include "memory.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kSecond = 1000 * kMs;
constexpr Nanos kWatchInterval = 500 * kMs;
constexpr Nanos kCalm = 40 * kSecond;     // work goes on, nothing new fails
constexpr uint64_t kBusySecond = 60'000;  // events
// A lock that somebody waits for, and that nobody has, is taken within this.
constexpr Nanos kIdleLimit = 5 * kSecond;
// A process that runs says that a lease is over.
constexpr Nanos kLossLimit = 50 * kMs;

}  // namespace

QuorumScene QuorumWorld::make_scene(const Mutant *mutant) {
  for (int number = 1; number <= plan_.node_count; number++) {
    servers_.push_back(
        std::make_unique<Server>(plan_, schedule_, network_, tally_, trace_, mutant, number));
    rules_.add(*servers_.back());
  }
  const Scene scene{plan_,  schedule_, network_, *servers_.front(), tally_,
                    trace_, verdict_,  beliefs_, rules_.node(0)};
  return {scene, servers_, rules_};
}

QuorumWorld::QuorumWorld(const Plan &plan, const Mutant *mutant, FILE *words)
    : plan_(plan),
      trace_(words),
      verdict_(schedule_, trace_),
      network_(plan_, schedule_, tally_),
      beliefs_(schedule_, tally_, trace_, verdict_),
      rules_(plan_, schedule_, tally_, verdict_),
      scene_(make_scene(mutant)),
      random_(plan.seed, 3),
      bytes_before_(CoreMemory::bytes()) {
  beliefs_.is_let_off = [this](const std::string &name, const Beliefs::Holder &holder) {
    return rules_.is_let_off(name, holder);
  };
  for (const Fault setting : {Fault::kClockRate, Fault::kPollOnly}) {
    if (plan_.has(setting)) tally_.inject(setting, true);
  }
  stepped_ = some_nodes(static_cast<size_t>(plan_.minority()));
  slots_.resize(static_cast<size_t>(plan_.client_count));
  for (int slot = 0; slot < plan_.client_count; slot++) populate(slot);
}

QuorumWorld::~QuorumWorld() = default;

void QuorumWorld::populate(int number) {
  Slot &slot = slots_[static_cast<size_t>(number)];
  slot.client = std::make_unique<QuorumClient>(scene_, number, slot.life);
  for (int i = 0; i < plan_.caller_count; i++) {
    const uint64_t stream = 10'000 + 100 * static_cast<uint64_t>(number) +
                            static_cast<uint64_t>(i) + slot.life * 100'000;
    slot.callers.push_back(std::make_unique<Caller>(scene_, *slot.client, stream, is_working_));
    slot.callers.back()->begin();
  }
  slot.life++;
}

void QuorumWorld::run_until(Nanos end) {
  while (!verdict_.is_broken() && schedule_.next_at() <= end) {
    schedule_.run_next();
    if (schedule_.now() / kSecond != second_) {
      second_ = schedule_.now() / kSecond;
      events_before_ = schedule_.event_count();
    } else if (schedule_.event_count() - events_before_ > kBusySecond) {
      verdict_.broken("nobody spins",
                      "more than " + std::to_string(kBusySecond) + " events in 1 s");
    }
    trace_.mix(static_cast<uint64_t>(schedule_.now()));
  }
}

Result QuorumWorld::run() {
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
  tally_.events = schedule_.event_count();
  result.tally = tally_;
  return result;
}

Result run_plan(const Plan &plan, const Mutant *mutant, FILE *words) {
  if (plan.is_quorum()) return QuorumWorld(plan, mutant, words).run();
  return World(plan, mutant, words).run();
}

// ---- in the long run ---------------------------------------------------------------------------

void QuorumWorld::watch() {
  for (const auto &server : servers_) server->expire();
  beliefs_.look();
  judge_losses();
  judge_idle();
  judge_waits();
  if (is_calm_) {
    rules_.judge_strays(beliefs_, calm_since_ + plan_.lease_max);
    judge_missing();
  }
  schedule_.in(kWatchInterval, [this] { watch(); });
}

void QuorumWorld::judge_losses() {
  beliefs_.for_each([this](const std::string &name, const Beliefs::Holder &holder) {
    const Nanos now = schedule_.now();
    const auto &client = slots_[static_cast<size_t>(holder.client)].client;
    if (!client || now < client->paused_until() + kLossLimit) return;
    const Nanos late = holder.clock->read(now) - holder.lease->deadline.load();
    if (late > kLossLimit) {
      verdict_.broken("a loss is told in time", name + ": client " + std::to_string(holder.client) +
                                                    ", " + std::to_string(late / kMs) + " ms late");
    }
  });
}

// A holder asks again for the votes that it has not, where no other client has them.
void QuorumWorld::judge_missing() {
  const Nanos since = calm_since_ + plan_.lease_max + plan_.restart_guard;
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
    const auto &client = slots_[static_cast<size_t>(holder.client)].client;
    if (!client || client->is_paused() || schedule_.now() < since) return;
    rules_.judge_taken(name, holder, since);
    for (size_t node = 0; node < servers_.size(); node++) {
      const bool is_stepped = std::find(stepped_.begin(), stepped_.end(), node) != stepped_.end();
      const bool has_clock =
          !servers_[node]->has_restarted() &&
          !(is_stepped && (plan_.has(Fault::kClockBack) || plan_.has(Fault::kClockForward)));
      const bool may_vote = plan_.guard != Plan::Guard::kOn || has_clock;
      if (may_vote && servers_[node]->is_up()) rules_.judge_missing(name, holder, node, since);
    }
  });
}

// Whoever waits for a lock that nobody has takes it, whatever the others do.
void QuorumWorld::judge_idle() {
  std::map<std::string, bool> had;
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &) { had[name] = true; });
  std::map<std::string, Nanos> idle;
  for (const Slot &slot : slots_) {
    if (!slot.client || slot.client->is_paused()) continue;
    for (const auto &caller : slot.callers) {
      const Nanos since = caller->waiting_since();
      if (since == kNever || had.contains(caller->name())) continue;
      const auto known = idle_.find(caller->name());
      idle[caller->name()] = known == idle_.end() ? schedule_.now() : known->second;
    }
  }
  idle_ = std::move(idle);
  if (!is_calm_) return;
  for (const auto &[name, since] : idle_) {
    const Nanos begin = std::max(since, calm_since_ + plan_.lease_max + plan_.restart_guard);
    if (schedule_.now() - begin > kIdleLimit + stepped_back_) {
      verdict_.broken(
          "a lock that nobody has finds its waiter",
          name + ": free for " + std::to_string((schedule_.now() - begin) / kMs) + " ms");
    }
  }
}

// Once nothing fails any more everybody is served.
void QuorumWorld::judge_waits() {
  if (!is_calm_) return;
  const Nanos places = plan_.client_count * plan_.caller_count;
  const Nanos limit = 20 * kSecond + 2 * plan_.timeout + plan_.lease_max + plan_.restart_guard +
                      stepped_back_ + places * (plan_.hold_max + kSecond);
  for (const Slot &slot : slots_) {
    for (const auto &caller : slot.callers) {
      if (caller->waiting_since() == kNever) continue;
      const Nanos begin = std::max(caller->waiting_since(), calm_since_);
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

bool QuorumWorld::is_quiet() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot &slot) {
    return !slot.client || std::all_of(slot.callers.begin(), slot.callers.end(),
                                       [](const auto &caller) { return caller->is_idle(); });
  });
}

// Nobody begins anything new; whoever waits is served, or its client is shut down meanwhile.
void QuorumWorld::end_work() {
  is_working_ = false;
  for (const Slot &slot : slots_) {
    for (const auto &caller : slot.callers) caller->wind_up();
    if (slot.client && random_.chance(200)) slot.client->shut_down();
  }
  const Nanos limit = schedule_.now() + 3600 * kSecond;  // a rule says far earlier that it is late
  while (!is_quiet() && !verdict_.is_broken() && schedule_.now() < limit) {
    run_until(schedule_.now() + kSecond);
  }
  if (!is_quiet() && !verdict_.is_broken()) verdict_.broken("every call ends", "one did not");
}

// More shut down, others just end. Afterwards neither they nor the nodes may have anything left.
void QuorumWorld::end_everything() {
  if (verdict_.is_broken()) return;
  for (Slot &slot : slots_) {
    if (slot.client && random_.chance(500)) slot.client->shut_down();
  }
  // An ACQUIRE whose answer was lost is undone until its lease would have ended.
  run_until(schedule_.now() + 2 * plan_.lease_max + 5 * kSecond + stepped_back_);
  if (verdict_.is_broken()) return;
  for (const Slot &slot : slots_) {
    if (slot.client && slot.client->quorum().drained_count() != servers_.size()) {
      verdict_.broken("all that was given back is answered",
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
       {plan_.lease_max + stepped_back_ + kSecond, 620 * kSecond, 3700 * kSecond}) {
    schedule_.skip_to(gone + later);
    for (size_t node = 0; node < servers_.size(); node++) {
      servers_[node]->expire();
      rules_.node(node).judge_leftovers(later - stepped_back_,
                                        std::max(plan_.lease_max, 3000 * kMs));
    }
  }
}

}  // namespace redlatch::sim
