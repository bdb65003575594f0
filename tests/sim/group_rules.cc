// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "group_rules.h"

#include <algorithm>

#include "caller.h"

namespace redlatch::sim {

namespace {

std::string key_of(int name) { return std::string(kNamespace) + lock_name(name); }

}  // namespace

GroupRules::GroupRules(const Plan &plan, Schedule &schedule,
                       const std::vector<std::unique_ptr<Server>> &servers, Stats &stats,
                       Verdict &verdict, Beliefs &beliefs)
    : plan_(plan),
      schedule_(schedule),
      servers_(servers),
      stats_(stats),
      verdict_(verdict),
      beliefs_(beliefs),
      rules_(plan, schedule, *servers.front(), stats, verdict, beliefs) {
  for (size_t i = 0; i < servers.size(); i++) {
    nodes_.push_back(std::make_unique<Node>(*this, i));
    servers[i]->add_witness(*nodes_.back());
  }
}

// ---- servers -----------------------------------------------------------------------------------

void GroupRules::Node::before(Argv argv, int64_t now_us) {
  is_checked = is_primary();
  changed_keys.clear();
  if (is_checked) all.rules_.before(argv, now_us);
}

void GroupRules::Node::after(Argv argv, const Value &reply, int64_t now_us) {
  if (is_checked) return all.rules_.after(argv, reply, now_us);
  for (int i = 0; i < all.plan_.name_count; i++) {
    const std::string lock = key_of(i);
    const bool is_changed = changed_keys.contains(lock) ||
                            changed_keys.contains(std::string(all.rules_.readers_of(lock)));
    if (!is_changed) continue;
    for (const auto &[token, end] : all.leases_at(all.servers_[index]->store(), lock)) {
      all.beliefs_.excuse(token);
      all.apart_.insert(token);
    }
  }
}

void GroupRules::Node::changed(std::string_view key) {
  if (is_primary()) return all.rules_.changed(key);
  changed_keys.emplace(key);
}

void GroupRules::Node::queued(std::string_view key, std::string_view member, double score) {
  if (is_primary()) return all.rules_.queued(key, member, score);
  if (key.ends_with('q')) all.rules_.note_ticket(member, score);
}

void GroupRules::Node::dequeued(std::string_view key, std::string_view member, double score) {
  if (is_primary()) all.rules_.dequeued(key, member, score);
}

GroupRules::Ends GroupRules::leases_at(const Store &store, const std::string &lock) const {
  Ends ends;
  const auto found = store.keys().find(lock);
  if (found == store.keys().end()) return ends;
  const auto *token = std::get_if<std::string>(&found->second.data);
  if (token != nullptr && token->size() == kTokenSize) ends[*token] = found->second.expires_ms;
  const auto readers = store.keys().find(rules_.readers_of(lock));
  if (readers == store.keys().end()) return ends;
  if (const auto *holds = std::get_if<Store::SortedSet>(&readers->second.data)) {
    for (const auto &[member, end] : holds->scores) {
      ends[member.substr(0, kTokenSize)] = static_cast<int64_t>(end);
    }
  }
  return ends;
}

// A lease that is gone or shorter at the heir is not promised to be the only one.
void GroupRules::promoted(size_t heir) {
  Server &old = *servers_[primary_];
  Server &is = *servers_[heir];
  const Nanos ahead = (is.now_us() - old.now_us()) * 1000;
  for (int i = 0; i < plan_.name_count; i++) {
    const std::string lock = key_of(i);
    const Ends kept = leases_at(is.store(), lock);
    for (const auto &[token, end] : leases_at(old.store(), lock)) {
      const auto found = kept.find(token);
      if (found != kept.end() && found->second >= end) continue;
      if (found == kept.end()) stats_.lost_grants++;
      beliefs_.excuse(token);
      // A clock that is behind may mint lower fences than that of a grant which it does not know.
      if (ahead < 0) apart_.insert(token);
    }
  }
  primary_ = heir;
  rules_.follow(is);
  if (ahead == 0) return;
  rules_.stepped(0, ahead);
  if (ahead < 0) stepped_back_ -= ahead;
}

void GroupRules::took(size_t replica, const Effects &effects) {
  for (const auto &[key, entry] : effects) {
    const auto *token = entry ? std::get_if<std::string>(&entry->data) : nullptr;
    if (token != nullptr && token->size() == kTokenSize) has_[*token].insert(replica);
  }
}

void GroupRules::copied(size_t replica) {
  for (int i = 0; i < plan_.name_count; i++) {
    for (const auto &[token, end] : leases_at(servers_[replica]->store(), key_of(i))) {
      has_[token].insert(replica);
    }
  }
}

// ---- clients -----------------------------------------------------------------------------------

// Rules: a lease that was held is not asked for again, whatever became of it; and a waiter that
// knows its ticket asks with it.
void GroupRules::sent(size_t node, int client, Argv argv) {
  rules_.sent(node, client, argv);
  const auto asked = Rules::asked(argv);
  if (!asked) return;
  const auto who = [&] {
    return "client " + std::to_string(client) + ", token " + std::string(asked->token);
  };
  if (held_.contains(asked->token)) {
    verdict_.broken("a lease that was held is not made again", who());
  }
  if (!asked->ticket.empty()) {
    ticketed_.emplace(asked->member);
  } else if (ticketed_.contains(asked->member)) {
    verdict_.broken("a waiter asks with its ticket", who());
  }
}

void GroupRules::granted(const lock::Request &request, Nanos last_reply_at,
                         Beliefs::Holder &holder) {
  rules_.granted(request, last_reply_at, holder);
  held_.insert(holder.token);
  request.options.is_renewed ? (void)renewed_.insert(holder.token)
                             : (void)renewed_.erase(holder.token);
  const auto wanted = static_cast<size_t>(plan_.min_replicas);
  if (wanted > 0 && has_[holder.token].size() < wanted) {
    verdict_.broken("a lease is given when enough replicas have it",
                    request.lease->name + ": " + holder.token + ", " +
                        std::to_string(has_[holder.token].size()) + " of " +
                        std::to_string(wanted));
  }
}

void GroupRules::given_up(const std::string &token) { rules_.given_up(token); }

void GroupRules::watch(const Context &context) {
  rules_.watch(context);
  beliefs_.for_each([&](const std::string &name, const Beliefs::Holder &holder) {
    check_known(context, name, holder);
  });
}

// Rule: a lease that the primary does not know is reported lost, soon after its client has
// connected there. One that is not renewed is left to its end: its client asks nothing about it.
void GroupRules::check_known(const Context &context, const std::string &name,
                             const Beliefs::Holder &holder) {
  const auto &client = context.slots[static_cast<size_t>(holder.client)].client;
  if (!client || client->is_paused() || !holder.lease) return;
  const Nanos since = std::max(client->settled_since(), client->paused_until());
  if (!client->is_connected(0) || client->server_of(0) != primary_) return;
  if (schedule_.now() - since < 2 * plan_.timeout + kSecond) return;
  if (!client->is_held(*holder.lease) || !renewed_.contains(holder.token)) return;
  if (rules_.is_held_by(std::string(kNamespace) + name, holder.token)) return;
  verdict_.broken("a lease that the primary does not know is lost",
                  name + ": client " + std::to_string(holder.client) + ", token " + holder.token);
}

}  // namespace redlatch::sim
