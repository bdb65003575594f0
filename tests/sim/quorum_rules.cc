// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "quorum_rules.h"

#include <algorithm>
#include <functional>

namespace redlatch::sim {

namespace {

constexpr size_t kTokenSize = 32;
constexpr size_t kCidSize = 22;
constexpr std::string_view kNamespace = "app:";
// A pushed grant may be dated by what its client knew of the clock before a step, until something
// else has come from there: the longest time between two polls, and the way.
constexpr Nanos kUnheard = 25'000 * kMs;
// Votes are kept for a second in line; a release that got no answer is repeated after a second.
constexpr Nanos kStrayLimit = 6'000 * kMs;

}  // namespace

std::string QuorumRules::id_of(std::string_view token, std::string_view lock) {
  return std::string(token.substr(0, kCidSize)).append(lock);
}

void QuorumRules::add(Server &server) {
  nodes_.push_back(std::make_unique<Node>(*this, nodes_.size(), server));
  server.set_witness(*nodes_.back());
}

void QuorumRules::Node::after(Argv argv, const Value &reply, int64_t now_us) {
  if (is_judged) rules.after(argv, reply, now_us);
  if (argv.size() > 3 && argv[0].starts_with("EVAL")) all.note(*this, argv[3], argv);
}

void QuorumRules::given_up(const std::string &token) {
  for (const auto &node : nodes_) {
    if (node->is_judged) node->rules.given_up(token);
  }
}

// What stands in the key of a lock after a command.
void QuorumRules::note(Node &node, std::string_view lock, Argv argv) {
  const auto &keys = node.server.store().keys();
  const auto found = keys.find(lock);
  const auto *value = found == keys.end() ? nullptr : std::get_if<std::string>(&found->second.data);
  const bool is_held = value != nullptr && value->size() == kTokenSize;
  const std::string_view token = is_held ? std::string_view(*value) : std::string_view();
  std::string &was = node.holders[std::string(lock)];
  if (was != token && !was.empty()) {
    Vote &old = votes_[id_of(was, lock)][node.index];
    // It was given back, and counts for nothing any more.
    if (old.token == was && !old.is_forgotten) old.end = 0;
  }
  const bool is_new = was != token;
  was = token;
  if (!is_held) return;
  Vote &vote = votes_[id_of(token, lock)][node.index];
  const Nanos end = node.server.clock().when((found->second.expires_ms + 1) * kMs);
  // Another caller of this client may still count on what was forgotten.
  const bool is_other_left = vote.is_forgotten && vote.end > schedule_.now();
  if (is_new && !is_other_left) vote = {{}, end, false, true};
  if (is_new) vote.token = token;
  vote.end = std::max(vote.end, end);
  const bool is_pushed =
      is_new && argv.size() > 4 && std::find(argv.begin() + 4, argv.end(), token) == argv.end();
  if (is_pushed && schedule_.now() - node.stepped_at < kUnheard) {
    vote.end = kNever;
    vote.is_promised = false;
  }
}

Nanos QuorumRules::end_of(const std::string &name, const std::string &token,
                          bool with_unpromised) const {
  const auto found = votes_.find(id_of(token, std::string(kNamespace) + name));
  if (found == votes_.end()) return 0;
  std::array<Nanos, kMaxNodes> ends{};
  for (size_t i = 0; i < nodes_.size(); i++) {
    const Vote &vote = found->second[i];
    ends[i] = vote.is_promised || with_unpromised ? vote.end : 0;
  }
  std::sort(ends.begin(), ends.begin() + static_cast<ptrdiff_t>(nodes_.size()), std::greater<>());
  return ends[nodes_.size() / 2];
}

void QuorumRules::told_of_restart(size_t node, std::string_view channel) {
  if (plan_.guard != Plan::Guard::kOn) return;
  const std::string_view cid = channel.substr(channel.size() - kCidSize);
  for (auto at = votes_.lower_bound(cid); at != votes_.end() && at->first.starts_with(cid); ++at) {
    at->second[node].end = 0;
  }
}

void QuorumRules::judge_release(const engine::Lease &lease) {
  if (end_of(lease.name, lease.token, false) <= schedule_.now()) return;
  verdict_.broken("what was released is free", lease.name + ": " + lease.token);
}

void QuorumRules::judge_validity(const std::string &name, const Beliefs::Holder &holder) {
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

void QuorumRules::forget(size_t node, bool is_promised) {
  for (auto &[id, votes] : votes_) {
    Vote &vote = votes[node];
    if (vote.end <= schedule_.now()) continue;
    vote.is_forgotten = true;
    vote.is_promised = vote.is_promised && is_promised;
  }
  if (nodes_[node]->holders.empty()) return;
  nodes_[node]->holders.clear();
}

void QuorumRules::forgets(size_t node, bool is_guarded) { forget(node, is_guarded); }

void QuorumRules::steps_forward(size_t node) {
  for (auto &[id, votes] : votes_) {
    Vote &vote = votes[node];
    if (vote.end <= schedule_.now() || vote.is_forgotten) continue;
    vote.is_forgotten = true;
    vote.is_promised = false;
  }
  nodes_[node]->stepped_at = schedule_.now();
}

void QuorumRules::judge_strays(const Beliefs &beliefs, Nanos calm_since) {
  std::map<std::string, bool> believed;  // client and lock
  beliefs.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
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

}  // namespace redlatch::sim
