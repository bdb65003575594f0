// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "beliefs.h"

#include <algorithm>
#include <utility>

#include "checker.h"

namespace redlatch::sim {

namespace {

std::string shown(const Beliefs::Holder &holder) {
  return holder.client < 0 ? "another library's client " + std::to_string(-holder.client)
                           : "client " + std::to_string(holder.client) + " (fence " +
                                 std::to_string(holder.fence()) + ", token " + holder.token + ")";
}

// True if both may hold a lock at once: two readers, or two holds of one owner.
bool may_share(const Beliefs::Holder &a, const Beliefs::Holder &b) {
  if (!a.lease || !b.lease) return false;
  if (a.permits > 0 && b.permits > 0) return true;  // check_permits() counts them
  const bool both_read = a.mode == protocol::Mode::kRead && b.mode == protocol::Mode::kRead;
  return both_read || (!a.owner.empty() && a.owner == b.owner);
}

}  // namespace

bool Beliefs::is_held(const Belief &belief) const {
  const Nanos now = belief.holder.clock->read(schedule_.now());
  if (!belief.holder.lease) return now < belief.holder.deadline;
  return belief.holder.lease->state_at(now) == lock::Lease::kHeld;
}

void Beliefs::look() {
  for (auto &[name, entry] : names_) {
    for (Belief &belief : entry.beliefs) belief.is_over = belief.is_over || !is_held(belief);
  }
}

void Beliefs::check() {
  for (auto &[name, entry] : names_) {
    check(name, entry);
    check_permits(name, entry);
  }
}

// With callers of several limits the largest one counts: the server judges each grant by its own.
void Beliefs::check_permits(const std::string &name, const Name &entry) {
  int out = 0, limit = 0;
  for (const Belief &belief : entry.beliefs) {
    const Holder &holder = belief.holder;
    if (holder.is_excused || checker_->is_let_off(name, holder) || !is_held(belief)) continue;
    out += holder.permits;
    limit = std::max(limit, holder.limit);
  }
  if (out > limit) {
    verdict_.broken("no more permits are believed than the limit",
                    name + ": " + std::to_string(out) + " of " + std::to_string(limit));
  }
}

void Beliefs::check(const std::string &name, Name &entry) {
  const Belief *first = nullptr;  // the last holder to which exclusion is promised
  for (auto at = entry.beliefs.begin(); at != entry.beliefs.end();) {
    Belief &belief = *at;
    if (!is_held(belief)) {
      // A defect may still prolong a lease that has ended by the clock: it stays until its state
      // says that it has ended.
      const bool is_told =
          !belief.holder.lease || belief.holder.lease->state.load() != lock::Lease::kHeld;
      at = is_told ? entry.beliefs.erase(at) : std::next(at);
      continue;
    }
    if (belief.holder.clock->read(schedule_.now()) > belief.holder.end) {
      verdict_.broken("nobody holds longer than the longest hold",
                      name + ": " + shown(belief.holder));
    }
    if (belief.is_over) {
      verdict_.broken("a lost lease never comes back", name + ": " + shown(belief.holder));
    }
    const bool is_alone = first == nullptr || may_share(first->holder, belief.holder);
    if (!is_alone && !belief.holder.is_excused && !checker_->is_let_off(name, first->holder) &&
        !checker_->is_let_off(name, belief.holder)) {
      verdict_.broken("two never believe at once",
                      name + ": " + shown(first->holder) + " and " + shown(belief.holder));
    }
    if (!belief.holder.is_excused) first = &belief;
    ++at;
  }
}

void Beliefs::begin(const std::string &name, Holder holder) {
  Name &entry = names_[name];
  if (excused_.contains(holder.token)) holder.is_excused = true;
  if (holder.is_excused) excused_.insert(holder.token);  // also for later local hand-offs
  if (holder.lease) {
    stats_.grants++;
    check_fence(name, entry, holder);
    // Not passed on: a lease that was attached, or not detached after all; a lock that nobody had.
    const int passed = holder.is_attached || holder.is_retained ? 0 : 1;
    entry.pass_count = entry.last_token == holder.token ? entry.pass_count + passed : 0;
    entry.last_token = holder.token;
    if (holder.max_local_handoffs >= 0 && entry.pass_count > holder.max_local_handoffs) {
      verdict_.broken("a lock is passed on no more often than allowed",
                      name + ": " + shown(holder));
    }
    trace_.mix(static_cast<uint64_t>(holder.fence()));
    trace_.say(schedule_.now(), "%s: %s holds", name.c_str(), shown(holder).c_str());
  }
  entry.beliefs.push_back({std::move(holder), false});
}

// Readers may have the same fence, and so may all holds of an owner.
void Beliefs::check_fence(const std::string &name, Name &entry, const Holder &holder) {
  if (!holder.has_fence) return;
  const int64_t fence = holder.fence();
  if (holder.permits > 0) {
    const auto is_same = [&](const Belief &other) {
      return other.holder.lease && !other.holder.is_attached &&
             other.holder.token != holder.token && other.holder.fence() == fence;
    };
    const bool is_checked = !holder.is_attached && !holder.is_excused;
    if (is_checked && std::any_of(entry.beliefs.begin(), entry.beliefs.end(), is_same)) {
      verdict_.broken("each grant of permits has a fence of its own", name + ": " + shown(holder));
    }
    return;
  }
  if (holder.is_excused && checker_->is_fence_apart(holder.token)) return;
  if (const auto found = forged_.find(holder.token); found != forged_.end()) {
    if (fence > found->second.highest_fence) {
      verdict_.broken("no fence is believed that cannot have been minted",
                      name + ": " + shown(holder));
    }
    return;
  }
  const bool was_let_off =
      std::exchange(entry.is_fence_let_off, checker_->is_let_off(name, holder));
  const bool may_be_same = holder.mode == protocol::Mode::kRead ||
                           (!holder.owner.empty() && holder.owner == entry.last_owner);
  const bool is_checked =
      !holder.is_attached && !holder.is_excused && !was_let_off && !entry.is_fence_let_off;
  if (is_checked && (may_be_same ? fence < entry.last_fence : fence <= entry.last_fence)) {
    verdict_.broken("fences rise",
                    name + ": " + shown(holder) + " after " + std::to_string(entry.last_fence));
  }
  if (fence < entry.last_fence) return;
  entry.last_fence = fence;
  entry.last_owner = holder.owner;
}

void Beliefs::change(const lock::Lease &lease, protocol::Mode mode) {
  const auto found = names_.find(lease.name);
  if (found == names_.end()) return;
  for (Belief &belief : found->second.beliefs) {
    if (belief.holder.lease.get() != &lease || belief.holder.mode == mode) continue;
    belief.holder.mode = mode;
    trace_.say(schedule_.now(), "%s: %s %s", lease.name.c_str(), shown(belief.holder).c_str(),
               mode == protocol::Mode::kRead ? "reads" : "writes");
    if (mode == protocol::Mode::kWrite) check_fence(found->first, found->second, belief.holder);
  }
}

bool Beliefs::is_known(const lock::Lease &lease) const {
  const auto found = names_.find(lease.name);
  return found != names_.end() &&
         std::any_of(found->second.beliefs.begin(), found->second.beliefs.end(),
                     [&](const Belief &belief) { return belief.holder.lease.get() == &lease; });
}

void Beliefs::end(const lock::Lease &lease) {
  for (auto &[name, entry] : names_) {
    if (name != lease.name && !lease.is_composite()) continue;
    std::erase_if(entry.beliefs,
                  [&](const Belief &belief) { return belief.holder.lease.get() == &lease; });
  }
}

void Beliefs::end_foreign(const std::string &name, int client) {
  std::erase_if(names_[name].beliefs,
                [&](const Belief &belief) { return belief.holder.client == client; });
}

void Beliefs::client_died(int client) {
  for (auto &[name, entry] : names_) {
    std::erase_if(entry.beliefs,
                  [&](const Belief &belief) { return belief.holder.client == client; });
  }
}

void Beliefs::excuse_all() {
  excused_all_at_ = schedule_.now();
  for (auto &[name, entry] : names_) {
    for (Belief &belief : entry.beliefs) belief.holder.is_excused = true;
  }
}

void Beliefs::excuse(const std::string &token) {
  excused_.insert(token);
  for (auto &[name, entry] : names_) {
    for (Belief &belief : entry.beliefs) {
      if (belief.holder.token == token) belief.holder.is_excused = true;
    }
  }
}

void Beliefs::forged(const std::string &token, Nanos until, int64_t highest_fence) {
  forged_[token] = {until, highest_fence};
  excuse(token);
  schedule_.at(until, [this, token, until] {
    if (forged_[token].until != until) return;  // a later forged grant replaced it
    for (const auto &[name, entry] : names_) {
      for (const Belief &belief : entry.beliefs) {
        const bool is_true = belief.holder.token != token || !is_held(belief);
        if (is_true || checker_->was_granted(token)) continue;
        verdict_.broken("a forged grant is believed for a provisional lease at most",
                        name + ": " + shown(belief.holder));
      }
    }
  });
}

void Beliefs::for_each(
    const std::function<void(const std::string &name, const Holder &holder)> &visit) const {
  for (const auto &[name, entry] : names_) {
    for (const Belief &belief : entry.beliefs) visit(name, belief.holder);
  }
}

size_t Beliefs::count() const {
  size_t count = 0;
  for (const auto &[name, entry] : names_) count += entry.beliefs.size();
  return count;
}

}  // namespace redlatch::sim
