// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// World, part 2: what goes wrong, when, and to whom.
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>

#include "world.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kSecond = 1000 * kMs;
constexpr Nanos kAfterFaults = 10 * kSecond;  // the longest that one goes on

// Whom it is aimed at when its time comes. The others are settings of the run.
enum class Target : uint8_t { kNobody, kClient, kServer };

constexpr Target target_of(Fault fault) {
  switch (fault) {
    case Fault::kStall:
    case Fault::kCut:
    case Fault::kHalfOpen:
    case Fault::kPause:
    case Fault::kCrash:
    case Fault::kHostGone:
    case Fault::kForge:
      return Target::kClient;
    case Fault::kServerPause:
    case Fault::kServerCrash:
    case Fault::kServerLoss:
    case Fault::kServerAmnesia:
    case Fault::kScriptFlush:
    case Fault::kMemory:
    case Fault::kNoPublish:
    case Fault::kClockBack:
    case Fault::kClockForward:
      return Target::kServer;
    default:
      return Target::kNobody;
  }
}

// The first digits of the SHA-1 of a lock key.
std::string check_of(std::string_view key) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(key.data(), key.size(), digest, &size, EVP_sha1(), nullptr);
  char text[9];
  snprintf(text, sizeof text, "%02x%02x%02x%02x", digest[0], digest[1], digest[2], digest[3]);
  return text;
}

}  // namespace

void World::schedule_fault() {
  const Nanos pause = random_.between(plan_.fault_interval / 2, plan_.fault_interval * 3 / 2);
  schedule_.in(pause, [this] {
    if (is_calm_) return;
    inject();
    schedule_fault();
  });
}

void World::inject() {
  if (plan_.kills_newcomers()) return kill_newcomer();
  if (plan_.kills_crowds()) return kill_crowd();
  // Those of clients are the cheap ones: three for each that stops everybody.
  const bool is_for_client = random_.chance(750);
  std::vector<Fault> kinds;
  for (size_t i = 0; i < kFaultCount; i++) {
    const auto fault = static_cast<Fault>(i);
    const bool is_kind = target_of(fault) == (is_for_client ? Target::kClient : Target::kServer);
    if (plan_.has(fault) && is_kind) kinds.push_back(fault);
  }
  if (kinds.empty()) return;
  const Fault fault = kinds[random_.below(kinds.size())];
  trace_.mix(static_cast<uint64_t>(fault) + 1000);
  trace_.say(schedule_.now(), "fault: %s", std::string(name_of(fault)).c_str());
  return is_for_client ? inject_into_client(fault) : inject_into_server(fault);
}

Client *World::any_client() {
  Slot &slot = slots_[random_.below(slots_.size())];
  return slot.client.get();
}

void World::inject_into_client(Fault fault) {
  if (fault == Fault::kForge) return forge();
  Client *client = any_client();
  if (client == nullptr) return;
  const bool is_hit = client->is_busy() || client->is_waiting();
  switch (fault) {
    case Fault::kPause:
      tally_.inject(fault, is_hit);
      trace_.say(schedule_.now(), "client %d stands still", client->slot());
      return client->pause(schedule_.now() +
                           random_.between(1, random_.chance(500) ? 200 : 8000) * kMs);
    case Fault::kCrash:
    case Fault::kHostGone:
      return kill(client->slot(), fault);
    default:
      return break_connection(fault, *client);
  }
}

void World::break_connection(Fault fault, Client &client) {
  const bool is_hit = client.is_connected() && (client.is_busy() || client.is_waiting());
  tally_.inject(fault, is_hit);
  if (fault == Fault::kStall) {
    const Nanos until =
        schedule_.now() + random_.between(1, random_.chance(700) ? 300 : 6000) * kMs;
    const int64_t which = random_.between(0, 2);
    if (which != 0) network_.stall(client.link(), true, until);
    if (which != 1) network_.stall(client.link(), false, until);
    return;
  }
  const auto ending = fault == Fault::kHalfOpen ? Network::Ending::kLate : Network::Ending::kSoon;
  if (random_.chance(500)) return network_.cut(client.link(), ending);
  network_.cut_when_sending(client.link(), ending);
}

void World::kill(int number, Fault fault) {
  Slot &slot = slots_[static_cast<size_t>(number)];
  if (!slot.client) return;
  tally_.inject(fault, slot.client->is_busy() || slot.client->is_waiting());
  trace_.say(schedule_.now(), "client %d is gone", number);
  slot.client->forget_connection(fault == Fault::kHostGone ? Network::Ending::kLate
                                                           : Network::Ending::kSoon);
  beliefs_.client_died(number);
  slot.callers.clear();
  slot.client.reset();
  const Nanos pause = plan_.kills_crowds() ? 5'000 * kMs : random_.between(10, 2000) * kMs;
  schedule_.in(pause, [this, number] {
    if (!slots_[static_cast<size_t>(number)].client && is_working_) populate(number);
  });
}

// One who waits, so that it is likely granted while its host is gone.
void World::kill_newcomer() {
  for (size_t i = 0; i < slots_.size(); i++) {
    Client *client = any_client();
    if (client == nullptr || !client->is_waiting()) continue;
    return kill(client->slot(), Fault::kHostGone);
  }
}

void World::kill_crowd() {
  const size_t spared = random_.below(slots_.size());
  for (size_t i = 0; i < slots_.size(); i++) {
    const bool is_spared = i == spared || i == (spared + 1) % slots_.size();
    if (!is_spared) kill(static_cast<int>(i), Fault::kCrash);
  }
}

// A grant of a waiter's lock, by a user who may publish on its channel and knows what to write.
void World::forge() {
  const auto waiters = rules_.waiters();
  tally_.inject(Fault::kForge, !waiters.empty());
  if (waiters.empty()) return;
  const auto &[lock, member] = waiters[random_.below(waiters.size())];
  const int64_t now_ms = server_.now_us() / 1000;
  static constexpr int64_t kFences[] = {1, 0, 1'000'000'000, 9'000'000'000'000'000,
                                        9'007'199'254'740'992};
  const size_t which = random_.below(std::size(kFences));
  const int64_t fence = which < 3 ? server_.now_us() + kFences[which] : kFences[which];
  const int64_t claim_ms = random_.chance(500) ? 99'999 : random_.between(1, 9'999);
  char numbers[64];
  snprintf(numbers, sizeof numbers, "%05lld%016lld%013lld", static_cast<long long>(claim_ms),
           static_cast<long long>(fence), static_cast<long long>(now_ms - random_.between(0, 50)));
  const std::string message = "g" + member.substr(22, 11) + numbers + check_of(lock);
  trace_.say(schedule_.now(), "forged for %s of %s: %s", member.c_str(), lock.c_str(),
             message.c_str());
  constexpr int64_t kLead = 3'600LL * 1'000'000;
  const Nanos slack = kSecond;  // for what is on its way, and clocks of other rates
  beliefs_.forged(member.substr(0, 32), schedule_.now() + 3 * kSecond + slack,
                  server_.now_us() + kLead);
  server_.forge("app:rl1:" + member.substr(0, 22), message);
}

// ---- the server --------------------------------------------------------------------------------

void World::inject_into_server(Fault fault) {
  if (!server_.is_up()) return;
  switch (fault) {
    case Fault::kServerPause:
      tally_.inject(fault, false);
      return server_.pause(schedule_.now() +
                           random_.between(1, random_.chance(700) ? 300 : 4000) * kMs);
    case Fault::kScriptFlush:
      tally_.inject(fault, false);
      return server_.flush_scripts();
    case Fault::kMemory:
      tally_.inject(fault, false);
      server_.set_out_of_memory(true);
      return schedule_.in(random_.between(10, 1500) * kMs,
                          [this] { server_.set_out_of_memory(false); });
    case Fault::kNoPublish:
      tally_.inject(fault, true);
      server_.set_may_publish(false);
      return schedule_.in(random_.between(10, 1500) * kMs,
                          [this] { server_.set_may_publish(true); });
    case Fault::kClockBack:
    case Fault::kClockForward:
      return step_clock(fault);
    default:
      return bring_down(fault);
  }
}

void World::bring_down(Fault fault) {
  tally_.inject(fault, true);
  server_.crash();
  Nanos pause = random_.between(1, 500) * kMs;
  // Whatever was acknowledged has ended by then, on any clock that is not too far off.
  if (fault == Fault::kServerLoss) pause = plan_.lease_max + plan_.lease_max / 50 + 10 * kMs;
  if (fault == Fault::kServerAmnesia) excuse_holders();
  schedule_.in(pause, [this, fault] { server_.restart(fault == Fault::kServerCrash); });
}

void World::step_clock(Fault fault) {
  tally_.inject(fault, true);
  const Nanos by = random_.between(10, random_.chance(500) ? 500 : 20'000) * kMs;
  excuse_holders();
  if (fault == Fault::kClockBack) {
    stepped_back_ += by;
    server_.step_clock(-by);
    return rules_.clock_went_back();
  }
  // Large enough that the next reply shows it to every client.
  server_.step_clock(5 * kSecond + by);
  scene_.jumped_at = schedule_.now();
}

// Who holds now, or is about to learn that it does, is promised nothing.
void World::excuse_holders() {
  beliefs_.excuse_all();
  for (const std::string &token : rules_.holders()) beliefs_.excuse(token);
}

void World::calm() {
  if (verdict_.is_broken()) return;
  trace_.say(schedule_.now(), "calm");
  is_calm_ = true;
  calm_since_ = schedule_.now() + kAfterFaults;
  network_.heal();
  server_.set_out_of_memory(false);
  server_.set_may_publish(true);
}

}  // namespace redlatch::sim
