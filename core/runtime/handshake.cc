// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/handshake.h"

#include <cstring>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "protocol/answer.h"
#include "protocol/command.h"

namespace redlatch::runtime {

namespace {

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version &) const = default;
};

constexpr std::string_view kUnknownCommand = "ERR unknown command";
constexpr Version kOldestRedis{6, 2};
constexpr Version kOldestValkey{7, 2};
constexpr Version kShardedChannels{7, 0};

Version parse_version(std::string_view text) {
  Version version;
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || !parse_number(text.substr(0, dot), version.major)) return {};
  const std::string_view rest = text.substr(dot + 1);
  if (!parse_number(rest.substr(0, rest.find('.')), version.minor)) return {};
  return version;
}

// A server that is loading or busy says nothing about what it allows.
bool will_pass(const Reply &reply) {
  return protocol::refusal_of(reply).kind == protocol::Refusal::Kind::kTransient;
}

// What one connection says before it is used.
class Handshake {
 public:
  Handshake(net::Connection &connection, const Settings &settings, Nanos limit, int wake_fd)
      : connection_(connection), settings_(settings), limit_(limit), wake_fd_(wake_fd) {}

  // User, name and protocol; what the server is.
  Outcome greet();
  Outcome select_database();
  Outcome load_scripts();
  Outcome subscribe(const std::string &channel, bool is_sharded, lock::ServerFacts &facts);
  Outcome probe(const std::string &channel, lock::ServerFacts &facts);
  bool is_sharded() const { return is_sharded_; }
  int protocol() const { return protocol_; }

 private:
  Outcome exchange(std::string_view bytes, size_t count) {
    return connection_.exchange(bytes, count, limit_, wake_fd_, replies_);
  }
  Outcome say(const protocol::Command &command);
  Outcome say_hello(int protocol);
  Outcome greet_without_hello();
  Outcome refused(const Reply &reply, const std::string &what) const;
  Outcome check_version(std::string_view server, std::string_view version);
  std::string_view user() const {
    if (settings_.user.empty()) return "default";
    return settings_.user;
  }

  net::Connection &connection_;
  const Settings &settings_;
  const Nanos limit_;
  const int wake_fd_;
  bool is_sharded_ = false;
  int protocol_ = 0;  // 0: HELLO was not understood
  std::vector<net::ReplyPtr> replies_;
};

// One command, one reply.
Outcome Handshake::say(const protocol::Command &command) {
  std::string bytes;
  net::append_command(bytes, command.argv());
  auto outcome = exchange(bytes, 1);
  explicit_bzero(bytes.data(), bytes.size());  // it may hold the password
  return outcome;
}

Outcome Handshake::refused(const Reply &reply, const std::string &what) const {
  auto refusal = protocol::refusal_of(reply);
  // The server would quote its arguments, and those of AUTH are secret.
  if (refusal.message.starts_with(kUnknownCommand)) refusal.message = kUnknownCommand;
  if (refusal.message.starts_with("NOAUTH")) refusal.message = "it asks for a password (NOAUTH)";
  return failure(refusal.status(),
                 settings_.address() + " refused " + what + ": " + refusal.message);
}

Outcome Handshake::check_version(std::string_view server, std::string_view version) {
  const bool is_valkey = server == "valkey";
  const Version known = parse_version(version);
  is_sharded_ = known >= kShardedChannels;
  if (known >= (is_valkey ? kOldestValkey : kOldestRedis)) return {};
  return failure(Status::kUnsupported, settings_.address() + " runs " + quoted(server) +
                                           " version " + quoted(version) +
                                           ": Redis 6.2, Valkey 7.2 or newer is needed");
}

// protocol_ stays 0 when the server does not know the command or this protocol.
Outcome Handshake::say_hello(int protocol) {
  protocol::Command command;
  command.add("HELLO").add(protocol);
  if (!settings_.password.empty()) command.add("AUTH").add(user()).add(settings_.password);
  if (!settings_.client_name.empty()) command.add("SETNAME").add(settings_.client_name);
  if (auto outcome = say(command); !outcome.ok()) return outcome;
  const Reply &reply = *replies_[0];
  if (reply.is_error()) {
    // Valkey does not look up a command of a stranger: there, one it does not know is NOAUTH.
    const bool is_unread = !settings_.password.empty() && reply.text().starts_with("NOAUTH");
    const bool is_unknown = is_unread || reply.text().starts_with(kUnknownCommand) ||
                            reply.text().starts_with("NOPROTO");
    return is_unknown ? Outcome{} : refused(reply, "the connection");
  }
  protocol_ = protocol;
  std::string_view server;
  std::string_view version;
  for (size_t i = 0; i + 1 < reply.count(); i += 2) {
    if (reply.at(i).text() == "server") server = reply.at(i + 1).text();
    if (reply.at(i).text() == "version") version = reply.at(i + 1).text();
  }
  return check_version(server, version);
}

// Some proxies know neither HELLO nor RESP3.
Outcome Handshake::greet_without_hello() {
  protocol_ = 2;
  if (!settings_.password.empty()) {
    protocol::Command auth;
    auth.add("AUTH");
    if (!settings_.user.empty()) auth.add(settings_.user);
    auth.add(settings_.password);
    if (auto outcome = say(auth); !outcome.ok()) return outcome;
    if (replies_[0]->is_error()) return refused(*replies_[0], "the password");
  }
  protocol::Command info;
  info.add("INFO").add("server");
  if (auto outcome = say(info); !outcome.ok()) return outcome;
  const bool is_stranger = replies_[0]->is_error() && replies_[0]->text().starts_with("NOAUTH");
  if (is_stranger || will_pass(*replies_[0])) return refused(*replies_[0], "the connection");
  const std::string_view text = replies_[0]->is_error() ? "" : replies_[0]->text();
  if (const auto version = protocol::info_value(text, "valkey_version"); !version.empty()) {
    return check_version("valkey", version);
  }
  if (const auto version = protocol::info_value(text, "redis_version"); !version.empty()) {
    return check_version("redis", version);
  }
  // With protocol=2 the caller vouches for the version of the server.
  if (settings_.protocol == 2) return {};
  return failure(Status::kUnsupported,
                 settings_.address() +
                     " supports neither RESP3 nor a version query: Redis 6.2, Valkey 7.2 or newer "
                     "is needed; if a proxy hides the version, set protocol=2");
}

Outcome Handshake::greet() {
  for (const int protocol : {3, 2}) {
    if (protocol > settings_.protocol) continue;
    if (auto outcome = say_hello(protocol); !outcome.ok()) return outcome;
    if (protocol_ != 0) return {};
  }
  return greet_without_hello();
}

Outcome Handshake::select_database() {
  if (settings_.database == 0) return {};
  protocol::Command command;
  command.add("SELECT").add(settings_.database);
  auto outcome = say(command);
  if (!outcome.ok() || !replies_[0]->is_error()) return outcome;
  auto why = refused(*replies_[0], "database " + std::to_string(settings_.database));
  // No such database will not pass; a server that is loading will.
  if (replies_[0]->text().starts_with("ERR")) why.status = Status::kUnsupported;
  return why;
}

// A user without the right to load sends each text once, on NOSCRIPT; so do all with those of the
// hash format, which few need.
Outcome Handshake::load_scripts() {
  std::string bytes;
  for (size_t i = 0; i < protocol::kScriptCount; i++) {
    protocol::Command command;
    command.add("SCRIPT").add("LOAD");
    command.add(protocol::script_text(static_cast<protocol::Script>(i), protocol::Format::kString,
                                      is_sharded_)
                    .text);
    net::append_command(bytes, command.argv());
  }
  return exchange(bytes, protocol::kScriptCount);
}

// With RESP3 a subscription is confirmed by a push and refused by a reply; HELLO marks its end.
// With RESP2 it is a reply, and the connection is of no other use afterwards.
Outcome Handshake::subscribe(const std::string &channel, bool is_sharded,
                             lock::ServerFacts &facts) {
  protocol::Command subscription;
  subscription.add(is_sharded ? "SSUBSCRIBE" : "SUBSCRIBE").add(channel);
  protocol::Command hello;
  hello.add("HELLO");
  std::string bytes;
  net::append_command(bytes, subscription.argv());
  if (protocol_ == 3) net::append_command(bytes, hello.argv());
  auto outcome = exchange(bytes, 1);
  if (!outcome.ok()) return outcome;
  const Reply &reply = *replies_[0];
  if (will_pass(reply)) return refused(reply, "the subscription");
  facts.is_push_trusted = !reply.is_error();
  if (facts.is_push_trusted) return {};
  facts.why_not_trusted = refused(reply, "the subscription").message;
  // Both replies may have come at once.
  return protocol_ == 3 && replies_.size() < 2 ? exchange({}, 1) : Outcome{};
}

// Some proxies subscribe and count receivers wrongly.
Outcome Handshake::probe(const std::string &channel, lock::ServerFacts &facts) {
  const std::string unused = channel + ":none";
  protocol::Dialect dialect;
  dialect.is_sharded = is_sharded_;
  protocol::Command probe;
  protocol::probe(probe, dialect, channel, unused);
  if (auto outcome = say(probe); !outcome.ok()) return outcome;
  const Reply &counts = *replies_[0];
  if (will_pass(counts)) return refused(counts, "a script");
  facts.is_push_trusted =
      counts.count() == 2 && counts.at(0).integer == 1 && counts.at(1).integer == 0;
  if (facts.is_push_trusted) return {};
  facts.why_not_trusted = settings_.address() +
                          ": a message to a channel with one receiver was counted as received by " +
                          std::to_string(counts.at(0).integer) +
                          ", one to a channel with none by " +
                          std::to_string(counts.at(1).integer) + " (-1: refused)";
  return {};
}

// Ask who the server is, for at most one command timeout. One that may not say it is no failure
// here.
Outcome ask_identity(net::Connection &connection, const Settings &settings, int wake_fd,
                     lock::ServerFacts &facts) {
  protocol::Command server;
  protocol::Command replication;
  protocol::Command time;
  server.add("INFO").add("server");
  replication.add("INFO").add("replication");
  time.add("TIME");
  std::string bytes;
  for (const protocol::Command *command : {&server, &replication, &time}) {
    net::append_command(bytes, command->argv());
  }
  std::vector<net::ReplyPtr> replies;
  const Nanos sent_at = boot_now();
  auto outcome = connection.exchange(bytes, 3, sent_at + settings.timeout, wake_fd, replies);
  if (!outcome.ok()) return outcome;
  const Nanos now = boot_now();
  for (const auto &reply : replies) {
    if (!reply->is_error()) continue;
    const auto refusal = protocol::refusal_of(*reply);
    const bool will_pass = refusal.kind == protocol::Refusal::Kind::kTransient;
    facts.why_unknown = failure(refusal.status(), refusal.message);
    return will_pass ? failure(refusal.status(), settings.address() + ": " + refusal.message)
                     : Outcome{};
  }
  int64_t seconds = 0;
  int64_t micros = 0;
  const std::string_view run_id = protocol::info_value(replies[0]->text(), "run_id");
  const bool is_clear = !run_id.empty() &&
                        parse_number(protocol::info_value(replies[0]->text(), "uptime_in_seconds"),
                                     facts.age.uptime_s) &&
                        parse_number(replies[2]->at(0).text(), seconds) &&
                        parse_number(replies[2]->at(1).text(), micros) && facts.age.uptime_s >= 0 &&
                        seconds >= 0 && seconds < kMaxServerMs / 1000 && micros >= 0 &&
                        micros < 1'000'000;
  facts.is_replica = protocol::info_value(replies[1]->text(), "role") == "slave";
  facts.is_cluster_member = protocol::info_value(replies[0]->text(), "redis_mode") == "cluster";
  if (!is_clear) {
    facts.why_unknown = failure(Status::kUnsupported, "INFO without run_id or uptime_in_seconds");
    return {};
  }
  facts.run_id = run_id;
  facts.age.round_trip = now - sent_at;
  facts.age.told_at = sent_at;
  facts.age.clock = seconds * 1000 * kMs + micros * 1000 - (sent_at + facts.age.round_trip / 2);
  return {};
}

Outcome dial(const Settings &settings, embedded::Membership *membership, int wake_fd,
             std::unique_ptr<net::Connection> &connection) {
  connection = std::make_unique<net::Connection>();
  const Nanos limit = boot_now() + settings.connect_timeout;
  if (membership != nullptr) return membership->dial(*connection, limit, wake_fd);
  return connection->dial(settings, limit, wake_fd);
}

}  // namespace

Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::Membership *membership, bool asks_identity, int wake_fd,
                         Connections &opened) {
  if (auto outcome = dial(settings, membership, wake_fd, opened.commands); !outcome.ok())
    return outcome;
  const Nanos limit = boot_now() + settings.timeout;
  Handshake handshake(*opened.commands, settings, limit, wake_fd);
  if (auto outcome = handshake.greet(); !outcome.ok()) return outcome;
  if (auto outcome = handshake.select_database(); !outcome.ok()) return outcome;
  if (auto outcome = handshake.load_scripts(); !outcome.ok()) return outcome;
  if (asks_identity) {
    auto outcome = ask_identity(*opened.commands, settings, wake_fd, opened.facts);
    if (!outcome.ok() || opened.facts.is_cluster_member) return outcome;
  }
  opened.facts.is_sharded = handshake.is_sharded();
  if (handshake.protocol() == 3) {
    opened.facts.can_track = true;
    auto outcome = handshake.subscribe(channel, handshake.is_sharded(), opened.facts);
    if (!outcome.ok()) return outcome;
  } else {
    if (auto outcome = dial(settings, membership, wake_fd, opened.messages); !outcome.ok())
      return outcome;
    Handshake second(*opened.messages, settings, boot_now() + settings.timeout, wake_fd);
    if (auto outcome = second.greet(); !outcome.ok()) return outcome;
    auto outcome = second.subscribe(channel, handshake.is_sharded(), opened.facts);
    if (!outcome.ok()) return outcome;
    if (!opened.facts.is_push_trusted) opened.messages.reset();
  }
  return opened.facts.is_push_trusted ? handshake.probe(channel, opened.facts) : Outcome{};
}

}  // namespace redlatch::runtime
