// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "world.h"

#include <algorithm>

#include "memory.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kSecond = 1000 * kMs;
constexpr Nanos kWatchInterval = 500 * kMs;
constexpr Nanos kCalm = 40 * kSecond;  // work goes on, nothing new fails
constexpr Nanos kLongestPoll = 15 * kSecond;
constexpr Nanos kClaim = 3 * kSecond;
constexpr uint64_t kBusySecond = 20'000;  // events

}  // namespace

std::string Result::what_is_missing(const Plan &plan) const {
  const auto needed = static_cast<uint64_t>(plan.least_grants() * (plan.duration / kSecond) / 60);
  if (tally.grants < needed) {
    return "only " + std::to_string(tally.grants) + " grants of " + std::to_string(needed);
  }
  for (size_t i = 0; i < kFaultCount; i++) {
    const auto fault = static_cast<Fault>(i);
    if (plan.has(fault) && tally.hits[i] == 0) {
      return std::string(name_of(fault)) + " hit nothing";
    }
  }
  return {};
}

World::World(const Plan &plan, const Mutant *mutant, FILE *words)
    : plan_(plan),
      trace_(words),
      verdict_(schedule_, trace_),
      network_(plan_, schedule_, tally_),
      server_(plan_, schedule_, network_, tally_, trace_, mutant),
      beliefs_(schedule_, tally_, trace_, verdict_),
      rules_(plan_, schedule_, server_, tally_, verdict_),
      scene_{plan_, schedule_, network_, server_, tally_, trace_, verdict_, beliefs_, rules_},
      random_(plan.seed, 3),
      bytes_before_(CoreMemory::bytes()) {
  server_.set_witness(rules_);
  rules_.on_forced = [this](const std::string &token) {
    tally_.hit(Fault::kForce);
    beliefs_.excuse(token);
  };
  beliefs_.was_granted = [this](const std::string &token) { return rules_.was_granted(token); };
  for (const Fault setting : {Fault::kClockRate, Fault::kPollOnly}) {
    if (plan_.has(setting)) tally_.inject(setting, true);
  }
  slots_.resize(static_cast<size_t>(plan_.client_count));
  for (int slot = 0; slot < plan_.client_count; slot++) populate(slot);
  for (int i = 0; i < plan_.peer_count; i++) {
    peers_.push_back(std::make_unique<Peer>(scene_, i, is_working_));
    peers_.back()->begin();
  }
}

World::~World() = default;

void World::populate(int number) {
  Slot &slot = slots_[static_cast<size_t>(number)];
  slot.client = std::make_unique<Client>(scene_, number, slot.life);
  for (int i = 0; i < plan_.caller_count; i++) {
    const uint64_t stream = 10'000 + 100 * static_cast<uint64_t>(number) +
                            static_cast<uint64_t>(i) + slot.life * 100'000;
    slot.callers.push_back(std::make_unique<Caller>(scene_, *slot.client, stream, is_working_));
    slot.callers.back()->on_given = [this, number](const GivenLease &given) {
      hand_over(number, given);
    };
    slot.callers.back()->begin();
  }
  slot.life++;
}

// The token goes to somebody of another process who has nothing to do.
void World::hand_over(int from, const GivenLease &given) {
  for (int i = 1; i < plan_.client_count; i++) {
    Slot &slot = slots_[static_cast<size_t>((from + i) % plan_.client_count)];
    for (const auto &caller : slot.callers) {
      if (slot.client && caller->take(given)) return;
    }
  }
}

void World::run_until(Nanos end) {
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
  tally_.events = schedule_.event_count();
  result.tally = tally_;
  return result;
}

// ---- in the long run ---------------------------------------------------------------------------

void World::watch() {
  server_.expire();
  beliefs_.look();
  judge_idle();
  judge_waits();
  schedule_.in(kWatchInterval, [this] { watch(); });
}

// A free lock with a live waiter is found by somebody's poll, at the latest.
void World::judge_idle() {
  const auto idle = rules_.idle_locks([this](std::string_view cid) {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot &slot) {
      return slot.client && slot.client->is_connected() && !slot.client->is_paused() &&
             slot.client->channel().ends_with(cid);
    });
  });
  if (!is_calm_ && !plan_.kills_newcomers() && !plan_.kills_crowds()) return;
  Nanos limit = kLongestPoll + 2 * plan_.timeout + 2 * kSecond;
  // Nothing else fails there, so somebody is told when the time of the dead one ends.
  if (plan_.kills_newcomers()) limit = 2 * kSecond;
  if (plan_.kills_crowds()) limit = kWatchInterval;
  for (const auto &[lock, since] : idle) {
    const Nanos begin = std::max(since, calm_since_);
    if (schedule_.now() - begin > limit) {
      verdict_.broken("a free lock finds its waiter",
                      lock + ": free for " + std::to_string((schedule_.now() - begin) / kMs) +
                          " ms with " + std::to_string(rules_.waiter_count(lock)) + " waiters");
    }
  }
}

// Once nothing fails any more everybody is served.
void World::judge_waits() {
  if (!is_calm_) return;
  const Nanos places = plan_.client_count * plan_.caller_count;
  const Nanos limit = kLongestPoll + 2 * plan_.timeout + 2 * kSecond + plan_.lease_max +
                      stepped_back_ + places * (plan_.hold_max + kClaim + 100 * kMs);
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

bool World::is_quiet() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot &slot) {
    return !slot.client || std::all_of(slot.callers.begin(), slot.callers.end(),
                                       [](const auto &caller) { return caller->is_idle(); });
  });
}

// Nobody begins anything new; whoever waits is served, or its client is shut down meanwhile.
void World::end_work() {
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

// More shut down, others just end. Afterwards neither they nor the server may have anything left.
void World::end_everything() {
  if (verdict_.is_broken()) return;
  for (Slot &slot : slots_) {
    if (slot.client && random_.chance(500)) slot.client->shut_down();
  }
  // An ACQUIRE whose answer was lost is undone until its lease would have ended.
  run_until(schedule_.now() + 2 * plan_.lease_max + 5 * kSecond + stepped_back_);
  if (verdict_.is_broken()) return;
  for (const Slot &slot : slots_) {
    if (slot.client && !slot.client->engine().is_idle()) {
      verdict_.broken("the engine forgets what is over",
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
    server_.expire();
    rules_.judge_leftovers(later - stepped_back_, std::max(plan_.lease_max, 3000 * kMs));
  }
}

}  // namespace redlatch::sim
