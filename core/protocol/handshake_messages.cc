// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The subscription to the client's channel, and the tests of what the server does with it.
#include <cassert>
#include <string>
#include <utility>

#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/handshake.h"
#include "protocol/slots.h"

namespace redlatch::protocol {

// With RESP3 a push confirms a subscription and a reply refuses it; the reply to HELLO marks the
// end of both. With RESP2 the confirmation is a reply.
void Handshake::subscribe(const Send &send, bool is_sharded) {
  ask(send, {is_sharded ? "SSUBSCRIBE" : "SUBSCRIBE", channel_});
  if (!is_for_messages_) ask(send, {"HELLO"});
  awaited_count_ = 1;
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
  assert(facts_.is_push_trusted && !channel_.empty());
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
  assert(facts_.is_sharded && !has_asked_channels_);
  has_asked_channels_ = true;
  ask(send, {"SSUBSCRIBE"});
  ask(send, {"SPUBLISH"});
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

}  // namespace redlatch::protocol
