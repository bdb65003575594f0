// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Rules: those for locks with several holds at once, of readers or of one owner. Each hold has a
// token and an end of its own.
#include <algorithm>

#include "rules.h"

namespace redlatch::sim {

namespace {

char mode_of(std::string_view member) { return member[kTokenSize]; }

std::string_view claim_of(std::string_view member) { return member.substr(protocol::kMemberSize); }

// How many permits may be out with those of this claim.
int64_t most_of(std::string_view claim, int64_t cap) {
  const int64_t limit = protocol::limit_in(claim);
  return cap < 0 ? limit : std::min(limit, cap);
}

std::string owner_of(std::string_view member) {
  const std::string_view owner = member.substr(protocol::kMemberSize);
  return std::string(owner.empty() ? member.substr(0, kTokenSize) : owner);
}

}  // namespace

// Token to end, for all holders of any kind.
Rules::Ends Rules::ends_of(const Lock &lock) {
  const bool is_ours = lock.is_hash && !lock.is_foreign;
  if (!lock.holds.empty() || lock.holder.empty() || is_ours || lock.holder == kShared) {
    return lock.holds;
  }
  return {{lock.holder, lock.expires_ms}};
}

void Rules::check_sharing(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  check_scenario(call, was, is, now_ms);
  const Ends before = ends_of(was), after = ends_of(is);
  for (const auto &[token, end] : before) {
    if (end <= now_ms) continue;
    const auto found = after.find(token);
    if (found == after.end()) {
      check_ended(call, token, is);
    } else {
      check_changed(call, token, end, found->second, now_ms);
    }
  }
  for (const auto &[token, end] : after) {
    const auto found = before.find(token);
    if (found == before.end() || found->second < now_ms) {
      check_new(call, token, end, was, is, now_ms);
    }
  }
  const bool is_writer_now = !is.is_hash && is.holds.empty() && was.holds.contains(is.holder);
  if (is_writer_now) check_grant(call, is.holder, was, is, now_ms);
  const bool is_reader_now = !is.is_hash && was.holds.empty() && is.holds.contains(was.holder);
  if (is_reader_now && (call.script != protocol::Script::kDowngrade || call.token != was.holder)) {
    verdict_.broken("only a writer makes itself a reader",
                    std::string(call.lock) + ": " + was.holder);
  }
}

// Rules for the lock's key: it agrees with the holds.
void Rules::check_scenario(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  const std::string lock(call.lock);
  if (!is.hold_owners.empty() && !is.holds.empty()) {
    verdict_.broken("an owner has its lock alone",
                    lock + ": " + is.holder + " and " + is.hold_owners);
  }
  // While a slot moves, a reader extends the lock's key alone, and may end before it extends the
  // other one.
  const bool may_outlive = plan_.is_cluster();
  if (is.holder == kShared && is.holds.empty() && is.expires_ms > now_ms && !may_outlive) {
    return verdict_.broken("what is shared has a holder", lock);
  }
  if (is.holds.empty()) return;
  int64_t latest = 0;
  for (const auto &[token, end] : is.holds) latest = std::max(latest, end);
  // On a cluster the times of the two keys may be moved to another clock in two ways, several times
  // in the course of a lease; and the readers' key may be extended alone, after the lock's key. The
  // lease ends with the first of the two.
  const Nanos apart = schedule_.now() < apart_until_ ? 2 * plan_.timeout : 0;
  const int64_t slack_ms = plan_.is_cluster() ? (20 * plan_.clock_offset_max + apart) / kMs + 2 : 0;
  const bool may_be_later = plan_.is_cluster();
  if (is.expires_ms < latest - slack_ms || (is.expires_ms > latest && !may_be_later)) {
    verdict_.broken("what is shared ends with its last holder",
                    lock + ": " + std::to_string(is.expires_ms - latest) + " ms after");
  }
  // A hold that expires leaves the count unchanged until another one begins or is released.
  const bool is_counted = std::any_of(is.holds.begin(), is.holds.end(), [&](const auto &hold) {
    return !was.holds.contains(hold.first);
  });
  const auto given_up = was.holds.find(std::string(call.token));
  const bool is_released = call.script == protocol::Script::kRelease &&
                           given_up != was.holds.end() && given_up->second > now_ms &&
                           !is.holds.contains(given_up->first);
  if (is.is_hash && (is_counted || is_released) &&
      is.count != static_cast<int64_t>(is.holds.size())) {
    verdict_.broken("the count is that of the holds", lock + ": " + std::to_string(is.count) +
                                                          " of " + std::to_string(is.holds.size()));
  }
}

void Rules::check_ended(const Call &call, const std::string &token, const Lock &is) {
  const bool is_forced = call.script == protocol::Script::kForceRelease;
  if (is_forced && (call.token.empty() || call.token == token)) {
    return take_by_force(token);
  }
  const bool is_given_up = call.script == protocol::Script::kRelease || call.is_foreign_delete;
  if (is_given_up && call.token == token) return;
  verdict_.broken("a hold ends with its lease, its release or by force",
                  std::string(call.lock) + ": " + token + " -> " + is.holder + " by '" +
                      std::string(call.token) + "'");
}

void Rules::check_changed(const Call &call, const std::string &token, int64_t before, int64_t after,
                          int64_t now_ms) {
  const std::string how = std::string(call.lock) + ": " + token;
  if (after < before) {
    return verdict_.broken("a lease is never cut short",
                           how + " by " + std::to_string(before - after) + " ms");
  }
  if (after == before) return;
  const int64_t granted = granted_ms(call, token);
  if (call.token != token && granted == 0) {
    return verdict_.broken("only its owner extends a lease", how);
  }
  const int64_t asked = std::max(granted, call.token == token ? call.ttl_ms : 0);
  if (after > now_ms + asked) verdict_.broken("a lease is as long as was asked for", how);
}

void Rules::check_new(const Call &call, const std::string &token, int64_t end, const Lock &was,
                      const Lock &is, int64_t now_ms) {
  if (!call.script) return;
  const std::string how = std::string(call.lock) + ": " + token;
  const bool is_extension = call.script == protocol::Script::kExtend ||
                            call.script == protocol::Script::kExtendShared ||
                            call.script == protocol::Script::kDowngrade;
  if (is_extension && call.token == token) {
    return verdict_.broken("what is gone is not brought back", how);
  }
  const auto asked = asked_for_.find(token);
  if (asked == asked_for_.end() || asked->second != call.lock) {
    return verdict_.broken("who holds has asked for this lock", how);
  }
  if (end > now_ms + granted_ms(call, token)) {
    verdict_.broken("a lease is as long as was asked for",
                    how + ": " + std::to_string(end - now_ms) + " ms, asked for " +
                        std::to_string(granted_ms(call, token)) + " ms");
  }
  check_grant(call, token, was, is, now_ms);
}

// Rules for replies: they agree with the keys.
void Rules::check_answer(const Call &call, const Lock &was, const Lock &is, const Value &reply,
                         int64_t now_ms) {
  if (!call.script || reply.items.empty()) return;
  const std::string how = std::string(call.lock) + ": " + std::string(call.token);
  const int64_t result = reply.items[0].integer;
  const bool is_upgrade = call.script == protocol::Script::kUpgrade;
  const bool is_denied = is_upgrade
                             ? result == -1
                             : result == 0 && (call.script == protocol::Script::kExtendShared ||
                                               call.script == protocol::Script::kDowngrade);
  const auto held = was.holds.find(std::string(call.token));
  if (is_denied && held != was.holds.end() && held->second > now_ms) {
    verdict_.broken("who holds is not told otherwise", how);
  }
  if (is.is_hash && call.script == protocol::Script::kAcquire && result == 1 &&
      (reply.items.size() != 4 ||
       reply.items[3].integer != static_cast<int64_t>(is.holds.size()))) {
    verdict_.broken("who is granted is told how often its owner holds", how);
  }
  if (call.script == protocol::Script::kCancel && mode_of(call.member) == 'u' && result == 2) {
    descents_[std::string(call.token)] = 0;
  }
  if (!is_upgrade || result != -2) return;
  const auto *queue = queue_at(call.queue);
  const bool is_so =
      queue != nullptr &&
      std::any_of(queue->order.begin(), queue->order.end(), [&](const auto &entry) {
        const std::string other = entry.second.substr(0, kTokenSize);
        return mode_of(entry.second) == 'u' && other != call.token && is.holds.contains(other);
      });
  if (!is_so) verdict_.broken("only another reader that waits makes a deadlock", how);
}

// Rule: a release, a downgrade or a forced release grants the lock at once to the first live waiter
// that can have it.
void Rules::check_served(const Call &call, const Lock &is, const Value &reply, int64_t now_ms) {
  const bool serves =
      call.script == protocol::Script::kRelease || call.script == protocol::Script::kSetCap ||
      call.script == protocol::Script::kDowngrade || call.script == protocol::Script::kForceRelease;
  // The third item is a flag: the script reached its cap, and the client has to call it again.
  if (!serves || reply.items.size() != 3 || reply.items[2].integer != 0) return;
  // A call that gave nothing up serves no waiter. RELEASE returns 0 if the owner has other holds.
  if (reply.items[0].integer < (call.script == protocol::Script::kRelease ? 0 : 1)) return;
  const auto *queue = queue_at(call.queue);
  const bool is_left_to_others = turn_at(call.turn, now_ms).is_window;
  if (queue == nullptr || is_left_to_others || (!is.holder.empty() && is.holds.empty())) return;
  int passed_count = 0;
  for (const auto &[score, member] : queue->order) {
    if (is_passed_over(member, is) && ++passed_count >= most_looked_at()) return;
    if (is_overdue(member, score, now_ms) || is_dead(member) || is_for_nothing(member, is, is) ||
        is_passed_over(member, is)) {
      continue;
    }
    if (can_have(member, is)) {
      verdict_.broken("who can have the lock is let in at once",
                      std::string(call.lock) + ": " + member);
    }
    return;
  }
}

// The only holder of permits is in the key, and has lost what is in R.
void Rules::read_alone(Lock &is, int64_t now_ms) {
  const std::string token = alone_in(is.holder);
  is.sum = is.used;
  is.holder.clear();
  if (is.expires_ms <= now_ms) return;
  is.holder = kShared;
  is.permits.emplace(token, is.used);
  is.holds.emplace(token, is.expires_ms);
}

void Rules::read_cap(std::string_view lock, Lock &is, int64_t now_ms) const {
  const auto key = cap_of_.find(lock);
  const Store::Entry *entry = key == cap_of_.end() ? nullptr : entry_at(key->second);
  if (entry == nullptr || !is_there(*entry, now_ms)) return;
  const auto *text = std::get_if<std::string>(&entry->data);
  if (text != nullptr) is.cap = integer_of(text->substr(0, text->find('t')));
}

int64_t Rules::Lock::out() const {
  int64_t live = 0;
  for (const auto &[token, end] : holds) live += permits.at(token);
  return live;
}

// A waiter that wants more than the cap waits, and those behind it are served.
bool Rules::is_passed_over(std::string_view member, const Lock &is) {
  return is.cap > 0 && member.size() > protocol::kMemberSize &&
         protocol::permits_in(claim_of(member)) > is.cap;
}

// Rules for permits: the limit of each grant and the cap hold for all that are out with it; the
// number in the key is theirs.
void Rules::check_permits(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  const std::string lock(call.lock);
  // In its last millisecond the key still exists, and nobody holds.
  if (call.script && is.has_permits && !is.holder.empty() && is.sum != is.used) {
    verdict_.broken("the number in the key is that of the permits",
                    lock + ": " + std::to_string(is.used) + " of " + std::to_string(is.sum));
  }
  // Those that stay are out already; the others follow in the order in which they left the queue.
  int64_t out = 0;
  const auto was_out = [&](const std::string &token) {
    const auto found = was.holds.find(token);
    return found != was.holds.end() && found->second > now_ms;
  };
  for (const auto &[token, end] : is.holds) out += was_out(token) ? is.permits.at(token) : 0;
  const auto grant = [&](std::string_view token, std::string_view claim) {
    const auto found = is.permits.find(std::string(token));
    if (found == is.permits.end() || was_out(found->first)) return;
    if (found->second != protocol::permits_in(claim)) {
      verdict_.broken("who is granted gets the permits that it asked for",
                      lock + ": " + found->first);
    }
    out += found->second;
    if (out > most_of(claim, is.cap)) {
      verdict_.broken("no more permits are out than the limit and the cap allow",
                      lock + ": " + std::to_string(out) + " with " + std::string(claim) + ", cap " +
                          std::to_string(is.cap));
    }
  };
  std::set<std::string_view> done;
  for (const Gone &gone : gone_) {
    if (gone.key != call.queue || gone.member.size() <= protocol::kMemberSize) continue;
    const std::string_view token = std::string_view(gone.member).substr(0, kTokenSize);
    if (done.insert(token).second) grant(token, claim_of(gone.member));
  }
  if (!call.claim.empty() && !done.contains(call.token)) grant(call.token, call.claim);
}

// Rule: a client whose cancelled upgrade was granted after all becomes a reader again. One renewal
// may cross the reply, and if that is lost, the next connection begins with another renewal.
void Rules::check_downgrade(int client, const Call &call) {
  const auto found = descents_.find(call.token);
  if (found == descents_.end()) return;
  if (call.script != protocol::Script::kExtendShared) {
    descents_.erase(found);
  } else if (++found->second > 2) {
    verdict_.broken("who took an upgrade back does not keep it",
                    "client " + std::to_string(client) + ", token " + std::string(call.token));
  }
}

// True if this is the place of a waiting upgrade whose read hold has ended.
bool Rules::is_for_nothing(std::string_view member, const Lock &was, const Lock &is) const {
  if (mode_of(member) != 'u') return false;
  const std::string token(member.substr(0, kTokenSize));
  return !was.holds.contains(token) || !is.holds.contains(token);
}

// Permits, in a plan of semaphores.
bool Rules::can_have(std::string_view member, const Lock &is) const {
  return plan_.limit > 0 ? can_enter(member, is) : is.holder.empty() || can_enter(member, is);
}

// True if the head of the queue can have the lock together with its holders.
bool Rules::can_enter(std::string_view member, const Lock &is) const {
  if (plan_.limit > 0) {
    const bool is_of_permits = is.holder.empty() || is.has_permits;
    return is_of_permits &&
           is.out() + protocol::permits_in(claim_of(member)) <= most_of(claim_of(member), is.cap);
  }
  if (is.holds.empty()) return false;
  if (is.is_hash) return owner_of(member) == is.holder;
  const bool is_sole =
      is.holds.size() == 1 && is.holds.contains(std::string(member.substr(0, kTokenSize)));
  return mode_of(member) == 's' || (mode_of(member) == 'u' && is_sole);
}

}  // namespace redlatch::sim
