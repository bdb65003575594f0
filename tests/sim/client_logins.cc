// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: passwords that change, on the connections that are there, and the rules about them.
#include <algorithm>
#include <string>

#include "client.h"
#include "memory.h"
#include "reply_view.h"

namespace redlatch::sim {

namespace {

// A connection is made with valid credentials within two attempts that fail, their pauses (half a
// second each) and one that does not; some are struck by a fault.
constexpr Nanos kNeeded = 3 * kSecond;

}  // namespace

void Client::authenticate() {
  for (const auto &wire : wires_) authenticate(*wire);
  side_.authenticate();
  settle();
}

void Client::authenticate(Wire &wire) {
  (void)wire.connection.authenticate(wallet_.login(), [&wire](Argv argv) {
    wire.out.emplace_back(argv);
    wire.connection.on_append();
  });
}

// @return whether it is the reply to an AUTH.
bool Client::take_auth(Wire &wire, const Value &value) {
  if (!wire.connection.is_auth_next()) return false;
  const ReplyView view(value);
  note_auth(wire, wire.connection.take(*service_, view.get(), now()), view.get());
  return true;
}

void Client::note_auth(Wire &wire, driver::NodeConnection::Refused refused, const Reply &reply) {
  if (!reply.is_error()) return context_.stats.hit(Fault::kPassword);
  context_.trace.say(context_.schedule.now(), "client %d: AUTH is refused", slot_);
  wire.refused_at = context_.schedule.now();
  (void)wallet_.refused(refused);
}

// Rule: a refused AUTH closes nothing. It is checked where nothing else makes a client leave a
// server, as a message that is late by more than command_timeout does.
void Client::check_drop(const Wire &wire) const {
  if (!context_.plan.changes_passwords_only() || context_.plan.has(Fault::kLatePush)) return;
  if (wire.refused_at == kNever) return;
  context_.verdict.broken("a refused AUTH closes nothing", "client " + std::to_string(slot_));
}

// Rule: a changed password loses no lease. It is promised where only passwords change, messages are
// late and connections are cut, to a lease that is renewed, if for the last 3 s of it a new
// connection could be made with what the application had given: the servers accept it, it has not
// ended, and none has refused it since it was given (then the client waits for the next answer, if
// it can ask).
void Client::check_promise(const lock::Lease &lease) {
  if (!context_.plan.changes_passwords_only()) return;
  const Nanos now = context_.schedule.now();
  const bool is_renewed = lease.reason.find("renewal is off") == std::string::npos;
  if (!is_renewed || now - wallet_.last_invalid() <= kNeeded) return;
  context_.verdict.broken(
      "a changed password loses no lease",
      "client " + std::to_string(slot_) + ", token " + lease.token + ": " + lease.reason);
}

}  // namespace redlatch::sim
