// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Server: the commands of a handshake, with the replies of Redis 6.2 and 7.0.
#include <algorithm>

#include "all_scripts.h"
#include "server.h"

namespace redlatch::sim {

namespace {

Value unknown(std::string_view command) {
  return Value::error("ERR unknown command '" + std::string(command) +
                      "', with args beginning with: ");
}

Value no_permission() {
  return Value::error(
      "NOPERM this user has no permissions to access one of the channels used as arguments");
}

bool is_probe(Argv argv) {
  if (argv[0] != "EVAL") return false;
  for (const bool is_sharded : {false, true}) {
    const auto &probe =
        protocol::script_text(protocol::Script::kProbe, protocol::Format::kString, is_sharded);
    if (probe.text() == argv[1]) return true;
  }
  return false;
}

bool is_of_string_format(std::string_view sha1, bool is_sharded) {
  for (size_t i = 0; i < protocol::kScriptCount; i++) {
    const auto script = static_cast<protocol::Script>(i);
    if (protocol::script_text(script, protocol::Format::kString, is_sharded).sha1 == sha1) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<Value> Server::greet(Session &session, Argv argv) {
  if (argv[0] == "HELLO") return hello(session, argv);
  if (argv[0] == "AUTH") {
    return auth(session, argv.size() > 2 ? argv[1] : "default", argv[argv.size() - 1]);
  }
  if (!session.is_authenticated) return Value::error("NOAUTH Authentication required.");
  if (argv[0] == "CLIENT") return client_command(session, argv);
  if (argv[0] == "SELECT") {
    session.database = argv[1] == "1" ? 1 : 0;
    return Value::status("OK");
  }
  if (argv[0] == "INFO") return info(session, argv[1]);
  if (argv[0] == "PING") return Value::list({Value::of("pong"), Value::of("")});
  if (argv[0] == "TIME") return store_.execute(argv, now_us());
  if (argv[0] == "SCRIPT") return load_script(argv[2]);
  if (argv[0] == "SPUBLISH" || argv[0] == "SSUBSCRIBE") {
    if (!plan_.is_sharded) return unknown(argv[0]);
    if (argv.size() == 1) return Value::error("ERR wrong number of arguments for 'x' command");
  }
  if (argv[0].ends_with("SUBSCRIBE")) return subscribe(session, argv);
  if (!is_probe(argv)) return std::nullopt;
  if (auto refusal = answer_of_cluster(session, argv)) return refusal;
  Value counts = store_.execute(argv, now_us());
  // The second channel may have the slot of another node of a cluster.
  session.is_probed =
      counts.items.size() == 2 && counts.items[0].integer == 1 &&
      (counts.items[1].integer == 0 || (shards_ != nullptr && counts.items[1].integer == -1));
  return counts;
}

// Some services name a version whose sharded channels they lack.
std::string_view Server::version() const {
  return plan_.is_sharded || plan_.lacks_sharded ? "7.0.15" : "6.2.14";
}

Value Server::hello(Session &session, Argv argv) {
  if (!plan_.knows_hello) return unknown(argv[0]);
  const int protocol = argv.size() < 2 ? session.protocol : argv[1] == "3" ? 3 : 2;
  if (protocol > plan_.protocol) return Value::error("NOPROTO unsupported protocol version");
  for (size_t i = 2; i + 2 < argv.size(); i++) {
    if (argv[i] != "AUTH") continue;
    if (Value reply = auth(session, argv[i + 1], argv[i + 2]); reply.is_error()) return reply;
  }
  if (!session.is_authenticated) {
    return Value::error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  session.protocol = protocol;
  Value reply = Value::list({Value::of("server"), Value::of("redis"), Value::of("version"),
                             Value::of(std::string(version())), Value::of("proto"),
                             Value::of(int64_t{protocol})});
  if (shards_ != nullptr) {
    for (const char *text : {"mode", "cluster"}) reply.items.push_back(Value::of(text));
  }
  if (journal_ != nullptr) {
    session.has_read_primary = !store_.is_replica();
    for (const char *text : {"role", store_.is_replica() ? "replica" : "master"}) {
      reply.items.push_back(Value::of(text));
    }
  }
  return reply;
}

Value Server::auth(Session &session, std::string_view user, std::string_view password) const {
  const bool is_right =
      std::find(passwords_.begin(), passwords_.end(), password) != passwords_.end();
  if (!is_right || (user != "default" && user != kPoller)) {
    return Value::error("WRONGPASS invalid username-password pair or user is disabled.");
  }
  session.is_authenticated = true;
  session.is_uncounted = user == kPoller && plan_.counts_wrongly;
  session.may_subscribe = user != kPoller || plan_.counts_wrongly;
  return Value::status("OK");
}

Value Server::info(Session &session, std::string_view section) const {
  if (plan_.is_info_forbidden) {
    return Value::error("NOPERM this user has no permissions to run the 'info' command");
  }
  if (section == "replication") {
    session.has_read_replica = store_.is_replica();
    session.has_read_primary = !store_.is_replica();
    return Value::of(std::string("# Replication\r\nrole:") +
                     (store_.is_replica() ? "slave" : "master") + "\r\n");
  }
  return Value::of("# Server\r\nredis_version:" + std::string(version()) + "\r\nredis_mode:" +
                   (shards_ != nullptr ? "cluster" : "standalone") + "\r\nrun_id:" + run_id() +
                   "\r\nuptime_in_seconds:" + std::to_string(uptime_s()) + "\r\n");
}

// Under the product's hash even if the text has the defect of a mutant.
Value Server::load_script(std::string_view text) {
  Value loaded = Value::error("ERR Error compiling script");
  for_each_script([&](protocol::Script, protocol::Format, const protocol::ScriptText &script) {
    if (script.text() != text) return;
    store_.define(script.sha1, text_of(script));
    loaded = Value::of(std::string(script.sha1));
  });
  return loaded;
}

Value Server::subscribe(Session &session, Argv argv) const {
  if (!session.may_subscribe) return no_permission();
  const bool is_sharded = argv[0] == "SSUBSCRIBE";
  if (shards_ != nullptr && is_sharded) {
    auto refusal = shards_->refusal_of_channel(static_cast<size_t>(number_ - 1), argv[1]);
    if (refusal) return *std::move(refusal);
  }
  if (shards_ != nullptr && plan_.is_sharded && !is_sharded) {
    session.notices = argv[1];
  } else {
    session.channel = argv[1];
    session.was_subscribed = true;
    session.is_sharded = is_sharded;
  }
  return Value::list(
      {Value::of("subscribe"), Value::of(std::string(argv[1])), Value::of(int64_t{1})});
}

Value Server::client_command(Session &session, Argv argv) const {
  if (argv[1] == "TRACKING") {
    if (session.protocol != 3) {
      return Value::error(
          "ERR Client tracking can be switched on only in RESP3 mode or with redirection");
    }
    session.is_tracking = true;
  }
  if (argv[1] == "CACHING") session.tracks_next = true;
  return Value::status("OK");
}

// Rules about what a handshake leaves behind.
void Server::check_session(const Session &session, Argv argv, const Value &reply) {
  if (session.is_peer) return;
  const auto broken = [&](std::string_view rule) {
    verdict_.broken(rule, "node " + std::to_string(number_) + ": " + std::string(argv[0]));
  };
  if (session.database != plan_.database) broken("commands run in the database of the settings");
  if (session.protocol == 2 && !session.channel.empty()) {
    broken("with RESP2 a subscribed connection sends no commands");
  }
  // The first ACQUIRE of a user without rights to load scripts would meet it, too; there are none.
  const bool is_known = session.flushes_before == flush_count_;
  if (is_known && reply.text.starts_with("NOSCRIPT") &&
      is_of_string_format(argv[1], plan_.is_sharded)) {
    broken("the handshake loads the scripts");
  }
}

}  // namespace redlatch::sim
