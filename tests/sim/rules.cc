// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "rules.h"

#include <algorithm>
#include <charconv>

#include "all_scripts.h"

namespace redlatch::sim {

namespace {

constexpr size_t kTokenSize = 32;
constexpr size_t kCidSize = 22;
constexpr std::string_view kChannelPrefix = "app:rl1:";
constexpr Nanos kEnough = 1'000 * kMs;        // to hear of something, if the way is free
constexpr Nanos kReleaseSlack = 1'600 * kMs;  // one is repeated each second
constexpr Nanos kLatest = 12'000 * kMs;       // no lease is longer: nobody believes an older grant
constexpr int64_t kQueueLimitMs = 600'000;
constexpr int64_t kFenceLimitMs = 3'600'000;

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

const std::unordered_map<std::string_view, wire::Script> &scripts() {
  static const auto kScripts = [] {
    std::unordered_map<std::string_view, wire::Script> known;
    for_each_script([&](wire::Script script, wire::Format, const wire::ScriptText &text) {
      known.emplace(text.sha1, script);
      known.emplace(text.text, script);
    });
    return known;
  }();
  return kScripts;
}

std::string_view token_of(std::string_view member) { return member.substr(0, kTokenSize); }

bool is_there(const Store::Entry &entry, int64_t now_ms) {
  return entry.expires_ms < 0 || entry.expires_ms >= now_ms;
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
  const auto key_count = static_cast<size_t>(number(argv[2]));
  if (key_count == 0) return call;
  call.lock = argv[3];
  const Argv args = argv.subspan(3 + key_count);
  if (found == scripts().end()) {
    call.token = args.empty() ? std::string_view() : args[0];
    call.is_foreign_delete = true;
    return call;
  }
  call.script = found->second;
  if (key_count >= 3) {
    call.queue = argv[4];
    call.fence = argv[5];
  }
  switch (found->second) {
    case wire::Script::kAcquire:
      call.lease_ms = number(args[1]);
      call.member = args[2];
      call.ticket = args[3];
      [[fallthrough]];
    case wire::Script::kRelease:
    case wire::Script::kForceRelease:
      call.token = args[0];
      break;
    case wire::Script::kExtend:
    case wire::Script::kExtendShared:
      call.token = args[0];
      call.lease_ms = number(args[1]);
      break;
    case wire::Script::kCancel:
      call.member = args[0];
      call.token = token_of(args[0]);
      break;
    default:
      break;
  }
  return call;
}

// ---- clients -----------------------------------------------------------------------------------

void Rules::sent(int client, Argv argv) {
  const Call call = read(argv);
  if (!call.script) return;
  const auto who = [&] {
    return "client " + std::to_string(client) + ", token " + std::string(call.token);
  };
  switch (*call.script) {
    case wire::Script::kAcquire:
      note_lease(call);
      if (!asked_for_.contains(call.token)) asked_for_.emplace(call.token, call.lock);
      if (released_.contains(call.token)) {
        verdict_.broken("a released token is never acquired again", who());
      }
      return;
    case wire::Script::kRelease:
      released_.emplace(call.token);
      return judge_release(client, call);
    case wire::Script::kExtend:
    case wire::Script::kExtendShared:
      note_lease(call);
      if (given_up_.contains(call.token)) verdict_.broken("what is given up is not renewed", who());
      return;
    default:
      return;
  }
}

void Rules::note_lease(const Call &call) {
  Asked &asked = asked_[std::string(call.token)];
  const Nanos lease = call.lease_ms * kMs;
  asked.until = std::max(asked.until, schedule_.now() + lease);
}

// A release is repeated until its lease must be over, and as long again as a caller who was passed
// the lock asked for. A process that stood still may be late.
void Rules::judge_release(int client, const Call &call) {
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

void Rules::before(Argv argv, int64_t) {
  call_ = read(argv);
  is_running_ = true;
  gone_.clear();
  changed_.clear();
  const auto *queue = queue_at(call_.queue);
  last_ticket_ = queue == nullptr || queue->order.empty() ? 0 : queue->order.rbegin()->first;
}

void Rules::after(Argv, const Value &reply, int64_t now_us) {
  const int64_t now_ms = now_us / 1000;
  is_running_ = false;
  judge_keys();
  if (call_.lock.empty()) return;
  if (!call_.queue.empty()) queue_of_.emplace(call_.lock, call_.queue);
  Lock &lock = locks_[std::string(call_.lock)];
  Lock was = lock;
  if (was.expires_ms >= 0 && was.expires_ms < now_ms) {
    judge_runout(call_.lock, was);
    was.holder.clear();
  }
  lock.holder = holder_of(call_.lock, now_ms, lock.expires_ms);
  if (!lock.holder.empty()) lock.idle_since = -1;
  if (!lock.holder.empty() && lock.holder != was.holder) {
    lock.granted_at = schedule_.now();
    auto &recent = recent_[std::string(call_.lock)];
    recent.emplace(lock.holder, schedule_.now());
    std::erase_if(recent,
                  [&](const auto &entry) { return entry.second + kLatest < schedule_.now(); });
  }
  judge_place(call_, reply);
  judge_holder(call_, was, lock, now_ms);
  judge_expiry(call_, was, lock, now_ms);
  judge_queue(call_, lock, now_ms);
  judge_fence(call_, was, lock);
  if (lock.holder != was.holder) lock.granted_fence = lock.last_fence;
  judge_renewal(call_, lock);
}

// Where only connections break, a client hears of what it was granted long before that ends.
void Rules::judge_runout(std::string_view lock, const Lock &was) {
  if (plan_.shape != Shape::kCut || !asked_for_.contains(was.holder)) return;
  const auto told = told_.find(was.holder);
  if (told == told_.end() || told->second.at < was.granted_at) {
    verdict_.broken("nobody is granted a lock without knowing it",
                    std::string(lock) + ": " + was.holder);
  }
}

// .. and does not go on with what was taken from it, though it has got it again.
void Rules::judge_renewal(const Call &call, const Lock &is) {
  if (plan_.shape != Shape::kCut || call.script != wire::Script::kExtend) return;
  const auto told = told_.find(call.token);
  if (call.token != is.holder || told == told_.end() || told->second.fence == 0) return;
  if (told->second.fence < is.granted_fence && schedule_.now() > is.granted_at + kEnough) {
    verdict_.broken("what was taken is not renewed", std::string(call.lock) + ": " + is.holder +
                                                         ", fence " +
                                                         std::to_string(told->second.fence) +
                                                         " of " + std::to_string(is.granted_fence));
  }
}

std::string Rules::holder_of(std::string_view lock, int64_t now_ms, int64_t &expires_ms) const {
  const auto &keys = server_.store().keys();
  const auto found = keys.find(lock);
  expires_ms = -1;
  if (found == keys.end() || !is_there(found->second, now_ms)) return {};
  expires_ms = found->second.expires_ms;
  const auto *value = std::get_if<std::string>(&found->second.data);
  return value == nullptr ? "?" : *value;
}

void Rules::judge_holder(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
  if (was.holder == is.holder) return;
  const std::string lock(call.lock);
  if (!was.holder.empty()) {
    const bool is_forced = call.script == wire::Script::kForceRelease;
    const bool is_given_up = call.script == wire::Script::kRelease || call.is_foreign_delete;
    const bool is_owner = call.token == was.holder;
    if (is_forced && (call.token.empty() || is_owner)) {
      if (on_forced) on_forced(was.holder);
    } else if (!is_given_up || !is_owner) {
      verdict_.broken(
          "only its owner gives a lock up",
          lock + ": " + was.holder + " -> " + is.holder + " by '" + std::string(call.token) + "'");
    }
  }
  if (is.holder.empty() || !call.script) return;
  if (call.script == wire::Script::kExtend || call.script == wire::Script::kExtendShared) {
    return verdict_.broken("what is gone is not brought back", lock + ": " + is.holder);
  }
  const auto asked = asked_for_.find(is.holder);
  if (asked == asked_for_.end() || asked->second != lock) {
    verdict_.broken("who holds has asked for this lock", lock + ": " + is.holder);
  }
  judge_grant(call, is, now_ms);
}

int64_t Rules::granted_ms(const Call &call, std::string_view token) const {
  if (call.script == wire::Script::kAcquire && call.token == token) return call.lease_ms;
  for (const Gone &gone : gone_) {
    if (token_of(gone.member) == token) return number(std::string_view(gone.member).substr(33, 5));
  }
  return 0;
}

void Rules::judge_expiry(const Call &call, const Lock &was, const Lock &is, int64_t now_ms) {
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
  const int64_t asked = was.holder == is.holder ? call.lease_ms : granted_ms(call, is.holder);
  if (is.expires_ms > now_ms + asked) {
    verdict_.broken("a lease is as long as was asked for",
                    lock + ": " + std::to_string(is.expires_ms - now_ms) + " ms, asked for " +
                        std::to_string(asked) + " ms");
  }
}

// Whoever was told a ticket stands there, whatever copies of its requests did meanwhile.
void Rules::judge_place(const Call &call, const Value &reply) {
  if (call.script != wire::Script::kAcquire || call.ticket.empty()) return;
  const auto *queue = queue_at(call.queue);
  if (queue == nullptr || reply.is_error()) return;
  const auto found = queue->scores.find(call.member);
  if (found == queue->scores.end()) return;
  if (found->second > static_cast<double>(number(call.ticket))) {
    verdict_.broken("a waiter keeps its ticket",
                    std::string(call.lock) + ": " + std::string(call.member));
  }
}

// Somebody new holds: was it their turn?
void Rules::judge_grant(const Call &call, const Lock &is, int64_t now_ms) {
  const std::string how = std::string(call.lock) + ": " + is.holder;
  double ticket = -1;
  for (const Gone &gone : gone_) {
    if (token_of(gone.member) != is.holder) continue;
    ticket = gone.score;  // the last counts: it may have got back to its place before
    if (call.token == is.holder) continue;
    if (is_dead(gone.member)) verdict_.broken("the dead are skipped", how);
    if (is_overdue(gone.member, gone.score, now_ms)) {
      verdict_.broken("nobody is granted a lock after its wait", how);
    }
  }
  if (ticket < 0 && call.token != is.holder) verdict_.broken("who is granted has waited", how);
  const auto *queue = queue_at(call.queue);
  if (queue == nullptr) return;
  for (const auto &[score, member] : queue->order) {
    if (ticket >= 0 && score >= ticket) return;
    if (token_of(member) == is.holder) continue;
    if (is_dead(member) || is_overdue(member, score, now_ms)) continue;
    return verdict_.broken("waiters are served in order of their tickets",
                           how + " (ticket " + std::to_string(ticket) + ") before " + member +
                               " (" + std::to_string(score) + ")");
  }
}

void Rules::judge_queue(const Call &call, const Lock &is, int64_t now_ms) {
  const auto *queue = queue_at(call.queue);
  for (const Gone &gone : gone_) {
    if (gone.key != call.queue) continue;
    const bool is_back = queue != nullptr && queue->scores.contains(gone.member);
    const std::string_view token = token_of(gone.member);
    const bool has_reason = is_back || token == is.holder || token == call.token ||
                            is_overdue(gone.member, gone.score, now_ms) || is_dead(gone.member);
    if (!has_reason) {
      verdict_.broken("a live waiter keeps its place",
                      std::string(call.lock) + ": " + gone.member + " is gone");
    }
  }
}

void Rules::judge_fence(const Call &call, const Lock &was, Lock &is) {
  if (!call.script) return;
  const bool is_new = !is.holder.empty() && is.holder != was.holder;
  if (call.fence.empty()) return;
  const auto found = server_.store().keys().find(call.fence);
  const auto *text = found == server_.store().keys().end()
                         ? nullptr
                         : std::get_if<std::string>(&found->second.data);
  const int64_t fence = text == nullptr ? 0 : number(*text);
  if (is_new && fence <= was.last_fence) {
    verdict_.broken("each new owner has a higher fence", std::string(call.lock) + ": " +
                                                             std::to_string(fence) + " after " +
                                                             std::to_string(was.last_fence));
  } else if (fence != 0 && fence < was.last_fence) {
    verdict_.broken("the fence never falls", std::string(call.lock) + ": " + std::to_string(fence) +
                                                 " after " + std::to_string(was.last_fence));
  }
  is.last_fence = std::max(was.last_fence, fence);
}

void Rules::judge_keys() {
  for (const std::string &key : changed_) {
    const auto found = server_.store().keys().find(key);
    if (found != server_.store().keys().end() && found->second.expires_ms < 0) {
      verdict_.broken("every key ends", key);
    }
  }
}

bool Rules::is_overdue(std::string_view member, double score, int64_t now_ms) const {
  return score / 1000 + static_cast<double>(number(member.substr(38))) <
         static_cast<double>(now_ms);
}

bool Rules::is_dead(std::string_view member) const {
  std::string channel(kChannelPrefix);
  channel.append(member.substr(0, kCidSize));
  return server_.receiver_count(channel) == 0;
}

const Store::SortedSet *Rules::queue_at(std::string_view key) const {
  if (key.empty()) return nullptr;
  const auto found = server_.store().keys().find(key);
  if (found == server_.store().keys().end()) return nullptr;
  return std::get_if<Store::SortedSet>(&found->second.data);
}

// ---- what the store tells ----------------------------------------------------------------------

void Rules::changed(std::string_view key) {
  if (is_running_) {
    changed_.emplace_back(key);
    return;
  }
  // It has expired: for good, even if the clock goes back.
  const auto found = locks_.find(key);
  if (found == locks_.end() || server_.store().keys().contains(key)) return;
  judge_runout(key, found->second);
  found->second.holder.clear();
  found->second.expires_ms = -1;
}

void Rules::queued(std::string_view key, std::string_view member, double score) {
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
  if (tickets.empty()) tally_.waits++;
  if (call_.ticket.empty()) {
    if (score <= last_ticket_) verdict_.broken("a new ticket is the last", how);
    tickets.insert(score);
  } else if (!tickets.contains(score)) {
    verdict_.broken("a ticket is one that was given", how);
  }
}

void Rules::dequeued(std::string_view key, std::string_view member, double score) {
  gone_.push_back({std::string(key), std::string(member), score});
}

void Rules::forgotten() {
  for (auto &[key, lock] : locks_) {
    lock.holder.clear();
    lock.expires_ms = -1;
  }
}

std::vector<std::string> Rules::holders() const {
  std::vector<std::string> tokens;
  for (const auto &[key, lock] : locks_) {
    if (!lock.holder.empty()) tokens.push_back(lock.holder);
  }
  for (const auto &[lock, recent] : recent_) {
    for (const auto &[token, granted_at] : recent) tokens.push_back(token);
  }
  return tokens;
}

// ---- in the long run ---------------------------------------------------------------------------

std::vector<Rules::Idle> Rules::idle_locks(
    const std::function<bool(std::string_view cid)> &is_able) {
  std::vector<Idle> idle;
  const int64_t now_ms = server_.now_us() / 1000;
  for (const auto &[lock, queue_key] : queue_of_) {
    int64_t expires_ms = -1;
    Lock &known = locks_[lock];
    const auto *queue = queue_at(queue_key);
    const bool is_waited_for =
        queue != nullptr && holder_of(lock, now_ms, expires_ms).empty() &&
        std::any_of(queue->order.begin(), queue->order.end(), [&](const auto &entry) {
          return !is_overdue(entry.second, entry.first, now_ms) &&
                 is_able(std::string_view(entry.second).substr(0, kCidSize));
        });
    if (!is_waited_for) {
      known.idle_since = -1;
      continue;
    }
    if (known.idle_since < 0) known.idle_since = schedule_.now();
    idle.push_back({lock, known.idle_since});
  }
  return idle;
}

size_t Rules::waiter_count(std::string_view lock) const {
  const auto found = queue_of_.find(lock);
  const auto *queue = found == queue_of_.end() ? nullptr : queue_at(found->second);
  return queue == nullptr ? 0 : queue->order.size();
}

void Rules::judge_leftovers(Nanos gone_for, Nanos longest_lease) {
  const int64_t now_ms = server_.now_us() / 1000;
  const int64_t gone_ms = gone_for / kMs;
  for (const auto &[key, entry] : server_.store().keys()) {
    if (!is_there(entry, now_ms)) continue;
    const bool is_aux = key.find(":rl1") != std::string::npos;
    int64_t limit_ms = longest_lease / kMs;
    if (is_aux && (key.back() == 'q' || key.back() == 'w')) limit_ms = kQueueLimitMs;
    if (is_aux && key.back() == 'f') limit_ms = kFenceLimitMs;
    // A rate of its own is the server's right.
    if (gone_ms > limit_ms + limit_ms / 50 + 10) {
      verdict_.broken("nothing outlives its time when all clients are gone",
                      key + ", " + std::to_string(gone_ms) + " ms after");
    }
  }
}

}  // namespace redlatch::sim
