// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "group_rules.h"

#include <algorithm>

#include "caller.h"

namespace redlatch::sim {

namespace {

std::string key_of(int name) { return std::string(kNamespace) + lock_name(name); }

}  // namespace

GroupRules::GroupRules(const RuleParts &parts, const std::vector<std::unique_ptr<Server>> &servers)
    : RuleParts(parts), servers_(servers), rules_(parts, *servers.front()) {
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
  if (!all.refused_.empty()) all.note_released(Rules::released(argv));
  if (is_checked) return all.rules_.after(argv, reply, now_us);
  for (int i = 0; i < all.plan_.name_count; i++) {
    const std::string lock = key_of(i);
    const bool is_changed = changed_keys.contains(lock) ||
                            changed_keys.contains(std::string(all.rules_.readers_of(lock)));
    if (!is_changed) continue;
    for (const auto &[token, end] : all.rules_.leases_at(all.servers_[index]->store(), lock)) {
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

// A lease that the heir does not have is not promised to be the only one; one that is shorter there
// is, until its end there. One that the heir has confirmed is not expected to be gone.
void GroupRules::promoted(size_t heir) {
  Server &old = *servers_[primary_];
  Server &is = *servers_[heir];
  const Nanos ahead = (is.now_us() - old.now_us()) * 1000;
  for (int i = 0; i < plan_.name_count; i++) {
    const std::string lock = key_of(i);
    const Rules::Leases kept = rules_.leases_at(is.store(), lock);
    for (const auto &[token, end] : rules_.leases_at(old.store(), lock)) {
      const auto found = kept.find(token);
      if (found != kept.end() && found->second >= end) continue;
      if (found != kept.end()) {
        excuse_at(heir, found->second, lock, token, end);
      } else if (!has_kept(token, heir)) {
        stats_.lost_grants++;
        beliefs_.excuse(token);
      }
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

// At the end that the primary knows for the lease: unless it was extended there as far as the
// primary before had done.
void GroupRules::excuse_at(size_t primary, int64_t end_ms, const std::string &lock,
                           const std::string &token, int64_t last_ms) {
  const Nanos end = servers_[primary]->clock().when(end_ms * kMs);
  schedule_.at(end, [this, end_ms, lock, token, last_ms] {
    const Rules::Leases ends = rules_.leases_at(servers_[primary_]->store(), lock);
    const auto found = ends.find(token);
    if (found == ends.end() || found->second <= end_ms) return beliefs_.excuse(token);
    if (found->second < last_ms) excuse_at(primary_, found->second, lock, token, last_ms);
  });
}

void GroupRules::took(size_t replica, size_t primary, const Effects &effects) {
  for (int i = 0; i < plan_.name_count; i++) {
    const std::string lock = key_of(i);
    const std::string_view readers = rules_.readers_of(lock);
    const bool is_changed = std::any_of(effects.begin(), effects.end(), [&](const auto &effect) {
      return effect.first == lock || effect.first == readers;
    });
    if (!is_changed) continue;
    note_kept(replica, primary, lock);
  }
}

void GroupRules::copied(size_t replica, size_t primary) {
  for (int i = 0; i < plan_.name_count; i++) {
    note_kept(replica, primary, key_of(i));
  }
}

void GroupRules::note_kept(size_t replica, size_t primary, const std::string &lock) {
  Rules::Leases leases = rules_.leases_at(servers_[replica]->store(), lock);
  Rules::Leases &before = nodes_[replica]->leases[lock];
  for (const auto &[token, end] : before) {
    if (!leases.contains(token)) kept_[token][{primary, replica}].is_gone = true;
  }
  for (const auto &[token, end] : leases) {
    kept_[token][{primary, replica}] = {schedule_.now(), false};
  }
  before = std::move(leases);
}

// True if the replica has had the lease from the primary, and no end of it since. A token may be
// granted again: then the replica may know its first lease alone.
bool GroupRules::has_kept(const std::string &token, size_t replica) const {
  const auto kept = kept_.find(token);
  if (kept == kept_.end()) return false;
  const auto found = kept->second.find({primary_, replica});
  return found != kept->second.end() && !found->second.is_gone;
}

// ---- clients -----------------------------------------------------------------------------------

// Rules: a lease that was held is not asked for again, whatever became of it; and a waiter that
// knows its ticket asks with it; and WAIT has a connection of its own.
void GroupRules::sent(size_t node, int client, Argv argv) {
  if (argv[0] == "WAIT") {
    verdict_.broken("WAIT is sent at the side only", "client " + std::to_string(client));
  }
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
  if (request.options.min_replicas > 0) check_confirmed(request, holder);
}

// Rule: as many replicas as the caller wants have had the lease from the server to which its client
// is connected, and since it was connected.
void GroupRules::check_confirmed(const lock::Request &request, const Beliefs::Holder &holder) {
  const Client &client = *context_->slots[static_cast<size_t>(holder.client)].client;
  const size_t server = client.server_of(0);
  const auto &kept = kept_[holder.token];
  const auto count = std::count_if(kept.begin(), kept.end(), [&](const auto &entry) {
    return entry.first.first == server && entry.second.at >= client.settled_since();
  });
  stats_.confirmed++;
  if (count >= request.options.min_replicas) return;
  verdict_.broken("a lease is given when enough replicas have it",
                  request.lease->name + ": client " + std::to_string(holder.client) + ", token " +
                      holder.token + ", " + std::to_string(count) + " of " +
                      std::to_string(request.options.min_replicas));
}

void GroupRules::failed(int client, const lock::Request &request) {
  if (request.op != lock::Request::Op::kAcquire) return;
  if (request.status.load() != Status::kNotReplicated) return;
  stats_.unconfirmed++;
  const Slot &slot = context_->slots[static_cast<size_t>(client)];
  refused_.push_back({std::string(kNamespace) + request.lease->name, request.lease->token, client,
                      slot.life, schedule_.now()});
}

void GroupRules::given_up(const std::string &token) { rules_.given_up(token); }

void GroupRules::watch(const Context &context) {
  rules_.watch(context);
  beliefs_.for_each(
      [&](const std::string &name, const Beliefs::Holder &holder) { check_known(name, holder); });
  check_freed();
}

// Whether the client lives, and has been connected to the primary for so long that it has acted on
// all that it knew at `since`.
bool GroupRules::is_settled(int number, Nanos since) const {
  const auto &client = context_->slots[static_cast<size_t>(number)].client;
  if (!client || client->is_paused()) return false;
  if (!client->is_connected(0) || client->server_of(0) != primary_) return false;
  since = std::max({since, client->settled_since(), client->paused_until()});
  return schedule_.now() - since >= 2 * plan_.timeout + kSecond;
}

void GroupRules::note_released(std::string_view token) {
  std::erase_if(refused_, [&](const Refused &one) { return one.token == token; });
}

// Rule: a lease that too few replicas have confirmed is soon released. A late copy of its ACQUIRE
// may have the lock for another ttl afterwards, and a failover may lose the release.
void GroupRules::check_freed() {
  std::erase_if(refused_, [this](const Refused &one) {
    if (context_->slots[static_cast<size_t>(one.client)].life != one.life) return true;
    if (!is_settled(one.client, one.at)) return false;
    if (rules_.is_held_by(one.lock, one.token)) {
      verdict_.broken("a lease that too few replicas have is released",
                      one.lock + ": client " + std::to_string(one.client) + ", token " + one.token);
    }
    return true;
  });
}

// Rule: a lease that the primary does not know is reported lost, soon after its client has
// connected there. One that is not renewed is left to its end: its client asks nothing about it.
void GroupRules::check_known(const std::string &name, const Beliefs::Holder &holder) {
  if (!holder.lease || !is_settled(holder.client, 0)) return;
  const auto &client = context_->slots[static_cast<size_t>(holder.client)].client;
  if (!client->is_held(*holder.lease) || !renewed_.contains(holder.token)) return;
  if (rules_.is_held_by(std::string(kNamespace) + name, holder.token)) return;
  verdict_.broken("a lease that the primary does not know is lost",
                  name + ": client " + std::to_string(holder.client) + ", token " + holder.token);
}

}  // namespace redlatch::sim
