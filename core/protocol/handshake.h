// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Handshake: the first commands on a fresh connection. Replies in, commands out; no socket, no
// clock. A refusal for good ends it with kDenied or kUnsupported; after any other failure another
// attempt may succeed.
//
//   kHello --> kDatabase --> kScripts --> kIdentity --> kSubscription --> kProbe --> kOver
//      \--> kPassword --> kVersion --^        \--> kMessages -----------------^
//
// On a cluster kNotices comes between kSubscription and kProbe: a node that cannot reach the
// sharded channel of a waiter notifies it by the plain one of the same name.
//
// If no message comes by a sharded channel, kSubscription or kProbe is followed by kChannels: does
// the server have such channels at all? If it has none, the handshake goes back to kScripts with
// plain ones. The answer must depend on the server only, or two clients would publish to channels
// of two kinds (docs/design/0021-one-kind-of-channel.md).
//
// A connection at the side ends with kScripts. One to a node of a cluster that the settings do not
// name as such ends with the greeting, and sets facts().is_found_cluster.
//
// Without HELLO a server is asked for its version by INFO. With RESP2, messages need a connection
// of their own: the first handshake waits in kMessages for the second one, which ends with its
// subscription.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::protocol {

struct Greeting;

class Handshake {
 public:
  enum class Stage : uint8_t {
    kHello,         // protocol, user and name
    kPassword,      // of a server without HELLO
    kVersion,       // of a server without HELLO
    kDatabase,      // unless it is the first one
    kScripts,       // all are loaded
    kIdentity,      // if asked for: run id, age, role
    kMessages,      // RESP2: the connection for messages is being opened
    kSubscription,  // of the client's channel
    kNotices,       // of a cluster: of the plain channel
    kProbe,         // whether the server counts receivers rightly
    kChannels,      // whether the server has sharded channels; asked if it seems to lack them
    kOver,
  };
  // Takes one command. The text, which may be secret, is borrowed for the call.
  using Send = std::function<void(std::span<const std::string_view>)>;

  // For the connection for commands. `settings` and `channel` outlive the handshake.
  Handshake(const Settings &settings, std::string_view channel, bool asks_identity)
      : settings_(settings), channel_(channel), asks_identity_(asks_identity) {}
  // For the connection for messages that `commands` waits for in kMessages.
  static Handshake for_messages(const Handshake &commands);
  // For a further connection for commands, which no message comes on.
  static Handshake for_side(const Settings &settings);
  // For a connection on which a node of a cluster is asked for its slots: it ends with the
  // greeting.
  static Handshake for_slots(const Settings &settings);

  void start(const Send &send);
  // The next reply; pushes are not replies.
  void on_reply(const Reply &reply, const Send &send, Nanos now);
  // In kMessages: the other handshake has ended well.
  void on_messages(const Handshake &messages, const Send &send, Nanos now);

  Stage stage() const { return stage_; }
  // How many replies are to come before anything else is sent; 0 in kMessages and kOver.
  size_t awaited_count() const { return awaited_count_; }
  // In kOver: whether the connection can be used.
  const Outcome &outcome() const { return outcome_; }
  const ServerFacts &facts() const { return facts_; }
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  void enter(Stage stage, const Send &send, Nanos now);
  // Sends a command whose reply is awaited.
  void ask(const Send &send, std::initializer_list<std::string_view> words);
  void say_hello(const Send &send);
  void say_password(const Send &send);
  void load_scripts(const Send &send);
  void ask_identity(const Send &send, Nanos now);
  void subscribe(const Send &send, bool is_sharded);
  bool hears_notices() const {
    return settings_.is_of_cluster && facts_.is_sharded && facts_.is_push_trusted;
  }
  void probe(const Send &send, bool has_key);
  void ask_channels(const Send &send);

  void on_hello(const Reply &reply, const Send &send, Nanos now);
  void on_password(const Reply &reply, const Send &send, Nanos now);
  void on_version(const Reply &reply, const Send &send, Nanos now);
  void on_database(const Reply &reply, const Send &send, Nanos now);
  void on_identity(const Reply &reply, const Send &send, Nanos now);
  void on_subscription(const Reply &reply, const Send &send, Nanos now);
  void on_notices(const Reply &reply, const Send &send, Nanos now);
  void on_probe(const Reply &reply, const Send &send, Nanos now);
  void on_channels(const Reply &reply, const Send &send, Nanos now);
  void note_identity(const Reply &reply, Nanos now);

  void on_greeting(const Greeting &greeting, const Send &send, Nanos now);
  void greeted(const Send &send, Nanos now);
  bool is_refused_role();
  bool is_found_cluster() const;
  void prepare_messages(const Send &send, Nanos now);
  bool asks_identity() const {
    return asks_identity_ || settings_.is_of_primary || settings_.is_of_cluster;
  }
  void end(Outcome outcome = {});
  Outcome no_server() const;
  Outcome refused(const Reply &reply, const std::string &what) const;
  // A server that is loading or busy says nothing about what it allows.
  static bool will_pass(const Reply &reply);

  static constexpr std::string_view kUnknownCommand = "ERR unknown command";

  const Settings &settings_;
  const std::string_view channel_;
  const bool asks_identity_;
  bool is_for_messages_ = false;
  bool is_at_side_ = false;
  bool is_for_slots_ = false;

  Stage stage_ = Stage::kHello;
  size_t awaited_count_ = 0;
  int protocol_ = 0;                 // of the last HELLO; 2 without HELLO
  bool is_refused_for_now_ = false;  // the identity
  bool is_probe_keyless_ = false;
  bool has_asked_channels_ = false;
  bool lacks_sharded_ = false;  // kChannels: a command is missing
  ServerFacts facts_;
  Outcome outcome_;
};

}  // namespace redlatch::protocol
