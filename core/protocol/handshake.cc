// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "protocol/handshake.h"

#include <cassert>
#include <utility>

#include "base/text.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/server_identity.h"

namespace redlatch::protocol {

namespace {

// Replies to the questions about the identity, by how many are still to come.
constexpr size_t kReplicationIsNext = 2;
constexpr size_t kTimeIsNext = 1;

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
  assert(stage_ != Stage::kOver && awaited_count_ == 0);
  stage_ = stage;
  switch (stage) {
    case Stage::kHello:
      return say_hello(send);
    case Stage::kPassword:
      if (settings_.password.empty()) return enter(Stage::kVersion, send, now);
      return say_password(send);
    case Stage::kVersion:
      return ask(send, {"INFO", "server"});
    case Stage::kDatabase:
      if (settings_.database == 0) return enter(Stage::kScripts, send, now);
      return ask(send, {"SELECT", std::to_string(settings_.database)});
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

void Handshake::ask(const Send &send, std::initializer_list<std::string_view> words) {
  awaited_count_++;
  send({words.begin(), words.size()});
}

bool Handshake::will_pass(const Reply &reply) {
  return refusal_of(reply).kind == Refusal::Kind::kTransient;
}

Outcome Handshake::refused(const Reply &reply, const std::string &what) const {
  auto refusal = refusal_of(reply, settings_.password);
  // The server would quote its arguments, and cut a long password, of which a part would be left.
  if (refusal.message.starts_with(kUnknownCommand)) refusal.message = kUnknownCommand;
  if (refusal.message.starts_with("NOAUTH")) refusal.message = "it asks for a password (NOAUTH)";
  return failure(refusal.status(),
                 settings_.address() + " refused " + what + ": " + refusal.message);
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
    if (!is_unread && !is_about_hello(reply.text())) return end(refused(reply, "the connection"));
    const bool has_tried_all = protocol_ == 2;
    protocol_ = 2;
    return enter(has_tried_all ? Stage::kPassword : Stage::kHello, send, now);
  }
  const Greeting greeting = read_hello(reply);
  if (greeting.is_resp2) protocol_ = 2;
  on_greeting(greeting, send, now);
}

void Handshake::say_password(const Send &send) {
  if (settings_.user.empty()) return ask(send, {"AUTH", settings_.password});
  ask(send, {"AUTH", settings_.user, settings_.password});
}

void Handshake::on_password(const Reply &reply, const Send &send, Nanos now) {
  if (reply.is_error()) return end(refused(reply, "the password"));
  enter(Stage::kVersion, send, now);
}

void Handshake::on_version(const Reply &reply, const Send &send, Nanos now) {
  const bool has_no_password = reply.is_error() && reply.text().starts_with("NOAUTH");
  if (has_no_password || will_pass(reply)) return end(refused(reply, "the connection"));
  const Greeting greeting = read_info(reply.is_error() ? "" : reply.text());
  if (greeting.is_sentinel || !greeting.version.empty()) return on_greeting(greeting, send, now);
  facts_.role = greeting.role;
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

void Handshake::on_greeting(const Greeting &greeting, const Send &send, Nanos now) {
  facts_.role = greeting.role;
  if (greeting.is_sentinel) return end(no_server());
  facts_.version = greeting.text();
  if (!is_for_messages_) facts_.is_sharded = greeting.has_sharded_channels();
  if (greeting.is_supported()) return greeted(send, now);
  end(failure(Status::kUnsupported, settings_.address() + " runs " + quoted(greeting.server) +
                                        " version " + quoted(greeting.version) +
                                        ": Redis 6.2, Valkey 7.2 or newer is needed"));
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
    facts_.is_found_cluster = true;
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
  for (size_t i = 0; i < kScriptCount; i++) {
    const auto script = static_cast<Script>(i);
    ask(send, {"SCRIPT", "LOAD", script_text(script, Format::kString, facts_.is_sharded).text()});
  }
}

void Handshake::ask_identity(const Send &send, Nanos now) {
  facts_.age.asked_at = now;
  ask(send, {"INFO", "server"});
  ask(send, {"INFO", "replication"});
  ask(send, {"TIME"});
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
  assert(!is_for_messages_ && !is_at_side_ && !is_for_slots_);
  enter(protocol_ == 3 ? Stage::kSubscription : Stage::kMessages, send, now);
}

void Handshake::note_identity(const Reply &reply, Nanos now) {
  if (awaited_count_ == kReplicationIsNext) return read_server_info(reply.text(), facts_);
  if (awaited_count_ == kTimeIsNext) return read_replication_info(reply.text(), facts_);
  if (!facts_.run_id.empty() && read_time(reply, now, facts_.age)) return;
  facts_.why_unknown = failure(Status::kUnsupported, "INFO without run_id or uptime_in_seconds");
}

}  // namespace redlatch::protocol
