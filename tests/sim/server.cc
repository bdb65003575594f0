// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "server.h"

#include <algorithm>
#include <utility>

#include "all_scripts.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kEpoch = 1'700'000'000LL * 1000 * kMs;

constexpr int64_t kDayUs = 86'400'000'000;

// Clocks of several servers differ by up to clock_offset_max.
Clock clock_of(const Plan &plan, int number) {
  const bool is_one_of_several = number > 0;
  Random random(plan.seed, is_one_of_several ? 20'000 + static_cast<uint64_t>(number) : 2);
  int64_t rate = plan.rate_limit_ppm;
  if (!plan.has_worst_rates()) rate = random.between(-rate, rate);
  // The clocks of the nodes of a cluster must agree. They differ from those of the clients.
  const int64_t most = plan.rate_limit_ppm;
  if (plan.is_cluster()) rate = Random(plan.seed, 2).between(-most, most);
  const Nanos off = plan.clock_offset_max;
  return {kEpoch + (is_one_of_several ? random.between(-off, off) : 0), rate};
}

const protocol::ScriptText *script_of(std::string_view text) {
  const protocol::ScriptText *found = nullptr;
  for_each_script([&](protocol::Script, protocol::Format, const protocol::ScriptText &script) {
    if (script.text() == text || script.sha1 == text) found = &script;
  });
  return found;
}

}  // namespace

Server::Server(const Plan &plan, Schedule &schedule, Network &network, Stats &stats, Trace &trace,
               Verdict &verdict, const Mutant *mutant, int number)
    : plan_(plan),
      schedule_(schedule),
      network_(network),
      stats_(stats),
      trace_(trace),
      verdict_(verdict),
      mutant_(mutant),
      number_(number),
      clock_(clock_of(plan, number)),
      started_us_(now_us() - kDayUs),
      store_(*this) {
  set_may_publish(true);
}

std::string Server::run_id() const {
  return "run " + std::to_string(life_) + " of node " + std::to_string(number_);
}

bool Server::accept(uint64_t link, int protocol) {
  if (!is_up_) return false;
  Session session;
  session.protocol = protocol;
  session.is_peer = protocol == kPeerProtocol;
  session.is_authenticated = !plan_.has_password;
  session.flushes_before = flush_count_;
  sessions_.emplace(link, std::move(session));
  return true;
}

bool Server::is_probed(uint64_t commands, uint64_t messages) const {
  const auto asking = sessions_.find(commands);
  const auto told = sessions_.find(messages);
  return (asking == sessions_.end() || asking->second.is_probed) &&
         (told == sessions_.end() || told->second.was_subscribed);
}

bool Server::has_read_replica(uint64_t link) const {
  const auto found = sessions_.find(link);
  return found != sessions_.end() && found->second.has_read_replica;
}

// The product's text, with the defect of the mutant, and perhaps with a cap on the work of one call
// that is small enough for short queues to reach.
std::string Server::text_of(const protocol::ScriptText &script) const {
  constexpr std::string_view kCap = "looked == 256";
  std::string text = mutated(script.text(), mutant_);
  if (!plan_.has_small_cap) return text;
  for (size_t at = 0; (at = text.find(kCap, at)) != std::string::npos;) {
    text.replace(at, kCap.size(), "looked == 2");
  }
  return text;
}

bool Server::has_token_of(std::string_view cid) const {
  const int64_t now_ms = now_us() / 1000;
  return std::any_of(store_.keys().begin(), store_.keys().end(), [&](const auto &key) {
    const Store::Entry &entry = key.second;
    if (entry.expires_ms >= 0 && entry.expires_ms <= now_ms) return false;
    if (const auto *text = std::get_if<std::string>(&entry.data)) return text->starts_with(cid);
    const auto *set = std::get_if<Store::SortedSet>(&entry.data);
    if (set == nullptr) return false;
    const auto found = set->scores.lower_bound(cid);
    return found != set->scores.end() && found->first.starts_with(cid);
  });
}

int64_t Server::receiver_count(std::string_view channel) const {
  return std::count_if(sessions_.begin(), sessions_.end(), [&](const auto &entry) {
    return !channel.empty() && entry.second.channel == channel && !entry.second.is_uncounted;
  });
}

// ---- commands ----------------------------------------------------------------------------------

void Server::received(uint64_t link, CommandList commands) {
  if (!is_up_) return;
  if (schedule_.now() < paused_until_) {
    waiting_.push_back({link, std::move(commands)});
    return;
  }
  run(link, std::move(commands));
}

void Server::run(uint64_t link, CommandList commands) {
  const auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  current_ = link;
  answers_.clear();
  for (Command &command : commands) {
    if (found->second.wait != 0) {
      found->second.behind.push_back(std::move(command));
      continue;
    }
    command.view(argv_);
    if (journal_ != nullptr && argv_[0] == "WAIT") {
      wait(link, found->second, argv_);
      continue;
    }
    const size_t pushed = answers_.size();
    const bool is_confirmed_by_push =
        found->second.protocol == 3 && argv_[0].ends_with("SUBSCRIBE");
    Message reply{Message::Kind::kReply, execute(found->second, argv_)};
    if (is_confirmed_by_push && !reply.value.is_error()) continue;
    const bool is_behind = plan_.is_push_behind_reply;
    answers_.insert(is_behind ? answers_.begin() + static_cast<ptrdiff_t>(pushed) : answers_.end(),
                    std::move(reply));
  }
  current_ = 0;
  if (!answers_.empty()) network_.send_down(link, std::exchange(answers_, {}), false);
}

Value Server::execute(Session &session, Argv argv) {
  stats_.commands++;
  const int64_t us = now_us();
  if (auto greeting = greet(session, argv)) {
    if (trace_.is_told()) tell(argv, *greeting);
    trace_.mix(static_cast<uint64_t>(us));
    return *std::move(greeting);
  }
  if (auto answer = answer_of_cluster(session, argv)) {
    if (trace_.is_told()) tell(argv, *answer);
    trace_.mix(static_cast<uint64_t>(us));
    return *std::move(answer);
  }
  for (Witness *witness : witnesses_) witness->before(argv, us);
  Value reply;
  const bool is_other = mutant_ != nullptr || plan_.has_small_cap;
  const auto *script = argv[0] == "EVAL" && is_other ? script_of(argv[1]) : nullptr;
  if (script != nullptr) {
    // A mutant's text runs in place of the product's.
    store_.define(script->sha1, text_of(*script));
    std::vector<std::string_view> by_digest(argv.begin(), argv.end());
    by_digest[0] = "EVALSHA";
    by_digest[1] = script->sha1;
    reply = store_.execute(by_digest, us);
  } else {
    reply = store_.execute(argv, us);
  }
  if (session.is_tracking && std::exchange(session.tracks_next, false) && argv.size() > 1) {
    session.tracked.emplace(argv[1]);
  }
  if (reply.text.starts_with("NOSCRIPT")) stats_.hit(Fault::kScriptFlush);
  if (reply.is_error() && reply.text.find("OOM") != std::string::npos) stats_.hit(Fault::kMemory);
  if (reply.text.starts_with("READONLY")) stats_.hit(Fault::kReplica);
  if (journal_ != nullptr) journalise(session);
  for (Witness *witness : witnesses_) witness->after(argv, reply, us);
  check_session(session, argv, reply);
  if (trace_.is_told()) tell(argv, reply);
  trace_.mix(static_cast<uint64_t>(us));
  trace_.mix(static_cast<uint64_t>(reply.integer));
  if (!reply.items.empty()) trace_.mix(static_cast<uint64_t>(reply.items[0].integer));
  return reply;
}

// Trace a command: scripts by name, without auxiliary keys, with a short form of the reply.
void Server::tell(Argv argv, const Value &reply) {
  std::string text;
  for (size_t i = 0; i < argv.size(); i++) {
    std::string_view word = argv[i];
    if (const auto *script = i == 1 ? script_of(word) : nullptr) word = script->name;
    const bool is_aux = word.find(":rl1") != std::string_view::npos;
    if (i == 2 || is_aux) continue;
    text.append(text.empty() ? "" : " ").append(word.substr(0, 60));
  }
  text.append(" ->");
  const auto append = [&](const Value &value) {
    text.append(" ").append(value.kind == Value::Kind::kInteger ? std::to_string(value.integer)
                                                                : value.text.substr(0, 60));
  };
  append(reply);
  for (const Value &item : reply.items) append(item);
  if (number_ > 0) return trace_.say(schedule_.now(), "node %d: %s", number_ - 1, text.c_str());
  trace_.say(schedule_.now(), "server: %s", text.c_str());
}

// ---- Store::Listener ---------------------------------------------------------------------------

int64_t Server::published(std::string_view channel, std::string_view message, bool is_sharded) {
  if (shards_ != nullptr) {
    shards_->published(static_cast<size_t>(number_ - 1), channel, message, is_sharded);
  }
  return deliver(channel, message, is_sharded);
}

int64_t Server::deliver(std::string_view channel, std::string_view message, bool is_sharded) {
  int64_t count = 0;
  for (const auto &[link, session] : sessions_) {
    const bool is_beside = !is_sharded && session.notices == channel;
    if (!is_beside && (session.channel != channel || session.is_sharded != is_sharded)) continue;
    if (!session.is_uncounted) count++;
    push(link, {is_sharded ? "smessage" : "message", channel, message});
  }
  return count;
}

int64_t Server::subscribers(std::string_view channel) {
  return std::count_if(sessions_.begin(), sessions_.end(), [&](const auto &entry) {
    return entry.second.channel == channel && !entry.second.is_sharded &&
           !entry.second.is_uncounted;
  });
}

// The last one of an invalidation is a list.
void Server::push(uint64_t link, std::initializer_list<std::string_view> texts) {
  std::vector<Value> items;
  for (const std::string_view text : texts) items.push_back(Value::of(std::string(text)));
  trace_.say(schedule_.now(), "server: tells connection %llu '%s'",
             static_cast<unsigned long long>(link), items.back().text.c_str());
  if (items.front().text == "invalidate") items.back() = Value::list({std::move(items.back())});
  Message message{Message::Kind::kPush, Value::list(std::move(items))};
  if (link == current_) {
    answers_.push_back(std::move(message));
    return;
  }
  Messages messages;
  messages.push_back(std::move(message));
  network_.send_down(link, std::move(messages), true);
}

void Server::changed(std::string_view key) {
  if (journal_ != nullptr) dirty_.emplace(key);
  for (auto &[link, session] : sessions_) {
    const auto found = session.tracked.find(key);
    if (found == session.tracked.end()) continue;
    session.tracked.erase(found);
    push(link, {"invalidate", key});
  }
  if (is_carried_) return;
  for (Witness *witness : witnesses_) witness->changed(key);
}

void Server::queued(std::string_view key, std::string_view member, double score) {
  for (Witness *witness : witnesses_) witness->queued(key, member, score);
}

void Server::dequeued(std::string_view key, std::string_view member, double score) {
  for (Witness *witness : witnesses_) witness->dequeued(key, member, score);
}

// ---- faults ------------------------------------------------------------------------------------

void Server::closed(uint64_t link) { sessions_.erase(link); }

void Server::pause(Nanos until) {
  paused_until_ = std::max(paused_until_, until);
  schedule_.at(paused_until_, [this] { resume(); });
}

// Commands that arrived during the pause run in the order of their arrival.
void Server::resume() {
  if (schedule_.now() < paused_until_) return;
  auto waiting = std::exchange(waiting_, {});
  if (!waiting.empty()) stats_.hit(Fault::kServerPause);
  for (Waiting &entry : waiting) run(entry.link, std::move(entry.commands));
}

void Server::crash() {
  is_up_ = false;
  waiting_.clear();
  const auto sessions = std::exchange(sessions_, {});
  for (const auto &[link, session] : sessions) network_.reset(link);
}

void Server::forget() {
  store_.clear_keys();
  for (Witness *witness : witnesses_) witness->forgotten();
}

void Server::restart(bool keeps_data) {
  is_up_ = true;
  paused_until_ = 0;
  started_us_ = now_us();
  life_++;
  flush_scripts();
  if (keeps_data) return;
  store_.clear();
  for (Witness *witness : witnesses_) witness->forgotten();
}

}  // namespace redlatch::sim
