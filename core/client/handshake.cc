// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "client/handshake.h"

#include <vector>

#include "base/text.h"
#include "wire/answer.h"
#include "wire/command.h"

namespace redlatch::client {

namespace {

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version &) const = default;
};

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

class Handshake {
 public:
  Handshake(io::Connection &connection, const Settings &settings, Nanos limit, int wake_fd)
      : connection_(connection), settings_(settings), limit_(limit), wake_fd_(wake_fd) {}

  Outcome say_hello();
  Outcome select_database();
  Outcome load_scripts();
  Outcome subscribe(const std::string &channel, engine::ServerFacts &facts);
  bool is_sharded() const { return is_sharded_; }

 private:
  Outcome exchange(std::string_view bytes, size_t count) {
    return connection_.exchange(bytes, count, limit_, wake_fd_, replies_);
  }
  Outcome refused(const Reply &reply, const std::string &what) const;
  Outcome check_version(const Reply &hello);

  io::Connection &connection_;
  const Settings &settings_;
  const Nanos limit_;
  const int wake_fd_;
  bool is_sharded_ = false;
  std::vector<io::ReplyPtr> replies_;
};

Outcome Handshake::refused(const Reply &reply, const std::string &what) const {
  const auto refusal = wire::refusal_of(reply);
  return failure(refusal.status(),
                 settings_.address() + " refused " + what + ": " + refusal.message);
}

Outcome Handshake::check_version(const Reply &hello) {
  std::string_view server;
  std::string_view version;
  for (size_t i = 0; i + 1 < hello.count(); i += 2) {
    if (hello.at(i).text() == "server") server = hello.at(i + 1).text();
    if (hello.at(i).text() == "version") version = hello.at(i + 1).text();
  }
  const bool is_valkey = server == "valkey";
  const Version known = parse_version(version);
  is_sharded_ = known >= kShardedChannels;
  if (known >= (is_valkey ? kOldestValkey : kOldestRedis)) return {};
  return failure(Status::kUnsupported, settings_.address() + " runs " + quoted(server) +
                                           " version " + quoted(version) +
                                           ": Redis 6.2, Valkey 7.2 or newer is needed");
}

Outcome Handshake::say_hello() {
  wire::Command command;
  command.add("HELLO").add("3");
  if (!settings_.password.empty()) {
    command.add("AUTH");
    if (settings_.user.empty()) {
      command.add("default");
    } else {
      command.add(settings_.user);
    }
    command.add(settings_.password);
  }
  if (!settings_.client_name.empty()) command.add("SETNAME").add(settings_.client_name);
  std::string bytes;
  io::append_command(bytes, command.argv());
  auto outcome = exchange(bytes, 1);
  bytes.assign(bytes.size(), '\0');  // it held the password
  if (!outcome.ok()) return outcome;
  const Reply &reply = *replies_[0];
  if (reply.is_error()) {
    const bool is_unknown =
        reply.text().starts_with("ERR unknown command") || reply.text().starts_with("NOPROTO");
    if (!is_unknown) return refused(reply, "the connection");
    return failure(Status::kUnsupported,
                   settings_.address() +
                       " does not speak RESP3: Redis 6.2, Valkey 7.2 or newer "
                       "is needed");
  }
  return check_version(reply);
}

Outcome Handshake::select_database() {
  if (settings_.database == 0) return {};
  wire::Command command;
  command.add("SELECT").add(settings_.database);
  std::string bytes;
  io::append_command(bytes, command.argv());
  auto outcome = exchange(bytes, 1);
  if (!outcome.ok() || !replies_[0]->is_error()) return outcome;
  auto why = refused(*replies_[0], "database " + std::to_string(settings_.database));
  // No such database will not pass; a server that is loading will.
  if (replies_[0]->text().starts_with("ERR")) why.status = Status::kUnsupported;
  return why;
}

// A user without the right to load sends each text once, on NOSCRIPT.
Outcome Handshake::load_scripts() {
  std::string bytes;
  for (size_t i = 0; i < wire::kScriptCount; i++) {
    wire::Command command;
    command.add("SCRIPT").add("LOAD");
    command.add(wire::script_text(static_cast<wire::Script>(i), is_sharded_).text);
    io::append_command(bytes, command.argv());
  }
  return exchange(bytes, wire::kScriptCount);
}

// A server that is loading or busy says nothing about what it allows.
bool will_pass(const Reply &reply) {
  return wire::refusal_of(reply).kind == wire::Refusal::Kind::kTransient;
}

// With RESP3 a subscription is confirmed by a push and refused by a reply; HELLO marks its end.
// Some proxies subscribe and count receivers wrongly: a probe finds out.
Outcome Handshake::subscribe(const std::string &channel, engine::ServerFacts &facts) {
  wire::Command subscription;
  subscription.add(is_sharded_ ? "SSUBSCRIBE" : "SUBSCRIBE").add(channel);
  wire::Command hello;
  hello.add("HELLO");
  std::string bytes;
  io::append_command(bytes, subscription.argv());
  io::append_command(bytes, hello.argv());
  auto outcome = exchange(bytes, 1);
  if (!outcome.ok()) return outcome;
  if (will_pass(*replies_[0])) return refused(*replies_[0], "the subscription");
  facts.is_push_trusted = !replies_[0]->is_error();
  if (!facts.is_push_trusted) {
    facts.why_not_trusted = refused(*replies_[0], "the subscription").message;
  }
  // Both replies may have come at once.
  if (!facts.is_push_trusted) return replies_.size() > 1 ? Outcome{} : exchange({}, 1);
  const std::string unused = channel + ":none";
  wire::Dialect dialect;
  dialect.is_sharded = is_sharded_;
  wire::Command probe;
  wire::probe(probe, dialect, channel, unused);
  bytes.clear();
  io::append_command(bytes, probe.argv());
  outcome = exchange(bytes, 1);
  if (!outcome.ok()) return outcome;
  const Reply &counts = *replies_[0];
  if (will_pass(counts)) return refused(counts, "a script");
  facts.is_push_trusted =
      counts.count() == 2 && counts.at(0).integer == 1 && counts.at(1).integer == 0;
  if (facts.is_push_trusted) return {};
  facts.why_not_trusted = settings_.address() + ": a message to a channel with one receiver was " +
                          "counted as received by " + std::to_string(counts.at(0).integer) +
                          ", one to a channel with none by " +
                          std::to_string(counts.at(1).integer) + " (-1: refused)";
  return {};
}

}  // namespace

Outcome shake_hands(io::Connection &connection, const Settings &settings,
                    const std::string &channel, Nanos limit, int wake_fd,
                    engine::ServerFacts &facts) {
  Handshake handshake(connection, settings, limit, wake_fd);
  if (auto outcome = handshake.say_hello(); !outcome.ok()) return outcome;
  if (auto outcome = handshake.select_database(); !outcome.ok()) return outcome;
  if (auto outcome = handshake.load_scripts(); !outcome.ok()) return outcome;
  facts.is_sharded = handshake.is_sharded();
  return handshake.subscribe(channel, facts);
}

}  // namespace redlatch::client
