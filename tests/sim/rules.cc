// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "rules.h"

#include <algorithm>

#include "all_scripts.h"

namespace redlatch::sim {

namespace {

constexpr size_t kClaimAt = kTokenSize + 1;  // in a queue member
constexpr size_t kClaimSize = 5;
constexpr Nanos kEnough = 1'000 * kMs;        // to be notified, while the connection works
constexpr Nanos kReleaseSlack = 1'600 * kMs;  // a release is repeated each second
constexpr Nanos kLatest = 12'000 * kMs;       // no lease is longer, so older grants have ended
constexpr double kUpgradeTicket = 4e15;       // subtracted from the scores of waiting upgrades
constexpr int64_t kSilentMs = 100;            // what a waiter that no message reaches gets at most
constexpr int64_t kLeastPolledMs = 500;       // what a waiter that polls gets at least

struct Known {
  protocol::Script script;
  protocol::Format format;
};

const std::unordered_map<std::string_view, Known> &scripts() {
  static const auto kScripts = [] {
    std::unordered_map<std::string_view, Known> known;
    for_each_script(
        [&](protocol::Script script, protocol::Format format, const protocol::ScriptText &text) {
          known.emplace(text.sha1, Known{script, format});
          known.emplace(text.text(), Known{script, format});
        });
    return known;
  }();
  return kScripts;
}

std::string_view token_of(std::string_view member) { return member.substr(0, kTokenSize); }

std::string channel_of(std::string_view member) {
  return std::string(kChannelPrefix).append(member.substr(0, kCidSize));
}

}  // namespace

Rules::Call Rules::read(Argv argv) {
  Call call;
  if (argv[0] == "SET" && argv.size() > 2) {
    call.lock = argv[1];
    call.token = argv[2];
    return call;
  }
  if (!argv[0].starts_with("EVAL") || argv.size() < 4) return call;
  const auto found = scripts().find(argv[1]);
  auto key_count = static_cast<size_t>(integer_of(argv[2]));
  if (key_count == 0) return call;
  call.lock = argv[3];
  const Argv args = argv.subspan(3 + key_count);
  // On a cluster: the key that never exists.
  const std::string_view last = argv[2 + key_count];
  if (key_count > 1 && (last.ends_with(":rl1.n") || last.ends_with(":rl1:n"))) key_count--;
  if (found == scripts().end()) {
    call.token = args.empty() ? std::string_view() : args[0];
    call.is_foreign_delete = true;
    return call;
  }
  if (found->second.script == protocol::Script::kOnceForget) return {};
  call.script = found->second.script;
  call.key_count = key_count;
  call.args = args;
  call.format = found->second.format;
  // VOTE is checked as ACQUIRE, without its fence.
  const bool is_vote = call.script == protocol::Script::kVote;
  if (is_vote) call.script = protocol::Script::kAcquire;
  if (key_count >= 3) {
    call.queue = argv[4];
    if (!is_vote) call.fence = argv[5];
  }
  if (key_count >= 4) call.readers = argv[call.script == protocol::Script::kInspect ? 7 : 6];
  const bool has_permits = call.format == protocol::Format::kPermits;
  if (key_count >= 5 && call.script != protocol::Script::kInspect) {
    (has_permits ? call.cap : call.turn) = argv[7];
  }
  if (call.script == protocol::Script::kExtendShared) {
    call.readers = key_count > 1 ? argv[4] : std::string_view();
    call.queue = call.fence = {};
  }
  if (call.script == protocol::Script::kRaiseFence) call.fence = argv[4];
  if (call.script == protocol::Script::kDetach || call.script == protocol::Script::kAttach) {
    call.readers = argv[4];
    call.queue = call.fence = {};
  }
  read_arguments(call, args, found->second.format == protocol::Format::kHash);
  return call;
}

void Rules::read_arguments(Call &call, Argv args, bool is_hash) {
  switch (*call.script) {
    case protocol::Script::kAcquire:
    case protocol::Script::kAcquireRead:
    case protocol::Script::kUpgrade:
      call.token = args[0];
      call.ttl_ms = integer_of(args[1]);
      call.member = args[2];
      call.ticket = args[3];
      if (is_hash) call.owner = args[5];
      if (call.format == protocol::Format::kPermits) call.claim = args[5];
      if (call.script == protocol::Script::kAcquireRead) call.sibling = args[5];
      break;
    case protocol::Script::kRelease:
    case protocol::Script::kForceRelease:
    case protocol::Script::kRaiseFence:
    case protocol::Script::kDetach:
    case protocol::Script::kOnceBegin:
      call.token = args[0];
      break;
    case protocol::Script::kExtend:
    case protocol::Script::kExtendShared:
    case protocol::Script::kDowngrade:
    case protocol::Script::kAttach:
      call.token = args[0];
      call.ttl_ms = integer_of(args[1]);
      break;
    case protocol::Script::kCancel:
      call.member = args[0];
      call.token = token_of(args[0]);
      break;
    default:
      break;
  }
}

// ---- clients -----------------------------------------------------------------------------------

void Rules::sent(size_t, int client, Argv argv) {
  const Call call = read(argv);
  if (!call.script) return;
  const auto who = [&] {
    return "client " + std::to_string(client) + ", token " + std::string(call.token);
  };
  check_downgrade(client, call);
  if (!call.owner.empty()) owners_.emplace(call.owner);
  switch (*call.script) {
    case protocol::Script::kAcquire:
    case protocol::Script::kAcquireRead:
    case protocol::Script::kUpgrade:
      note_lease(call);
      note_asker(client, call);
      if (!asked_for_.contains(call.token)) asked_for_.emplace(call.token, call.lock);
      if (released_.contains(call.token)) {
        verdict_.broken("a released token is never acquired again", who());
      }
      return;
    case protocol::Script::kRelease:
      released_.emplace(call.token);
      return check_release(client, call);
    case protocol::Script::kExtend:
    case protocol::Script::kExtendShared:
    case protocol::Script::kDowngrade:
      note_lease(call);
      if (given_up_.contains(call.token)) verdict_.broken("what is given up is not renewed", who());
      return;
    default:
      return;
  }
}

void Rules::note_lease(const Call &call) {
  Asked &asked = asked_[std::string(call.token)];
  const Nanos lease = call.ttl_ms * kMs;
  asked.until = std::max(asked.until, schedule_.now() + lease);
}

void Rules::told(const std::string &token) {
  const auto asked = asked_.find(token);
  if (asked != asked_.end()) asked->second.until = std::max(asked->second.until, schedule_.now());
}

// Rule: a release is not repeated after the end of its lease plus the longest lease that a local
// hand-off may have added, but after a message that grants the lock anew: the server may have an
// older queue. A process that was paused may be late.
void Rules::check_release(int client, const Call &call) {
  Asked &asked = asked_[std::string(call.token)];
  if (asked.left_at < 0) asked.left_at = schedule_.now();
  const Nanos end = std::max(asked.until, asked.left_at) + plan_.lease_max;
  const Nanos slack = plan_.lease_max / 100 + kReleaseSlack;
  if (!plan_.has(Fault::kPause) && schedule_.now() > end + slack) {
    verdict_.broken("a release ends with its lease",
                    "client " + std::to_string(client) + ", token " + std::string(call.token) +
                        ", " + std::to_string((schedule_.now() - end) / kMs) + " ms after it");
  }
}

// ---- one command -------------------------------------------------------------------------------

void Rules::before(Argv argv, int64_t now_us) {
  call_ = read(argv);
  turn_ = turn_at(call_.turn, now_us / 1000);
  is_running_ = true;
  gone_.clear();
  changed_.clear();
  const auto *queue = queue_at(call_.queue);
  last_ticket_ = queue == nullptr || queue->order.empty() ? 0 : queue->order.rbegin()->first;
}

void Rules::after(Argv, const Value &reply, int64_t now_us) {
  const int64_t now_ms = now_us / 1000;
  is_running_ = false;
  check_keys();
  if (call_.lock.empty()) return;
  // A client that knows only the name may ask in another format first.
  const bool is_of_plan = call_.format == plan_.format;
  if (is_of_plan && !call_.queue.empty()) queue_of_.emplace(call_.lock, call_.queue);
  if (is_of_plan && !call_.readers.empty()) readers_of_.emplace(call_.lock, call_.readers);
  if (is_of_plan && !call_.cap.empty()) cap_of_.emplace(call_.lock, call_.cap);
  Lock &lock = locks_[std::string(call_.lock)];
  Lock was = lock;
  if (was.expires_ms >= 0 && was.expires_ms < now_ms) {
    check_runout(call_.lock, was);
    was.holder.clear();
    was.holds.clear();
  }
  const auto readers = readers_of_.find(call_.lock);
  Lock is = lock_at(call_.lock, readers == readers_of_.end() ? "" : readers->second, now_ms);
  if (was.holder.empty() && is.expires_ms >= 0 && is.expires_ms == was.last_expires_ms) {
    // The key had expired, or was about to, when the clock went back: nothing was granted. A
    // replica deletes no key that has expired.
    was.holder = is.holder;
    was.expires_ms = is.expires_ms;
    was.holds = is.holds;
  }
  lock.holder = std::move(is.holder);
  lock.expires_ms = is.expires_ms;
  if (is.expires_ms >= 0) lock.last_expires_ms = is.expires_ms;
  lock.holds = std::move(is.holds);
  lock.hold_owners = std::move(is.hold_owners);
  lock.count = is.count;
  lock.permits = std::move(is.permits);
  lock.sum = is.sum;
  lock.used = is.used;
  lock.cap = is.cap;
  lock.has_permits = is.has_permits;
  lock.is_hash = is.is_hash;
  lock.is_foreign = is.is_foreign;
  if (!lock.holder.empty()) lock.idle_since = -1;
  note_holds(call_, was, lock);
  check_place(call_, reply);
  if (was.holds.empty() && lock.holds.empty()) {
    check_holder(call_, was, lock, now_ms);
    check_expiry(call_, was, lock, now_ms);
  } else {
    check_sharing(call_, was, lock, now_ms);
  }
  if (lock.has_permits || was.has_permits) check_permits(call_, was, lock, now_ms);
  check_answer(call_, was, lock, reply, now_ms);
  check_served(call_, lock, reply, now_ms);
  check_others(call_, was, lock, now_ms);
  check_queue(call_, was, lock, now_ms);
  check_fence(call_, was, lock);
  if (lock.holder != was.holder) lock.granted_fence = lock.last_fence;
  check_renewal(call_, lock);
  if (!call_.script) return;
  jobs_.after(*call_.script, call_.lock, call_.key_count, call_.args, reply, now_ms);
  elections_.after(*call_.script, call_.lock, call_.key_count, call_.args, reply,
                   {lock.holder, lock.last_fence});
}

void Rules::note_holds(const Call &call, const Lock &was, const Lock &is) {
  auto &recent = recent_[std::string(call.lock)];
  for (const auto &[token, end] : ends_of(is)) {
    if (token != was.holder && !was.holds.contains(token)) recent.emplace(token, schedule_.now());
  }
  if (is.holder.empty() || is.holder == was.holder) return;
  locks_[std::string(call.lock)].granted_at = schedule_.now();
  std::erase_if(recent,
                [&](const auto &entry) { return entry.second + kLatest < schedule_.now(); });
}

// Rule of the scenario kCut: a client learns of a grant before the lease ends.
void Rules::check_runout(std::string_view lock, const Lock &was) {
  if (plan_.scenario != Scenario::kCut || !was.holds.empty() || !asked_for_.contains(was.holder))
    return;
  const auto told = told_.find(was.holder);
  if (told == told_.end() || told->second.at < was.granted_at) {
    verdict_.broken("nobody is granted a lock without knowing it",
                    std::string(lock) + ": " + was.holder);
  }
}

// Rule of kCut: a lock that was taken by force is not renewed by its former lease, even
// if the same token was granted it again.
void Rules::check_renewal(const Call &call, const Lock &is) {
  if (plan_.scenario != Scenario::kCut || call.script != protocol::Script::kExtend) return;
  const auto told = told_.find(call.token);
  if (call.token != is.holder || told == told_.end() || told->second.fence == 0) return;
  if (told->second.fence < is.granted_fence && schedule_.now() > is.granted_at + kEnough) {
    verdict_.broken("what was taken is not renewed", std::string(call.lock) + ": " + is.holder +
                                                         ", fence " +
                                                         std::to_string(told->second.fence) +
                                                         " of " + std::to_string(is.granted_fence));
  }
}

Rules::Lock Rules::lock_at(std::string_view lock, std::string_view readers, int64_t now_ms) const {
  Lock is;
  read_cap(lock, is, now_ms);
  const Store::Entry *entry = entry_at(lock);
  if (entry == nullptr || !is_there(*entry, now_ms)) return is;
  is.expires_ms = entry->expires_ms;
  const auto *value = std::get_if<std::string>(&entry->data);
  const auto *hash = std::get_if<Store::Hash>(&entry->data);
  is.holder = value != nullptr ? *value : "?";
  is.is_hash = hash != nullptr && hash->size() == 1;
  if (is.is_hash) {
    is.holder = hash->begin()->first;
    is.count = integer_of(hash->begin()->second);
    is.is_foreign = !owners_.contains(is.holder);
  }
  is.has_permits = is.holder.starts_with(protocol::kPermitsPrefix);
  if (is.has_permits) {
    is.used = protocol::permits_in(is.holder.substr(protocol::kPermitsPrefix.size()));
    if (is_alone(is.holder)) {
      read_alone(is, now_ms);
      return is;
    }
    is.holder = kShared;
  }
  if (!is.is_hash && is.holder != kShared) return is;
  // In its last millisecond the key still exists, and the lock has no holder.
  if (is.expires_ms <= now_ms && !is.is_foreign) is.holder.clear();
  const auto *sharers = queue_at(readers);
  if (sharers == nullptr) return is;
  for (const auto &[member, end] : sharers->scores) {
    const int64_t permits = protocol::permits_in(std::string_view(member).substr(kTokenSize));
    is.sum += permits;
    if (static_cast<int64_t>(end) <= now_ms) continue;
    if (is.has_permits) is.permits.emplace(token_of(member), permits);
    const std::string_view owner = std::string_view(member).substr(kTokenSize);
    if (is.is_hash && owner != is.holder) {
      is.hold_owners = owner;
    } else {
      is.holds.emplace(token_of(member), static_cast<int64_t>(end));
    }
  }
  return is;
}

void Rules::check_holder(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  if (was.holder == is.holder) return;
  const std::string lock(call.lock);
  // A shared key without readers, which a failover can leave behind, is nobody's.
  if (!was.holder.empty() && was.holder != kShared) {
    const bool is_forced = call.script == protocol::Script::kForceRelease;
    const bool is_given_up = call.script == protocol::Script::kRelease || call.is_foreign_delete;
    const bool is_owner = call.token == was.holder;
    if (is_forced && (call.token.empty() || is_owner)) {
      take_by_force(was.holder);
    } else if (!is_given_up || !is_owner) {
      verdict_.broken(
          "only its owner gives a lock up",
          lock + ": " + was.holder + " -> " + is.holder + " by '" + std::string(call.token) + "'");
    }
  }
  if (is.holder.empty() || !call.script) return;
  const bool is_extension =
      call.script == protocol::Script::kExtend || call.script == protocol::Script::kExtendShared ||
      call.script == protocol::Script::kDowngrade || call.script == protocol::Script::kDetach ||
      call.script == protocol::Script::kAttach;
  if (is_extension) {
    return verdict_.broken("what is gone is not brought back", lock + ": " + is.holder);
  }
  const auto asked = asked_for_.find(is.holder);
  if (asked == asked_for_.end() || asked->second != lock) {
    verdict_.broken("who holds has asked for this lock", lock + ": " + is.holder);
  }
  check_grant(call, is.holder, was, is, now_ms);
}

int64_t Rules::granted_ms(const Call &call, std::string_view token) const {
  const bool is_asking = call.is_acquire() || call.script == protocol::Script::kUpgrade;
  if (is_asking && call.token == token) return call.ttl_ms;
  for (const Gone &gone : gone_) {
    if (gone.key != call.queue || token_of(gone.member) != token) continue;
    const std::string_view claim = std::string_view(gone.member).substr(kClaimAt, kClaimSize);
    return protocol::polls(gone.member) ? std::max(integer_of(claim.substr(1)), kLeastPolledMs)
                                        : integer_of(claim);
  }
  return 0;
}

void Rules::check_expiry(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  if (is.holder.empty() || !call.script) return;
  const std::string lock = std::string(call.lock) + ": " + is.holder;
  if (is.expires_ms < 0) return verdict_.broken("every lease ends", lock);
  if (was.holder == is.holder) {
    if (is.expires_ms == was.expires_ms) return;
    if (is.expires_ms < was.expires_ms) {
      return verdict_.broken(
          "a lease is never cut short",
          lock + " by " + std::to_string(was.expires_ms - is.expires_ms) + " ms");
    }
    if (call.token != is.holder) return verdict_.broken("only its owner extends a lease", lock);
  }
  const int64_t asked = was.holder == is.holder ? call.ttl_ms : granted_ms(call, is.holder);
  if (is.expires_ms > now_ms + asked) {
    verdict_.broken("a lease is as long as was asked for",
                    lock + ": " + std::to_string(is.expires_ms - now_ms) + " ms, asked for " +
                        std::to_string(asked) + " ms");
  }
}

// Rule: a waiter keeps its ticket, whatever copies of its requests did.
void Rules::check_place(const Call &call, const Value &reply) {
  if (!call.is_acquire() || call.ticket.empty()) return;
  const auto *queue = queue_at(call.queue);
  if (queue == nullptr || reply.is_error()) return;
  const auto found = queue->scores.find(call.member);
  if (found == queue->scores.end()) return;
  if (found->second > static_cast<double>(integer_of(call.ticket))) {
    verdict_.broken("a waiter keeps its ticket",
                    std::string(call.lock) + ": " + std::string(call.member));
  }
}

// Rules for a new holder: a live waiter, in its turn.
void Rules::check_grant(const Call &call, const std::string &token, const Lock &was, const Lock &is,
                        int64_t now_ms) {
  granted_.insert(token);
  const std::string how = std::string(call.lock) + ": " + token;
  constexpr double kNone = -2 * kUpgradeTicket;
  double ticket = kNone;
  bool is_upgrade = call.script == protocol::Script::kUpgrade && call.token == token;
  for (const Gone &gone : gone_) {
    if (token_of(gone.member) != token) continue;
    ticket = gone.score;  // the last one counts: the member may have been queued again before
    is_upgrade = is_upgrade || gone.member[kTokenSize] == 'u';
    if (call.token == token) continue;
    const bool is_here = server_->is_channel_here(channel_of(gone.member));
    if (is_here && is_dead(gone.member)) verdict_.broken("the dead are skipped", how);
    const auto hold = is.holds.find(token);
    const int64_t end_ms = hold == is.holds.end() ? is.expires_ms : hold->second;
    if (plan_.is_sharded && !is_here && !is_upgrade && !protocol::polls(gone.member) &&
        end_ms > now_ms + kSilentMs) {
      verdict_.broken("a grant that no message announces is short", how);
    }
    if (is_overdue(gone.member, gone.score, now_ms)) {
      verdict_.broken("nobody is granted a lock after its wait", how);
    }
  }
  if (is_upgrade) {
    const auto before = was.holds.find(token);
    if (before == was.holds.end() || before->second <= now_ms) {
      verdict_.broken("who is upgraded still reads", how);
    }
  }
  if (ticket == kNone && call.token != token) verdict_.broken("who is granted has waited", how);
  // The upgrade of the only reader, another read lease of a client, and another hold of an owner do
  // not wait for their turn.
  const bool is_once_more =
      call.token == token && (is_upgrade || was.holds.contains(std::string(call.sibling)) ||
                              (!call.owner.empty() && was.holder == call.owner));
  if (!is_once_more) check_turn(call, token, was, is, ticket == kNone ? 1e300 : ticket, now_ms);
}

void Rules::check_turn(const Call &call, const std::string &token, const Lock &was, const Lock &is,
                       double ticket, int64_t now_ms) {
  const auto *queue = queue_at(call.queue);
  if (queue == nullptr) return;
  for (const auto &[score, member] : queue->order) {
    if (score >= ticket) return;
    if (token_of(member) == token || is_for_nothing(member, was, is)) continue;
    if (is_passed_over(member, is)) continue;
    if (is_dead(member) || is_overdue(member, score, now_ms)) continue;
    return verdict_.broken("waiters are served in order of their tickets",
                           std::string(call.lock) + ": " + token + " (ticket " +
                               std::to_string(ticket) + ") before " + member + " (" +
                               std::to_string(score) + ")");
  }
}

void Rules::check_queue(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  const auto *queue = queue_at(call.queue);
  for (const Gone &gone : gone_) {
    if (gone.key != call.queue) continue;
    const bool is_back = queue != nullptr && queue->scores.contains(gone.member);
    const std::string token(token_of(gone.member));
    const bool has_reason = is_back || token == is.holder || is.holds.contains(token) ||
                            token == call.token || is_for_nothing(gone.member, was, is) ||
                            is_overdue(gone.member, gone.score, now_ms) || is_dead(gone.member);
    // .. or it waits for a value, which the holder has stored.
    const bool is_told = gone.member[kTokenSize] == 'v' &&
                         call.script == protocol::Script::kRelease && call.key_count == 6 &&
                         call.args[2] == "v" && call.token == was.holder;
    if (!has_reason && !is_told) {
      verdict_.broken("a live waiter keeps its place",
                      std::string(call.lock) + ": " + gone.member + " is gone");
    }
  }
}

void Rules::check_fence(const Call &call, const Lock &was, Lock &is) {
  if (!call.script) return;
  const bool is_new = !is.holder.empty() && is.holder != was.holder && is.holder != kShared;
  if (call.fence.empty()) return;
  const Store::Entry *entry = entry_at(call.fence);
  const auto *text = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->data);
  const int64_t fence = text == nullptr ? 0 : integer_of(*text);
  if (is_new && fence <= was.last_fence) {
    verdict_.broken("each new owner has a higher fence", std::string(call.lock) + ": " +
                                                             std::to_string(fence) + " after " +
                                                             std::to_string(was.last_fence));
  } else if (fence != 0 && fence < was.seen_fence) {
    verdict_.broken("the fence never falls", std::string(call.lock) + ": " + std::to_string(fence) +
                                                 " after " + std::to_string(was.seen_fence));
  }
  is.last_fence = std::max(was.last_fence, fence);
  is.owner_fence = is_new ? fence : was.owner_fence;
  is.seen_fence = std::max(was.seen_fence, fence);
}

void Rules::check_keys() {
  for (const std::string &key : changed_) {
    const Store::Entry *entry = entry_at(key);
    if (entry != nullptr && entry->expires_ms < 0) {
      verdict_.broken("every key ends", key);
    }
  }
}

bool Rules::is_overdue(std::string_view member, double score, int64_t now_ms) const {
  if (score < 0) score += kUpgradeTicket;
  return score / 1000 + static_cast<double>(integer_of(member.substr(38, 13))) <
         static_cast<double>(now_ms);
}

// Nothing shows that a waiter that polls is dead.
bool Rules::is_dead(std::string_view member) const {
  return !protocol::polls(member) && server_->receiver_count(channel_of(member)) == 0;
}

const Store::SortedSet *Rules::queue_at(std::string_view key) const {
  if (key.empty()) return nullptr;
  const Store::Entry *entry = entry_at(key);
  return entry == nullptr ? nullptr : std::get_if<Store::SortedSet>(&entry->data);
}

// Expired or not.
const Store::Entry *Rules::entry_at(std::string_view key) const {
  for (const Server *server : {static_cast<const Server *>(server_), other_}) {
    const Store::Entry *entry = server == nullptr ? nullptr : server->store().entry_at(key);
    if (entry != nullptr) return entry;
  }
  return nullptr;
}

// ---- Store::Listener ---------------------------------------------------------------------------

void Rules::changed(std::string_view key) {
  if (is_running_) {
    changed_.emplace_back(key);
    return;
  }
  // The key has expired, for good, even if the clock is stepped back.
  const auto found = locks_.find(key);
  if (found == locks_.end() || entry_at(key) != nullptr) return;
  check_runout(key, found->second);
  found->second.holder.clear();
  found->second.holds.clear();
  found->second.expires_ms = -1;
}

void Rules::queued(std::string_view key, std::string_view member, double score) {
  if (!key.ends_with('q')) return;
  const auto is_this = [&](const Gone &gone) {
    return gone.key == key && gone.member == member && gone.score == score;
  };
  if (std::any_of(gone_.begin(), gone_.end(), is_this)) return;
  const std::string how = std::string(key) + ": " + std::string(member);
  if (const auto *queue = queue_at(key)) {
    for (auto at = queue->scores.lower_bound(token_of(member));
         at != queue->scores.end() && token_of(at->first) == token_of(member); ++at) {
      if (at->first != member) verdict_.broken("one place for each request", how);
    }
  }
  auto &tickets = tickets_[std::string(member)];
  if (tickets.empty()) stats_.waits++;
  if (call_.ticket.empty()) {
    if (score >= 0 && score <= last_ticket_) verdict_.broken("a new ticket is the last", how);
    note_ticket(member, score);
  } else if (!tickets.contains(score)) {
    verdict_.broken("a ticket is one that was given", how);
  }
}

}  // namespace redlatch::sim
