// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "protocol/handshake.h"

#include <algorithm>
#include <cassert>
#include <compare>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/slots.h"

namespace redlatch::protocol {

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
// Replies to the questions about the identity, by how many are still to come.
constexpr size_t kReplicationIsNext = 2;
constexpr size_t kTimeIsNext = 1;

Version parse_version(std::string_view text) {
  Version version;
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || !parse_number(text.substr(0, dot), version.major)) return {};
  const std::string_view rest = text.substr(dot + 1);
  if (!parse_number(rest.substr(0, rest.find('.')), version.minor)) return {};
  return version;
}

// A server that is loading or busy says nothing about what it allows.
bool will_pass(const Reply &reply) { return refusal_of(reply).kind == Refusal::Kind::kTransient; }

// True if `error` is about HELLO itself: servers and proxies that lack it have several words for
// that. A proxy without its server has others, such as "ERR Connection refused".
bool is_about_command(std::string_view error) {
  if (error.starts_with("NOPROTO")) return true;
  const std::string_view code = error.substr(0, error.find(' '));
  const bool is_code =
      std::all_of(code.begin(), code.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (is_code && code != "ERR") return false;
  for (const std::string_view word :
       {"nknown command", "nsupported", "not supported", "syntax error", "nvalid request"}) {
    if (error.find(word) != error.npos) return true;
  }
  return false;
}

void send_info(const Handshake::Send &send, std::string_view section) {
  Command info;
  info.add("INFO").add(section);
  send(info.argv());
}

}  // namespace

Handshake Handshake::for_messages(const Handshake &commands) {
  assert(commands.stage_ == Stage::kMessages);
  Handshake messages(commands.settings_, commands.channel_, false);
  messages.is_for_messages_ = true;
  messages.facts_.is_sharded = commands.facts_.is_sharded;
  return messages;
}

Handshake Handshake::for_side(const Settings &settings) {
  Handshake made(settings, {}, false);
  made.is_at_side_ = true;
  return made;
}

Handshake Handshake::for_slots(const Settings &settings) {
  Handshake made(settings, {}, false);
  made.is_for_slots_ = true;
  return made;
}

void Handshake::start(const Send &send) {
  assert(stage_ == Stage::kHello && protocol_ == 0);
  protocol_ = settings_.protocol;
  say_hello(send);
}

void Handshake::on_reply(const Reply &reply, const Send &send, Nanos now) {
  if (awaited_count_ == 0) return;  // the server sent more than it was asked for
  awaited_count_--;
  switch (stage_) {
    case Stage::kHello:
      return on_hello(reply, send, now);
    case Stage::kPassword:
      return on_password(reply, send, now);
    case Stage::kVersion:
      return on_version(reply, send, now);
    case Stage::kDatabase:
      return on_database(reply, send, now);
    case Stage::kScripts:
      // A user without the right to load sends each text once, on NOSCRIPT.
      if (awaited_count_ > 0) return;
      if (is_at_side_) return end();
      return has_asked_channels_ ? prepare_messages(send, now) : enter(Stage::kIdentity, send, now);
    case Stage::kIdentity:
      return on_identity(reply, send, now);
    case Stage::kSubscription:
      return on_subscription(reply, send, now);
    case Stage::kNotices:
      return on_notices(reply, send, now);
    case Stage::kProbe:
      return on_probe(reply, send, now);
    case Stage::kChannels:
      return on_channels(reply, send, now);
    case Stage::kMessages:
    case Stage::kOver:
      return;
  }
}

void Handshake::on_messages(const Handshake &messages, const Send &send, Nanos now) {
  assert(stage_ == Stage::kMessages && messages.stage_ == Stage::kOver && messages.outcome_.ok());
  facts_.is_push_trusted = messages.facts_.is_push_trusted;
  facts_.why_not_trusted = messages.facts_.why_not_trusted;
  facts_.channel_owner = messages.facts_.channel_owner;
  facts_.has_messages = facts_.is_push_trusted;
  enter(Stage::kProbe, send, now);
}

// Begins `stage`, or the next one that has something to say.
void Handshake::enter(Stage stage, const Send &send, Nanos now) {
  stage_ = stage;
  switch (stage) {
    case Stage::kHello:
      return say_hello(send);
    case Stage::kPassword:
      if (settings_.password.empty()) return enter(Stage::kVersion, send, now);
      return say_password(send);
    case Stage::kVersion:
      awaited_count_ = 1;
      return send_info(send, "server");
    case Stage::kDatabase: {
      if (settings_.database == 0) return enter(Stage::kScripts, send, now);
      Command select;
      select.add("SELECT").add(settings_.database);
      awaited_count_ = 1;
      return send(select.argv());
    }
    case Stage::kScripts:
      return load_scripts(send);
    case Stage::kIdentity:
      if (asks_identity()) return ask_identity(send, now);
      return prepare_messages(send, now);
    case Stage::kSubscription:
      return subscribe(send, facts_.is_sharded);
    case Stage::kNotices:
      if (hears_notices()) return subscribe(send, false);
      return is_for_messages_ ? end() : enter(Stage::kProbe, send, now);
    case Stage::kProbe:
      if (!facts_.is_push_trusted) return enter(Stage::kChannels, send, now);
      return probe(send, true);
    case Stage::kChannels:
      return facts_.is_sharded && !has_asked_channels_ ? ask_channels(send) : end();
    case Stage::kMessages:
    case Stage::kOver:
      return;
  }
}

void Handshake::end(Outcome outcome) {
  stage_ = Stage::kOver;
  awaited_count_ = 0;
  outcome_ = std::move(outcome);
}

Outcome Handshake::refused(const Reply &reply, const std::string &what) const {
  auto refusal = refusal_of(reply, settings_.password);
  // The server would quote its arguments, and cut a long password, of which a part would be left.
  if (refusal.message.starts_with(kUnknownCommand)) refusal.message = kUnknownCommand;
  if (refusal.message.starts_with("NOAUTH")) refusal.message = "it asks for a password (NOAUTH)";
  return failure(refusal.status(),
                 settings_.address() + " refused " + what + ": " + refusal.message);
}

// ---- greeting ----------------------------------------------------------------------------------

void Handshake::say_hello(const Send &send) {
  Command hello;
  hello.add("HELLO").add(protocol_);
  if (!settings_.password.empty()) {
    std::string_view user = "default";
    if (!settings_.user.empty()) user = settings_.user;
    hello.add("AUTH").add(user).add(settings_.password);
  }
  if (!settings_.client_name.empty()) hello.add("SETNAME").add(settings_.client_name);
  awaited_count_ = 1;
  send(hello.argv());
}

// Some proxies know neither HELLO nor RESP3, and some servers answer HELLO 3 with RESP2.
void Handshake::on_hello(const Reply &reply, const Send &send, Nanos now) {
  if (reply.is_error()) {
    // Valkey does not look up the command of a client without a password: one that it does not know
    // is NOAUTH as well.
    const bool is_unread = !settings_.password.empty() && reply.text().starts_with("NOAUTH");
    if (!is_unread && !is_about_command(reply.text())) return end(refused(reply, "the connection"));
    const bool has_tried_all = protocol_ == 2;
    protocol_ = 2;
    return enter(has_tried_all ? Stage::kPassword : Stage::kHello, send, now);
  }
  std::string_view server;
  std::string_view version;
  bool is_cluster = false;
  bool is_sentinel = false;
  for (size_t i = 0; i + 1 < reply.count(); i += 2) {
    if (reply.at(i).text() == "server") server = reply.at(i + 1).text();
    if (reply.at(i).text() == "version") version = reply.at(i + 1).text();
    if (reply.at(i).text() == "role") note_role(reply.at(i + 1).text());
    if (reply.at(i).text() == "proto" && reply.at(i + 1).integer == 2) protocol_ = 2;
    if (reply.at(i).text() == "mode" && reply.at(i + 1).text() == "cluster") is_cluster = true;
    if (reply.at(i).text() == "mode" && reply.at(i + 1).text() == "sentinel") is_sentinel = true;
  }
  if (is_cluster) facts_.role = NodeRole::kClusterMember;
  if (is_sentinel) return end(no_server());
  if (auto outcome = check_version(server, version); !outcome.ok()) return end(std::move(outcome));
  greeted(send, now);
}

void Handshake::say_password(const Send &send) {
  Command auth;
  auth.add("AUTH");
  if (!settings_.user.empty()) auth.add(settings_.user);
  auth.add(settings_.password);
  awaited_count_ = 1;
  send(auth.argv());
}

void Handshake::on_password(const Reply &reply, const Send &send, Nanos now) {
  if (reply.is_error()) return end(refused(reply, "the password"));
  enter(Stage::kVersion, send, now);
}

void Handshake::on_version(const Reply &reply, const Send &send, Nanos now) {
  const bool has_no_password = reply.is_error() && reply.text().starts_with("NOAUTH");
  if (has_no_password || will_pass(reply)) return end(refused(reply, "the connection"));
  const std::string_view text = reply.is_error() ? "" : reply.text();
  if (info_value(text, "redis_mode") == "sentinel") return end(no_server());
  if (info_value(text, "redis_mode") == "cluster") facts_.role = NodeRole::kClusterMember;
  for (const std::string_view server : {"valkey", "redis"}) {
    const auto version = info_value(text, std::string(server) + "_version");
    if (version.empty()) continue;
    auto outcome = check_version(server, version);
    return outcome.ok() ? greeted(send, now) : end(std::move(outcome));
  }
  // With protocol=2 the user vouches for the version of the server. Clients that know it may have
  // chosen sharded channels, so these are tried first.
  if (settings_.protocol == 2) {
    if (!is_for_messages_) facts_.is_sharded = true;
    return greeted(send, now);
  }
  end(failure(Status::kUnsupported,
              settings_.address() +
                  " supports neither RESP3 nor a version query: Redis 6.2, Valkey 7.2 or newer "
                  "is needed; if a proxy hides the version, set protocol=2"));
}

Outcome Handshake::check_version(std::string_view server, std::string_view version) {
  const bool is_valkey = server == "valkey";
  const Version known = parse_version(version);
  if (!is_for_messages_) facts_.is_sharded = known >= kShardedChannels;
  facts_.version = (is_valkey ? "Valkey " : "Redis ") + clean(version);
  if (known >= (is_valkey ? kOldestValkey : kOldestRedis)) return {};
  return failure(Status::kUnsupported, settings_.address() + " runs " + quoted(server) +
                                           " version " + quoted(version) +
                                           ": Redis 6.2, Valkey 7.2 or newer is needed");
}

Outcome Handshake::no_server() const {
  const HostPort address{settings_.host, settings_.port};
  return failure(Status::kInvalid, settings_.address() +
                                       " is a sentinel: the URL must be redis-sentinel://" +
                                       address.text() + "/NAME/0, with the name of a primary");
}

// Locks need the primary. The nodes of a quorum have a rule of their own.
bool Handshake::is_refused_role() {
  const bool is_known_replica = facts_.role == NodeRole::kReplica || facts_.is_replica;
  const bool is_of_quorum = asks_identity_;
  if (is_of_quorum || is_for_messages_ || !is_known_replica) return false;
  end(failure(Status::kServer,
              settings_.address() + " is a replica and READONLY: locks need its primary"));
  return true;
}

// A node of a cluster that the URL names as if it were alone: the client connects to it anew. A
// unix socket has no host that the names of other nodes could replace.
bool Handshake::is_found_cluster() const {
  const bool is_first = !is_for_messages_ && !is_at_side_ && !asks_identity_;
  return is_first && facts_.role == NodeRole::kClusterMember && !settings_.is_of_cluster &&
         !settings_.is_of_primary && !settings_.host.empty();
}

void Handshake::greeted(const Send &send, Nanos now) {
  if (is_for_slots_) return end();
  if (is_found_cluster()) {
    if (settings_.database == 0) return end();
    return end(failure(Status::kUnsupported, settings_.address() +
                                                 " is a node of a cluster: db must be 0 (got " +
                                                 std::to_string(settings_.database) + ")"));
  }
  if (is_refused_role()) return;
  facts_.can_track = protocol_ == 3;
  enter(is_for_messages_ ? Stage::kSubscription : Stage::kDatabase, send, now);
}

// ---- preparing ---------------------------------------------------------------------------------

void Handshake::on_database(const Reply &reply, const Send &send, Nanos now) {
  if (!reply.is_error()) return enter(Stage::kScripts, send, now);
  auto why = refused(reply, "SELECT " + std::to_string(settings_.database));
  // A database that is missing stays missing; a server that is loading will have loaded.
  if (reply.text().starts_with("ERR")) why.status = Status::kUnsupported;
  end(std::move(why));
}

// Those of the hash format, which few need, are sent on NOSCRIPT.
void Handshake::load_scripts(const Send &send) {
  awaited_count_ = kScriptCount;
  for (size_t i = 0; i < kScriptCount; i++) {
    Command load;
    load.add("SCRIPT").add("LOAD");
    load.add(script_text(static_cast<Script>(i), Format::kString, facts_.is_sharded).text());
    send(load.argv());
  }
}

void Handshake::ask_identity(const Send &send, Nanos now) {
  facts_.age.asked_at = now;
  awaited_count_ = 3;
  send_info(send, "server");
  send_info(send, "replication");
  Command time;
  time.add("TIME");
  send(time.argv());
}

// A server that may not be asked is no failure here.
void Handshake::on_identity(const Reply &reply, const Send &send, Nanos now) {
  if (reply.is_error() && facts_.why_unknown.ok()) {
    const auto refusal = refusal_of(reply, settings_.password);
    is_refused_for_now_ = refusal.kind == Refusal::Kind::kTransient;
    facts_.why_unknown = failure(refusal.status(), refusal.message);
  }
  if (facts_.why_unknown.ok()) note_identity(reply, now);
  if (awaited_count_ > 0) return;
  if (!facts_.why_unknown.ok()) {
    facts_.run_id.clear();
    if (is_refused_for_now_) {
      return end(failure(facts_.why_unknown.status,
                         settings_.address() + ": " + facts_.why_unknown.message));
    }
  }
  if (facts_.is_cluster_member && asks_identity_) return end();  // it cannot be a node
  if (is_refused_role()) return;
  if (settings_.is_of_primary && facts_.role != NodeRole::kPrimary) {
    return end(
        failure(Status::kServer, settings_.address() + " does not say that it is a primary"));
  }
  prepare_messages(send, now);
}

// With RESP2 a subscribed connection can send no other commands.
void Handshake::prepare_messages(const Send &send, Nanos now) {
  enter(protocol_ == 3 ? Stage::kSubscription : Stage::kMessages, send, now);
}

void Handshake::note_identity(const Reply &reply, Nanos now) {
  bool is_clear = true;
  if (awaited_count_ == kReplicationIsNext) {
    facts_.run_id = info_value(reply.text(), "run_id");
    facts_.is_cluster_member = info_value(reply.text(), "redis_mode") == "cluster";
    if (facts_.is_cluster_member) facts_.role = NodeRole::kClusterMember;
    const bool has_uptime =
        parse_number(info_value(reply.text(), "uptime_in_seconds"), facts_.age.uptime_s);
    if (!has_uptime || facts_.age.uptime_s < 0) facts_.run_id.clear();
  } else if (awaited_count_ == kTimeIsNext) {
    facts_.is_replica = info_value(reply.text(), "role") == "slave";
    if (facts_.role != NodeRole::kClusterMember) note_role(info_value(reply.text(), "role"));
  } else {
    is_clear = !facts_.run_id.empty() && note_time(reply, now);
  }
  if (is_clear) return;
  facts_.why_unknown = failure(Status::kUnsupported, "INFO without run_id or uptime_in_seconds");
}

void Handshake::note_role(std::string_view role) {
  if (role == "master") facts_.role = NodeRole::kPrimary;
  if (role == "replica" || role == "slave") facts_.role = NodeRole::kReplica;
}

bool Handshake::note_time(const Reply &reply, Nanos now) {
  const auto time = decode_time(reply);
  if (!time) return false;
  ServerAge &age = facts_.age;
  age.round_trip = now - age.asked_at;
  age.clock = *time - (age.asked_at + age.round_trip / 2);
  return true;
}

// ---- messages ----------------------------------------------------------------------------------

// With RESP3 a push confirms a subscription and a reply refuses it; the reply to HELLO marks the
// end of both. With RESP2 the confirmation is a reply.
void Handshake::subscribe(const Send &send, bool is_sharded) {
  Command subscription;
  subscription.add(is_sharded ? "SSUBSCRIBE" : "SUBSCRIBE").add(channel_);
  awaited_count_ = 1;
  send(subscription.argv());
  if (is_for_messages_) return;
  Command hello;
  hello.add("HELLO");
  send(hello.argv());
}

void Handshake::on_subscription(const Reply &reply, const Send &send, Nanos now) {
  const bool is_end_of_refusal = !facts_.is_push_trusted;
  if (is_end_of_refusal) return enter(Stage::kProbe, send, now);
  // The slot of the channel is at another node: the channel is drawn anew when that is known.
  const auto redirect = read_redirect(reply, {settings_.host, settings_.port});
  const bool is_moved = settings_.is_of_cluster && redirect.kind == Redirect::Kind::kMoved;
  if (will_pass(reply) && !is_moved) return end(refused(reply, "the subscription"));
  if (reply.is_error()) {
    if (is_moved) facts_.channel_owner = redirect.to;
    facts_.is_push_trusted = false;
    facts_.why_not_trusted = refused(reply, "the subscription").message;
    if (!is_for_messages_) {
      awaited_count_ = 1;
      return;
    }
  }
  enter(Stage::kNotices, send, now);
}

// Without the plain channel a waiter hears of a moved slot by its next poll.
void Handshake::on_notices(const Reply &reply, const Send &send, Nanos now) {
  if (is_for_messages_) return end();
  if (!reply.is_error()) return enter(Stage::kProbe, send, now);
  awaited_count_ = 1;
}

// Some proxies subscribe and count receivers wrongly.
void Handshake::probe(const Send &send, bool has_key) {
  const std::string unused = std::string(channel_) + ":none";
  ServerFeatures features;
  features.is_sharded = facts_.is_sharded;
  is_probe_keyless_ = !has_key;
  Command command;
  protocol::probe(command, features, has_key ? ProbeKey::kNamed : ProbeKey::kNone, channel_,
                  unused);
  awaited_count_ = 1;
  send(command.argv());
}

void Handshake::on_probe(const Reply &reply, const Send &send, Nanos now) {
  // The key may be out of reach where the channel is not: without a right to it, or while its slot
  // is being moved.
  const bool is_key_refused = refusal_of(reply).kind == Refusal::Kind::kDenied ||
                              reply.text().starts_with("MOVED") || reply.text().starts_with("ASK");
  if (reply.is_error() && is_key_refused && !is_probe_keyless_) return probe(send, false);
  if (will_pass(reply)) return end(refused(reply, "a script"));
  if (reply.text().starts_with(kUnknownCommand)) {
    auto why = refused(reply, "EVAL, which every lock needs");
    why.status = Status::kUnsupported;
    return end(std::move(why));
  }
  // In a cluster the second channel may be that of another node, which is a refusal.
  const int64_t none = reply.at(1).integer;
  const bool is_other_right =
      reply.count() == 2 && (none == 0 || (settings_.is_of_cluster && none == -1));
  facts_.is_push_trusted = is_other_right && reply.at(0).integer == 1;
  facts_.is_channel_taken = is_other_right && reply.at(0).integer > 1;
  if (facts_.is_push_trusted) return end();
  if (reply.is_error()) {
    facts_.why_not_trusted = refused(reply, "the script that counts receivers").message;
  } else if (reply.at(0).integer < 0) {
    facts_.why_not_trusted = settings_.address() + " refused " +
                             (facts_.is_sharded ? "SPUBLISH" : "PUBLISH") +
                             " in a script: the user needs a right to it, and to its channels";
  } else {
    facts_.why_not_trusted =
        settings_.address() +
        ": a message to a channel with one receiver was counted as received by " +
        std::to_string(reply.at(0).integer) + ", one to a channel with none by " +
        std::to_string(reply.at(1).integer) + " (-1: refused)";
  }
  // A server that counts receivers has such channels.
  facts_.is_channel_taken ? end() : enter(Stage::kChannels, send, now);
}

// Without arguments neither does anything. A server checks their number before the rights of the
// user, so each user gets the same answer.
void Handshake::ask_channels(const Send &send) {
  has_asked_channels_ = true;
  awaited_count_ = 2;
  for (const char *name : {"SSUBSCRIBE", "SPUBLISH"}) {
    Command command;
    send(command.add(name).argv());
  }
}

void Handshake::on_channels(const Reply &reply, const Send &send, Nanos now) {
  if (will_pass(reply)) return end(refused(reply, "a question about channels"));
  // A server that checks the rights first says nothing about the command: its version counts.
  const bool is_known = !reply.is_error() || refusal_of(reply).kind == Refusal::Kind::kDenied ||
                        reply.text().find("wrong number of arg") != std::string_view::npos;
  lacks_sharded_ = lacks_sharded_ || !is_known;
  if (awaited_count_ > 0) return;
  if (!lacks_sharded_) return end();
  facts_.is_sharded = false;
  facts_.is_push_trusted = true;
  facts_.why_not_trusted.clear();
  enter(Stage::kScripts, send, now);
}

const char *Handshake::check() const {
  const bool is_waiting = stage_ == Stage::kMessages || stage_ == Stage::kOver;
  if (is_waiting && awaited_count_ > 0) return "no reply is awaited here";
  if (!is_waiting && protocol_ != 0 && awaited_count_ == 0) return "a reply is awaited";
  if (stage_ != Stage::kOver && !outcome_.ok()) return "a failure ends the handshake";
  if (is_for_messages_ &&
      (stage_ == Stage::kDatabase || stage_ == Stage::kScripts || stage_ == Stage::kIdentity ||
       stage_ == Stage::kMessages || stage_ == Stage::kProbe || stage_ == Stage::kChannels)) {
    return "the connection for messages only subscribes";
  }
  if (stage_ == Stage::kMessages && protocol_ == 3) return "RESP3 needs one connection";
  if (stage_ == Stage::kNotices && !hears_notices()) return "sharded channels of a cluster only";
  if (stage_ == Stage::kPassword && settings_.password.empty()) return "there is no password";
  if (facts_.is_push_trusted != facts_.why_not_trusted.empty()) return "a distrust has its reason";
  if (stage_ == Stage::kChannels && facts_.is_push_trusted) return "channels that work are used";
  if (!facts_.run_id.empty() && stage_ == Stage::kOver && !facts_.why_unknown.ok()) {
    return "a known identity has no reason to be unknown";
  }
  return nullptr;
}

}  // namespace redlatch::protocol
