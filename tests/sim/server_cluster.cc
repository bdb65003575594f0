// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Server: as a node of a cluster. It refuses what is not about its own slots, and checks each
// command in a script in the same way.
#include <algorithm>
#include <array>
#include <utility>

#include "server.h"

namespace redlatch::sim {

Argv Server::keys_of(Argv argv) {
  static constexpr std::array<std::string_view, 14> kWithKeys = {
      "SET",  "GET",  "EXISTS", "DEL",    "PTTL", "PEXPIRE", "PEXPIREAT",
      "TYPE", "HSET", "HGET",   "STRLEN", "ZADD", "ZREM",    "ZCARD"};
  if (argv[0].starts_with("EVAL") && argv.size() > 2) {
    return argv.subspan(3, std::min(static_cast<size_t>(integer_of(argv[2])), argv.size() - 3));
  }
  const bool has_key = std::find(kWithKeys.begin(), kWithKeys.end(), argv[0]) != kWithKeys.end();
  return has_key && argv.size() > 1 ? argv.subspan(1, 1) : Argv();
}

bool Server::has_key(std::string_view key) const {
  const Store::Entry *entry = store_.entry_at(key);
  return entry != nullptr && (entry->expires_ms < 0 || now_us() / 1000 <= entry->expires_ms);
}

bool Server::is_channel_here(std::string_view channel) const {
  return shards_ == nullptr ||
         !shards_->refusal_of_channel(static_cast<size_t>(number_ - 1), channel);
}

// nullopt: the command is to be carried out.
std::optional<Value> Server::answer_of_cluster(Session &session, Argv argv) {
  if (shards_ == nullptr) return std::nullopt;
  const auto number = static_cast<size_t>(number_ - 1);
  if (argv[0] == "CLUSTER") return shards_->describe(number, argv[1]);
  if (argv[0] == "ASKING") {
    session.is_asking = true;
    return Value::status("OK");
  }
  is_asking_ = std::exchange(session.is_asking, false);
  const Argv keys = keys_of(argv);
  return keys.empty() ? std::nullopt : shards_->refusal(number, keys, is_asking_);
}

// A command in a script; its name is in lower or upper case.
bool Server::is_out_of_reach(Argv argv) {
  if (shards_ == nullptr) return false;
  std::string name(argv[0]);
  for (char &c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  const auto number = static_cast<size_t>(number_ - 1);
  if (name == "spublish") return shards_->refusal_of_channel(number, argv[1]).has_value();
  if (name == "time" || name == "publish" || name == "pubsub" || name == "scan") return false;
  const bool is_of_several = name == "exists" || name == "del";
  const Argv keys = argv.subspan(1, is_of_several ? argv.size() - 1 : 1);
  return shards_->refusal(number, keys, is_asking_).has_value();
}

// ---- keys on their way -------------------------------------------------------------------------

std::optional<Store::Entry> Server::extract(const std::string &key) {
  if (!has_key(key)) {
    store_.assign(key, std::nullopt);
    return std::nullopt;
  }
  const Store::Entry entry = *store_.entry_at(key);
  store_.assign(key, std::nullopt);
  is_carried_ = true;
  changed(key);
  is_carried_ = false;
  Session background;
  journalise(background);
  return entry;
}

void Server::restore(const std::string &key, const Store::Entry &entry) {
  store_.assign(key, entry);
  is_carried_ = true;
  changed(key);
  is_carried_ = false;
  Session background;
  journalise(background);
}

void Server::unsubscribe(const std::function<bool(std::string_view channel)> &is_gone) {
  for (auto &[link, session] : sessions_) {
    if (!session.is_sharded || session.channel.empty() || !is_gone(session.channel)) continue;
    std::string channel = std::exchange(session.channel, {});
    Value gone =
        Value::list({Value::of("sunsubscribe"), Value::of(std::move(channel)), Value::of(0)});
    network_.send_down(link, {{Message::Kind::kPush, std::move(gone)}}, false);
  }
}

void Server::step_down() {
  store_.set_replica(true);
  unsubscribe([](std::string_view) { return true; });
}

}  // namespace redlatch::sim
