// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Rules: those for other libraries on the same key, for faults, and those that are checked twice a
// second and at the end.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/limits.h"
#include "caller.h"
#include "rules.h"

namespace redlatch::sim {

namespace {

constexpr int64_t kQueueLimitMs = 600'000;
constexpr int64_t kNameLimitMs = 60'000;
constexpr int64_t kFenceLimitMs = 3'600'000;
constexpr int64_t kCapLimitMs = 604'800'000;
constexpr int64_t kMarkLimitMs = 600'000;
constexpr int64_t kValueLimitMs = 10'000;
constexpr int64_t kYieldEvery = 16;
constexpr int64_t kYieldLimit = 6;
// Time for an invalidation, a poll, and the rest of a window that is left to others.
constexpr Nanos kSoon = 400 * kMs;
constexpr Nanos kLongestPoll = 15 * kSecond;

}  // namespace

// Rule: a member that begins with a ticket is that of a waiter whose channel was changed, and that
// has had the ticket under another token.
void Rules::note_asker(int client, const Call &call) {
  if (call.member.empty()) return;
  const bool is_new = askers_.try_emplace(std::string(call.member), client).second;
  if (!is_new || call.ticket.empty()) return;
  auto &tickets = tickets_[std::string(call.member)];
  const double ticket = std::stod(std::string(call.ticket));
  if (!tickets.insert(ticket).second || given_[client].contains(ticket)) return;
  verdict_.broken("a waiter with a new channel has had its ticket before",
                  "client " + std::to_string(client) + ", " + std::string(call.member));
}

Rules::Turn Rules::turn_at(std::string_view key, int64_t now_ms) const {
  Turn turn;
  const Store::Entry *entry = key.empty() ? nullptr : entry_at(key);
  if (entry == nullptr) return turn;
  const auto *text = std::get_if<std::string>(&entry->data);
  const bool is_over = entry->expires_ms >= 0 && entry->expires_ms < now_ms;
  if (text == nullptr || is_over) return turn;
  std::array<int64_t, 4> words{};
  std::string_view rest = *text;
  turn.is_marked = !rest.starts_with('-') && !rest.starts_with('p');
  for (int64_t &word : words) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::from_chars(rest.data(), rest.data() + end, word);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  turn.count = words[0];
  turn.missed = words[1];
  turn.since_ms = words[2] + words[3];
  turn.is_window = now_ms >= words[2] && now_ms < words[2] + words[3];
  return turn;
}

void Rules::check_others(const Call &call, const Lock &was, Lock &lock, int64_t now_ms) {
  check_turns(call, was, lock, now_ms);
  check_freed(call, was, lock, now_ms);
}

void Rules::check_turns(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  const bool was_free = was.holder.empty() && was.holds.empty();
  if (call.is_acquire() && was_free && turn_.is_window && !is.holder.empty()) {
    verdict_.broken("what is left to others is not taken",
                    std::string(call.lock) + ": " + is.holder);
  }
  // A hand-off by a release, when no client sets the turns of others (yield_every).
  const bool gives = call.script == protocol::Script::kRelease && was.holder == call.token &&
                     was.holds.empty() && plan_.yield_every == 0;
  const bool is_handed_on = gives && !is.holder.empty() && is.holder != was.holder;
  if (!is_handed_on || !turn_.is_marked || turn_.missed >= kYieldLimit) return;
  const bool is_due = now_ms >= turn_.since_ms + kDefaultYieldMs;
  if (is_due && turn_.count + 1 >= kYieldEvery << turn_.missed) {
    verdict_.broken("libraries that poll have their turn",
                    std::string(call.lock) + ": " + std::to_string(turn_.count) +
                        " grants in a row, and then " + is.holder + " at " +
                        std::to_string(now_ms));
  }
}

// Rule of kBehind: another library's release sends no message to our clients, and still a
// live waiter acquires the lock soon.
void Rules::check_freed(const Call &call, const Lock &was, Lock &lock, int64_t now_ms) {
  if (!plan_.is_watched()) return;
  if (was.holder == lock.holder && !call.member.empty()) lock.lookers.emplace(call.member);
  const auto queue_key = queue_of_.find(call.lock);
  const auto *queue = queue_key == queue_of_.end() ? nullptr : queue_at(queue_key->second);
  if (lock.holder.empty() && !was.holder.empty() && call.is_foreign_delete) {
    lock.freed_at = schedule_.now();
    lock.heirs.clear();
    if (queue == nullptr) return;
    for (const auto &[score, member] : queue->order) {
      const bool has_looked = lock.lookers.contains(member);
      if (!has_looked || is_dead(member) || is_overdue(member, score, now_ms)) continue;
      lock.heirs.push_back(member);
    }
  } else if (lock.freed_at >= 0) {
    const bool is_late = schedule_.now() - lock.freed_at > kSoon;
    for (const std::string &heir : lock.heirs) {
      const bool waits = queue != nullptr && queue->scores.contains(heir) && !is_dead(heir) &&
                         !is_overdue(heir, queue->scores.at(heir), now_ms);
      const bool is_in = is_late && call.member == heir && !lock.holder.empty();
      if (!is_late || !(waits || is_in)) continue;
      verdict_.broken("who waits is in soon after others have gone",
                      std::string(call.lock) + ": free for " +
                          std::to_string((schedule_.now() - lock.freed_at) / kMs) + " ms before " +
                          heir);
      break;
    }
    if (!lock.holder.empty()) lock.freed_at = -1;
  }
  if (was.holder != lock.holder) lock.lookers.clear();
}

std::vector<std::pair<std::string, std::string>> Rules::waiters() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto &[lock, queue_key] : queue_of_) {
    const auto *queue = queue_at(queue_key);
    if (queue == nullptr) continue;
    for (const auto &[score, member] : queue->order) found.emplace_back(lock, member);
  }
  return found;
}

void Rules::check_leftovers(Nanos gone_for) {
  const int64_t now_ms = server_->now_us() / 1000;
  const int64_t gone_ms = gone_for / kMs;
  for (const auto &[key, entry] : server_->store().keys()) {
    if (entry.expires_ms >= 0 && entry.expires_ms < now_ms) continue;
    const bool is_aux = key.find(":rl1") != std::string::npos;
    int64_t limit_ms = std::max<int64_t>(plan_.lease_max / kMs, 3000);
    if (key.starts_with(kChannelPrefix)) limit_ms = kNameLimitMs;
    const bool is_queue = key.back() == 'q' || key.back() == 'w' || key.back() == 'e';
    if (is_aux && is_queue) limit_ms = kQueueLimitMs;
    if (is_aux && key.back() == 'f') limit_ms = kFenceLimitMs;
    if (is_aux && key.back() == 'c') limit_ms = kCapLimitMs;
    if (is_aux && key.back() == 'o') limit_ms = kMarkLimitMs;
    if (is_aux && key.back() == 'v') limit_ms = kValueLimitMs;
    // The server's clock may have another rate.
    if (gone_ms > limit_ms + limit_ms / 50 + 10) {
      verdict_.broken("nothing outlives its time when all clients are gone",
                      key + ", " + std::to_string(gone_ms) + " ms after");
    }
  }
}

// ---- clients and faults ------------------------------------------------------------------------

void Rules::granted(const lock::Request &request, Nanos last_reply_at, Beliefs::Holder &holder) {
  const auto &lease = *request.lease;
  if (!holder.is_attached) holder.max_local_handoffs = request.options.max_local_handoffs;
  // The client may still know the clock as it was before the jump.
  holder.is_excused = last_reply_at - plan_.timeout < jumped_at_;
  told_[lease.token] = {schedule_.now(), lease.fence};  // fence 0 after an attach
  if (holder.is_attached) given_up_.erase(lease.token);
  const bool is_flight = !holder.is_attached && request.arguments;
  if (is_flight) jobs_.computes(std::string(kNamespace) + lease.name);
}

void Rules::landed(const lock::Request &request, Nanos began) {
  jobs_.landed(std::string(kNamespace) + request.name, *request.arguments->value, began);
}

void Rules::succeeded(const lock::Request &request) {
  if (request.task && request.task->is_election()) {
    elections_.observed(std::string(kNamespace) + request.task->name,
                        request.as<operate::Leader>());
  }
  if (request.op != lock::Request::Op::kUpgrade) return;
  told_[request.lease->token] = {schedule_.now(), request.lease->fence};
}

void Rules::take_by_force(const std::string &token) {
  stats_.hit(Fault::kForce);
  beliefs_.excuse(token);
}

// Nothing is promised to present holders, nor to those whose grant may still be on its way.
void Rules::excuse_holders() {
  beliefs_.excuse_all();
  for (const auto &[key, lock] : locks_) {
    if (!lock.holder.empty() && lock.holds.empty()) beliefs_.excuse(lock.holder);
    for (const auto &[token, end] : lock.holds) beliefs_.excuse(token);
  }
  for (const auto &[lock, recent] : recent_) {
    for (const auto &[token, granted_at] : recent) beliefs_.excuse(token);
  }
}

void Rules::forgets(size_t, Fault why) {
  if (why == Fault::kServerAmnesia) excuse_holders();
}

void Rules::stepped(size_t, Nanos by) {
  excuse_holders();
  if (by < 0) return clock_went_back();
  jumped_at_ = schedule_.now();
}

// After a step back, expired holds that were not yet removed are valid again.
void Rules::clock_went_back() {
  for (auto &[key, lock] : locks_) {
    const auto readers = readers_of_.find(key);
    if (readers == readers_of_.end()) continue;
    Lock is = lock_at(key, readers->second, server_->now_us() / 1000);
    if (is.holds.empty()) continue;
    lock.holder = std::move(is.holder);
    lock.holds = std::move(is.holds);
    lock.permits = std::move(is.permits);
    lock.has_permits = is.has_permits;
    lock.expires_ms = is.expires_ms;
  }
}

// ---- failovers ---------------------------------------------------------------------------------

// Fences rise from those that were given, unless the server's clock is behind by more than the time
// since the last grant. One that only a dead waiter was granted since then was given to no owner.
void Rules::follow(Server &server) {
  const Nanos behind = (server_->now_us() - server.now_us()) * 1000;
  server_ = &server;
  const int64_t now_ms = server.now_us() / 1000;
  for (auto &[key, lock] : locks_) {
    Lock is = lock_at(key, readers_of(key), now_ms);
    const bool can_rise = behind <= 0 || behind < schedule_.now() - lock.granted_at;
    if (can_rise) {
      is.last_fence = behind <= 0 ? lock.last_fence : lock.owner_fence;
    } else {
      beliefs_.forget_fence(key.substr(kNamespace.size()));
    }
    is.owner_fence = lock.owner_fence;
    is.granted_at = lock.granted_at;
    is.granted_fence = lock.granted_fence;
    lock = std::move(is);
  }
}

// Its fence and its leases go with it. The times of the keys may be those of another clock.
void Rules::move(Server &server, const Server *other) {
  server_ = &server;
  other_ = other;
  const int64_t now_ms = server.now_us() / 1000;
  for (auto &[key, lock] : locks_) {
    Lock is = lock_at(key, readers_of(key), now_ms);
    is.last_fence = lock.last_fence;
    is.owner_fence = lock.owner_fence;
    is.seen_fence = lock.seen_fence;
    is.granted_at = lock.granted_at;
    is.granted_fence = lock.granted_fence;
    is.last_expires_ms = is.expires_ms;
    lock = std::move(is);
  }
}

std::string_view Rules::readers_of(std::string_view lock) const {
  const auto found = readers_of_.find(lock);
  return found == readers_of_.end() ? std::string_view() : std::string_view(found->second);
}

Rules::Leases Rules::leases_at(const Store &store, std::string_view lock) const {
  Leases leases;
  const Store::Entry *entry = store.entry_at(lock);
  if (entry == nullptr) return leases;
  const auto *token = std::get_if<std::string>(&entry->data);
  if (token != nullptr && token->size() == kTokenSize) leases[*token] = entry->expires_ms;
  if (token != nullptr && is_alone(*token)) leases[alone_in(*token)] = entry->expires_ms;
  if (const auto *holds = store.value_at<Store::SortedSet>(readers_of(lock))) {
    for (const auto &[member, end] : holds->scores) {
      leases[member.substr(0, kTokenSize)] = static_cast<int64_t>(end);
    }
  }
  return leases;
}

bool Rules::is_held_by(std::string_view lock, const std::string &token) const {
  const Lock is = lock_at(lock, readers_of(lock), server_->now_us() / 1000);
  return is.holder == token || is.holds.contains(token);
}

std::optional<Rules::Asking> Rules::asked(Argv argv) {
  const Call call = read(argv);
  if (!call.is_acquire()) return std::nullopt;
  return Asking{call.token, call.member, call.ticket};
}

std::string_view Rules::released(Argv argv) {
  const Call call = read(argv);
  return call.script == protocol::Script::kRelease ? call.token : std::string_view();
}

std::string_view Rules::cancelled(Argv argv) {
  const Call call = read(argv);
  return call.script == protocol::Script::kCancel ? call.member : std::string_view();
}

// ---- in the long run ---------------------------------------------------------------------------

// True if a live, connected waiter could have the lock: any waiter if it is free, the head of the
// queue if it is shared.
bool Rules::is_waited_for(const Context &context, const std::string &lock) const {
  const int64_t now_ms = server_->now_us() / 1000;
  const auto *queue = queue_at(queue_of_.at(lock));
  if (queue == nullptr) return false;
  const auto readers = readers_of_.find(lock);
  const Lock is = lock_at(lock, readers == readers_of_.end() ? "" : readers->second, now_ms);
  const auto is_able = [&](const Slot &slot, std::string_view cid) {
    return slot.client && !slot.client->is_paused() && slot.client->hears(cid);
  };
  int passed_count = 0;
  for (const auto &[score, member] : queue->order) {
    if (is_overdue(member, score, now_ms)) continue;
    const auto cid = std::string_view(member).substr(0, kCidSize);
    if (is_passed_over(member, is) && ++passed_count < most_looked_at()) continue;
    const bool may_enter = can_have(member, is);
    const auto is_its = [&](const Slot &slot) { return is_able(slot, cid); };
    if (may_enter && std::any_of(context.slots.begin(), context.slots.end(), is_its)) return true;
    if (!is.holder.empty() || plan_.limit > 0) return false;
  }
  return false;
}

// Rule: a free lock finds its live waiter, by a poll at the latest.
void Rules::watch(const Context &context) {
  Nanos limit = kLongestPoll + 2 * plan_.timeout + 2 * kSecond;
  // Nothing else fails there, so a waiter is notified when the dead one's provisional lease ends.
  if (plan_.kills_newcomers()) limit = 2 * kSecond;
  const bool is_checked = context.is_calm || plan_.kills_newcomers() || plan_.kills_crowds();
  for (const auto &[lock, queue_key] : queue_of_) {
    Nanos &since = locks_[lock].idle_since;
    if (!is_waited_for(context, lock)) {
      since = -1;
      continue;
    }
    if (since < 0) since = schedule_.now();
    const Nanos idle = schedule_.now() - std::max(since, context.calm_since);
    // The client that goes through the dead waiters may have died with them; then a poll finds the
    // lock.
    const bool has_died = since - kWatchInterval <= context.crowd_killed_at;
    const bool is_soon = plan_.kills_crowds() && !has_died;
    if (!is_checked || idle <= (is_soon ? kWatchInterval : limit)) continue;
    const auto *queue = queue_at(queue_key);
    verdict_.broken("a free lock finds its waiter",
                    lock + ": free for " + std::to_string(idle / kMs) + " ms with " +
                        std::to_string(queue->order.size()) + " waiters");
  }
}

void Rules::dequeued(std::string_view key, std::string_view member, double score) {
  if (!key.ends_with('q')) return;
  gone_.push_back({std::string(key), std::string(member), score});
}

void Rules::forgotten() {
  jobs_.forget();
  elections_.forget();
  for (auto &[key, lock] : locks_) {
    lock.holder.clear();
    lock.holds.clear();
    lock.expires_ms = -1;
  }
}

}  // namespace redlatch::sim
