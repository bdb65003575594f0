// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/node_connection.h"

#include <cassert>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/token.h"

namespace redlatch::driver {

namespace {

// When a fresh connection is asked for the health of its server: after the first commands, and not
// at the same time by all clients that a failover has disconnected.
Nanos health_delay(const std::string &channel) {
  constexpr size_t kSpreadMs = 400;
  return static_cast<Nanos>(100 + std::hash<std::string>()(channel) % kSpreadMs) * kMs;
}

// A server may quote what it refuses.
std::string error_code(const Reply &reply) {
  const std::string_view text = reply.text();
  const std::string_view code = text.substr(0, text.find(' '));
  const bool is_code = code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == code.npos;
  return is_code && code.size() <= 16 ? std::string(code) : "an error";
}

}  // namespace

// ---- attempts ----------------------------------------------------------------------------------

bool NodeConnection::begin_attempt(lock::LockService &service, PrimaryFollower *follower,
                                   Nanos now) {
  if (is_made()) return false;
  if (follower != nullptr && follower->take_hurry()) service.connect_soon(node_, now);
  return service.begin_connect(node_, now);
}

void NodeConnection::make(const ServerFacts &facts, uint64_t login) noexcept {
  assert(!is_made());
  state_ = State::kUsable;
  record_.on_connected(facts);
  auth_.clear();
  auth_.begin(login);
  is_refused_ = false;
}

void NodeConnection::on_attempt_over(lock::LockService &service, const NodeAttempt &attempt,
                                     bool is_only, Nanos now) {
  const Outcome &outcome = attempt.outcome();
  assert(is_made() == (outcome.ok() && !attempt.has_slots()));
  if (!outcome.ok()) {
    service.on_connect_failed(node_, outcome, now);
    return record_.note_failure(outcome);
  }
  if (attempt.has_slots()) {
    service.on_slots_read(attempt.slots(), now);
    return record_.note_success(attempt.facts(), false);
  }
  service.on_connected(node_, attempt.facts(), now);
  attempt.note_success();
  if (!is_usable()) return;  // the service has dropped it again, and connects anew
  record_.note_success(attempt.facts(), is_only);
  const bool is_checked = settings_.is_health_checked && settings_.folder.empty();
  if (is_checked) service.check_later(node_, now + health_delay(service.channel(node_)));
}

// ---- output ------------------------------------------------------------------------------------

bool NodeConnection::authenticate(const Login &newest, const Authentication::Send &send) {
  if (!is_usable() || newest.number <= auth_.login()) return false;
  auth_.renew(newest, send);
  return true;
}

// ---- input -------------------------------------------------------------------------------------

NodeConnection::Refused NodeConnection::take(lock::LockService &service, const Reply &arrived,
                                             Nanos now) {
  if (arrived.kind == Reply::Kind::kPush) {
    take_message(service, arrived, now);
    return 0;
  }
  [[maybe_unused]] const bool is_auth = is_auth_next();
  const uint64_t login = auth_.take();
  assert(is_auth == (login != 0));
  if (login != 0) return note_auth(login, arrived);
  service.on_reply(node_, arrived, now);
  return 0;
}

void NodeConnection::take_message(lock::LockService &service, const Reply &message,
                                  Nanos now) const {
  const std::string_view kind = message.at(0).text();
  if (kind == "message" || kind == "smessage") {
    const std::string_view text = message.at(2).text();
    // No server counts the receivers of the plain channel beside a sharded one: notices only.
    const bool is_beside = kind == "message" && record_.facts().is_sharded;
    if (is_beside && !protocol::is_notice(text)) return;
    return service.on_push(node_, text, now);
  }
  if (kind == "sunsubscribe") return service.on_unsubscribed(node_, now);
  if (kind != "invalidate") return;
  const Reply &keys = message.at(1);
  if (keys.kind == Reply::Kind::kNil) return service.on_invalidated(node_, std::nullopt, now);
  for (size_t i = 0; i < keys.count(); i++) service.on_invalidated(node_, keys.at(i).text(), now);
}

NodeConnection::Refused NodeConnection::note_auth(uint64_t login, const Reply &reply) {
  assert(login != 0);
  const bool was_refused = std::exchange(is_refused_, reply.is_error());
  if (!reply.is_error()) return 0;
  if (was_refused) return login;
  log_.add(LogLevel::kWarning, settings_.address() + " refused the new credentials (" +
                                   error_code(reply) + "); the connection stays as it was");
  return login;
}

// ---- the end -----------------------------------------------------------------------------------

void NodeConnection::end() {
  state_ = State::kNone;
  auth_.clear();
}

}  // namespace redlatch::driver
