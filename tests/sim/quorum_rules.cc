// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "quorum_rules.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "caller.h"
#include "protocol/scripts.h"

namespace redlatch::sim {

namespace {

// After a clock step a client may date a pushed grant by the old clock until it gets a reply from
// that node: the longest time between two polls, and a round trip.
constexpr Nanos kUnheard = 25'000 * kMs;
// A vote may be held for a second while the client queues; a release without a reply is repeated
// after a second.
constexpr Nanos kStrayLimit = 6'000 * kMs;
// A holder asks for a missing vote three times in a lease: what a reply may add to that.
constexpr Nanos kAskLimit = 500 * kMs;
constexpr Nanos kMoment = 50 * kMs;
// A free lock with a waiter is acquired within this time.
constexpr Nanos kIdleLimit = 5 * kSecond;
// A process that runs reports the end of a lease within this time.
constexpr Nanos kLossLimit = 50 * kMs;

std::string_view token_of_acquire(Argv argv) {
  if (argv.size() < 3 || !argv[0].starts_with("EVAL")) return {};
  bool is_acquire = false;
  for (const bool is_sharded : {false, true}) {
    for (const auto script : {protocol::Script::kAcquire, protocol::Script::kVote}) {
      const auto &text = protocol::script_text(script, protocol::Format::kString, is_sharded);
      is_acquire = is_acquire || argv[1] == text.sha1 || argv[1] == text.text();
    }
  }
  const auto keys = static_cast<size_t>(integer_of(argv[2]));
  return is_acquire && argv.size() > 3 + keys ? argv[3 + keys] : std::string_view();
}

}  // namespace

std::string QuorumRules::id_of(std::string_view token, std::string_view lock) const {
  return std::string(client_of(token.substr(0, kCidSize))).append(lock);
}

// The first cid of the client, which has another one for each node whose channel was changed.
std::string_view QuorumRules::client_of(std::string_view cid) const {
  const auto found = first_cids_.find(cid);
  return found == first_cids_.end() ? cid : std::string_view(found->second);
}

void QuorumRules::changed_channel(std::string_view old, std::string_view other) {
  const std::string_view cid = old.substr(old.size() - kCidSize);
  first_cids_.emplace(other.substr(other.size() - kCidSize), client_of(cid));
}

QuorumRules::QuorumRules(const RuleParts &parts,
                         const std::vector<std::unique_ptr<Server>> &servers)
    : RuleParts(parts) {
  for (const auto &server : servers) {
    nodes_.push_back(std::make_unique<Node>(*this, nodes_.size(), *server));
    Node &node = *nodes_.back();
    if (node.is_checked) server->add_witness(node.rules);
    server->add_witness(node);
  }
}

void QuorumRules::Node::after(Argv argv, const Value &, int64_t) {
  if (argv.size() > 3 && argv[0].starts_with("EVAL")) all.note(*this, argv[3], argv);
}

void QuorumRules::told(const std::string &token) {
  for (const auto &node : nodes_) {
    if (node->is_checked) node->rules.told(token);
  }
}

void QuorumRules::given_up(const std::string &token) {
  renewed_.erase(token);
  left_[token] = schedule_.now();
  for (const auto &node : nodes_) {
    if (node->is_checked) node->rules.given_up(token);
  }
}

// Note the value of a lock's key after a command.
void QuorumRules::note(Node &node, std::string_view lock, Argv argv) {
  const auto *value = node.server.store().value_at<std::string>(lock);
  const bool is_held = value != nullptr && value->size() == kTokenSize;
  const std::string_view token = is_held ? std::string_view(*value) : std::string_view();
  std::string &was = node.holders[std::string(lock)];
  if (was != token && !was.empty()) {
    Vote &old = votes_[id_of(was, lock)][node.index];
    // The vote was given back, and no longer counts.
    if (old.token == was && !old.is_forgotten) old.end = 0;
  }
  const bool is_new = was != token;
  if (is_new) note_holding(node, lock, !was.empty());
  was = token;
  if (!is_held) return;
  Vote &vote = votes_[id_of(token, lock)][node.index];
  const Nanos end =
      node.server.clock().when((node.server.store().entry_at(lock)->expires_ms + 1) * kMs);
  if (is_new) {
    // With several callers, another one of this client may still rely on the lost vote.
    const bool is_alone = plan_.caller_count == 1;
    if (is_alone && vote.believed_until == kNever) vote.believed_until = 0;
    const bool is_other_left = vote.is_forgotten && vote.end > schedule_.now();
    if (!is_other_left) vote.end = 0;
    vote.is_forgotten = is_other_left;
    vote.token = token;
    vote.since = schedule_.now();
  }
  const bool may_be_others = plan_.caller_count > 1 && vote.believed_until > schedule_.now();
  Nanos &counted = may_be_others ? vote.believed_until : vote.end;
  counted = std::max(counted, end);
  const bool is_pushed =
      is_new && argv.size() > 4 && std::find(argv.begin() + 4, argv.end(), token) == argv.end();
  if (is_pushed && schedule_.now() - node.stepped_at < kUnheard) {
    vote.end = 0;
    vote.believed_until = kNever;
  }
}

Nanos QuorumRules::end_of(const std::string &name, const std::string &token,
                          bool with_unpromised) const {
  const auto found = votes_.find(id_of(token, std::string(kNamespace) + name));
  if (found == votes_.end()) return 0;
  std::array<Nanos, kMaxNodes> ends{};
  for (size_t i = 0; i < nodes_.size(); i++) {
    const Vote &vote = found->second[i];
    ends[i] = with_unpromised ? std::max(vote.end, vote.believed_until) : vote.end;
  }
  std::sort(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(nodes_.size()), std::greater<>());
  return ends[nodes_.size() / 2];
}

void QuorumRules::sent(size_t node, int client, Argv argv) {
  Node &asked = *nodes_[node];
  if (asked.is_checked) asked.rules.sent(node, client, argv);
  const auto token = token_of_acquire(argv);
  if (token.empty()) return;
  const auto guard = asked.guarded_until.find(client_of(token.substr(0, kCidSize)));
  if (guard == asked.guarded_until.end() || schedule_.now() >= guard->second) return;
  verdict_.broken("a node that has restarted is not asked before its guard is over",
                  "node " + std::to_string(node) + ": client " + std::to_string(client));
}

void QuorumRules::learnt_of_restart(size_t node, std::string_view channel) {
  if (plan_.guard != Plan::Guard::kOn) return;
  const std::string_view cid = client_of(channel.substr(channel.size() - kCidSize));
  // The client measures the guard by its own clock, which may be fast.
  nodes_[node]->guarded_until[std::string(cid)] =
      schedule_.now() + plan_.restart_guard - plan_.restart_guard / 50;
  for (auto at = votes_.lower_bound(cid); at != votes_.end() && at->first.starts_with(cid); ++at) {
    at->second[node].end = 0;
    at->second[node].believed_until = 0;
  }
}

void QuorumRules::granted(const lock::Request &request, Nanos, Beliefs::Holder &holder) {
  holder.has_fence = plan_.is_fenced;
  const auto &options = request.options;
  const Nanos left = holder.lease->deadline.load() - holder.clock->read(schedule_.now());
  if (options.max_hold == 0 && left <= plan_.min_validity) {
    verdict_.broken("a lease is long enough when it is granted", request.lease->name);
  }
  // With max_hold a lease is not renewed up to its end.
  if (options.is_renewed && options.max_hold == 0) renewed_[holder.token] = schedule_.now();
}

void QuorumRules::succeeded(const lock::Request &request) {
  // With several callers, another one of this client may hold the lock by now.
  const bool is_free = request.op == lock::Request::Op::kRelease && plan_.caller_count == 1;
  if (is_free) check_release(*request.lease);
}

void QuorumRules::check_client(int client) {
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
    if (holder.client == client) check_validity(name, holder);
  });
}

// Rule: after RL_OK a majority is free. Votes that this very release hands to an older request of
// the same client do not count.
void QuorumRules::check_release(const lock::Lease &lease) {
  const auto found = votes_.find(id_of(lease.token, std::string(kNamespace) + lease.name));
  const auto left = left_.find(lease.token);
  if (found == votes_.end() || left == left_.end()) return;
  const auto count = std::count_if(
      found->second.begin(), found->second.end(),
      [&](const Vote &vote) { return vote.end > schedule_.now() && vote.since < left->second; });
  if (static_cast<size_t>(count) <= nodes_.size() / 2) return;
  verdict_.broken("what was released is free", lease.name + ": " + lease.token);
}

void QuorumRules::check_validity(const std::string &name, const Beliefs::Holder &holder) {
  const Nanos deadline = holder.lease->deadline.load();
  if (holder.clock->read(schedule_.now()) >= deadline) return;
  const Nanos end = end_of(name, holder.token, true);
  const Nanos until = holder.clock->when(deadline);
  if (until <= end) return;
  verdict_.broken("nobody believes for longer than a majority does",
                  name + ": client " + std::to_string(holder.client) + ", token " + holder.token +
                      ", for " + std::to_string((until - schedule_.now()) / kMs) +
                      " ms, a majority for " +
                      std::to_string(std::max<Nanos>(end - schedule_.now(), 0) / kMs));
}

bool QuorumRules::is_let_off(const std::string &name, const Beliefs::Holder &holder) const {
  return end_of(name, holder.token, false) <= schedule_.now();
}

void QuorumRules::lose(Vote &vote) {
  vote.believed_until = std::max(vote.believed_until, std::exchange(vote.end, 0));
}

void QuorumRules::forget(size_t node, bool is_promised, std::string_view lock) {
  for (auto &[id, votes] : votes_) {
    Vote &vote = votes[node];
    const bool is_meant = lock.empty() || std::string_view(id).substr(kCidSize) == lock;
    if (vote.end <= schedule_.now() || !is_meant) continue;
    if (is_promised) {
      vote.is_forgotten = true;
    } else {
      lose(vote);
    }
  }
  for (auto &[held, token] : nodes_[node]->holders) {
    if (!lock.empty() && held != lock) continue;
    if (!token.empty()) note_holding(*nodes_[node], held, true);
    token.clear();
  }
}

std::vector<std::string> QuorumRules::held_at(size_t node) const {
  std::vector<std::string> locks;
  for (const auto &[lock, token] : nodes_[node]->holders) {
    if (!token.empty() && nodes_[node]->server.store().keys().contains(lock)) locks.push_back(lock);
  }
  return locks;
}

void QuorumRules::forgets(size_t node, Fault why) {
  forget(node, why != Fault::kForget && plan_.guard == Plan::Guard::kOn);
}

void QuorumRules::stepped(size_t node, Nanos by) {
  if (by < 0) {
    nodes_[node]->stepped_back -= by;
    return;
  }
  // A clock that is stepped forward ends keys early.
  for (auto &[id, votes] : votes_) {
    Vote &vote = votes[node];
    if (vote.end <= schedule_.now() || vote.is_forgotten) continue;
    lose(vote);
  }
  nodes_[node]->stepped_at = schedule_.now();
}

// A client in a round holds a node for a moment. Such a brief holder does not excuse a holder that
// does not ask for its missing vote.
void QuorumRules::note_holding(Node &node, std::string_view lock, bool was_held) {
  auto &holding = node.holdings[std::string(lock)];
  const bool was_brief = was_held && schedule_.now() - holding.since < kMoment;
  if (was_held && !was_brief) holding.free_since = schedule_.now();
  holding.since = schedule_.now();
}

void QuorumRules::check_missing(const std::string &name, const Beliefs::Holder &holder, size_t node,
                                Nanos since) {
  const auto granted = renewed_.find(holder.token);
  const std::string lock = std::string(kNamespace) + name;
  const bool is_there = nodes_[node]->server.store().keys().contains(lock);
  if (granted == renewed_.end() || is_there) return;
  std::string &last = nodes_[node]->holders[lock];
  if (!last.empty()) {  // the key has expired
    note_holding(*nodes_[node], lock, true);
    last.clear();
  }
  const Nanos begin = std::max({granted->second, nodes_[node]->holdings[lock].free_since, since});
  const Nanos missing = schedule_.now() - begin;
  if (missing <= plan_.lease_max + kAskLimit) return;
  verdict_.broken("a vote that is missing is asked for",
                  "node " + std::to_string(node) + ", " + name + ": client " +
                      std::to_string(holder.client) + ", for " + std::to_string(missing / kMs) +
                      " ms");
}

void QuorumRules::check_taken(const std::string &name, const Beliefs::Holder &holder, Nanos since) {
  const auto granted = renewed_.find(holder.token);
  const auto taken = taken_.find(std::string(kNamespace) + name);
  if (granted == renewed_.end() || taken == taken_.end()) return;
  const bool is_meant = granted->second < taken->second && taken->second >= since;
  const Nanos believed = schedule_.now() - taken->second;
  if (!is_meant || believed <= plan_.lease_max / 3 + kAskLimit) return;
  verdict_.broken("what was taken away everywhere is lost",
                  name + ": client " + std::to_string(holder.client) + " believes for " +
                      std::to_string(believed / kMs) + " ms");
}

void QuorumRules::check_strays(Nanos calm_since) {
  std::map<std::string, bool> believed;  // client and lock
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
    believed[id_of(holder.token, std::string(kNamespace) + name)] = true;
  });
  for (const auto &node : nodes_) {
    for (const auto &[lock, token] : node->holders) {
      auto &stray = node->strays[lock];
      const auto &keys = node->server.store().keys();
      const bool is_there = !token.empty() && keys.contains(lock) && node->server.is_up() &&
                            !believed.contains(id_of(token, lock));
      if (!is_there || stray.first != token) stray = {is_there ? token : "", schedule_.now()};
      if (!is_there) continue;
      const Nanos since = std::max(stray.second, calm_since);
      if (schedule_.now() - since > kStrayLimit + node->stepped_back) {
        verdict_.broken("a vote that nobody counts on is given back",
                        "node " + std::to_string(node->index) + ", " + lock + ": " + token +
                            ", for " + std::to_string((schedule_.now() - since) / kMs) + " ms");
      }
    }
  }
}

// ---- in the long run ---------------------------------------------------------------------------

void QuorumRules::watch(const Context &context) {
  check_losses(context);
  check_idle(context);
  if (!context.is_calm) return;
  check_strays(context.calm_since + plan_.lease_max);
  check_missing(context, context.calm_since + plan_.lease_max + plan_.restart_guard);
}

void QuorumRules::check_losses(const Context &context) {
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
    const Nanos now = schedule_.now();
    const auto &client = context.slots[static_cast<size_t>(holder.client)].client;
    if (!client || now < client->paused_until() + kLossLimit) return;
    const Nanos late = holder.clock->read(now) - holder.lease->deadline.load();
    if (late > kLossLimit) {
      verdict_.broken("a loss is told in time", name + ": client " + std::to_string(holder.client) +
                                                    ", " + std::to_string(late / kMs) + " ms late");
    }
  });
}

// Rule: a holder asks for its missing votes where no other client has them.
void QuorumRules::check_missing(const Context &context, Nanos since) {
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
    const auto &client = context.slots[static_cast<size_t>(holder.client)].client;
    if (!client || client->is_paused() || schedule_.now() < since) return;
    check_taken(name, holder, since);
    for (const auto &node : nodes_) {
      const auto &stepped = context.stepped;
      const bool is_stepped =
          std::find(stepped.begin(), stepped.end(), node->index) != stepped.end();
      const bool has_clock =
          !node->server.has_restarted() &&
          !(is_stepped && (plan_.has(Fault::kClockBack) || plan_.has(Fault::kClockForward)));
      const bool may_vote = plan_.guard != Plan::Guard::kOn || has_clock;
      if (may_vote && node->server.is_up()) check_missing(name, holder, node->index, since);
    }
  });
}

// Rule: a free lock with a waiter is acquired, whatever other clients do.
void QuorumRules::check_idle(const Context &context) {
  std::map<std::string, bool> had;
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &) { had[name] = true; });
  std::map<std::string, Nanos> idle;
  for (const Slot &slot : context.slots) {
    if (!slot.client || slot.client->is_paused()) continue;
    for (const auto &caller : slot.callers) {
      const Nanos since = caller->waiting_since();
      if (since == kNever || had.contains(caller->name())) continue;
      const auto known = idle_.find(caller->name());
      idle[caller->name()] = known == idle_.end() ? schedule_.now() : known->second;
    }
  }
  idle_ = std::move(idle);
  if (!context.is_calm) return;
  for (const auto &[name, since] : idle_) {
    const Nanos begin = std::max(since, context.calm_since + plan_.lease_max + plan_.restart_guard);
    if (schedule_.now() - begin > kIdleLimit + context.stepped_back) {
      verdict_.broken(
          "a lock that nobody has finds its waiter",
          name + ": free for " + std::to_string((schedule_.now() - begin) / kMs) + " ms");
    }
  }
}

void QuorumRules::check_leftovers(Nanos gone_for) {
  for (const auto &node : nodes_) node->rules.check_leftovers(gone_for);
}

}  // namespace redlatch::sim
