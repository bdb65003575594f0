// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/logins.h"

#include <new>
#include <string>
#include <utility>

#include "host/clock.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "runtime/password_files.h"

namespace redlatch::runtime {

namespace {

void add_auth(protocol::Command &command, const Login &login) {
  command.add("AUTH");
  if (!login.user.empty()) command.add(login.user);
  command.add(login.password);
}

// A server may quote what it refuses.
std::string error_code(const Reply &reply) {
  const std::string_view text = reply.text();
  const std::string_view code = text.substr(0, text.find(' '));
  const bool is_code = code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == code.npos;
  return is_code && code.size() <= 16 ? std::string(code) : "an error";
}

}  // namespace

// ---- connections that are made -----------------------------------------------------------------

// Waits for credentials, for at most connect_timeout. In a thread that may block.
Outcome Logins::complete(Settings &settings, Login &login) {
  auto outcome = read_passwords_again(settings);
  if (!outcome.ok()) return outcome;
  outcome = credentials_.await(after(boot_now(), settings.connect_timeout), login.number, login);
  if (!outcome.ok()) {
    outcome.message = "cannot connect to " + settings.address() + ": " + outcome.message;
    return outcome;
  }
  if (login.number == 0) return outcome;
  settings.user = login.user;
  settings.password = login.password;
  return outcome;
}

// In a thread that may block. If the server refuses the connection, its password may have been
// replaced since: the files are read again, and the application is asked. Another password is tried
// at once, and so on for connect_timeout. If the application does not answer in time, or passwords
// are replaced for longer, the attempt fails with kUnavailable, and callers continue to wait.
Outcome Logins::connect(const Settings &settings, Login &login, const Dial &dial) {
  Nanos limit = 0;
  Settings tried = settings;
  auto outcome = complete(tried, login);
  if (!outcome.ok()) return outcome;
  while (true) {
    outcome = dial(tried);
    if (outcome.status != Status::kDenied) return outcome;
    if (limit != 0 && boot_now() >= limit) {
      outcome.status = Status::kUnavailable;
      return outcome;
    }
    if (limit == 0) limit = after(boot_now(), settings.connect_timeout);
    const uint64_t number = login.number;
    if (number != 0 && !credentials_.refused(number, boot_now())) return outcome;
    Settings present = settings;
    auto completed = complete(present, login);
    if (!completed.ok()) return completed;
    const bool is_same = login.number == number && present.password == tried.password &&
                         present.sentinel.password == tried.sentinel.password;
    if (is_same) return outcome;
    tried = std::move(present);
  }
}

// ---- connections that are there ----------------------------------------------------------------

bool Logins::authenticate(Link &link) noexcept {
  if (!link.is_usable()) return false;
  try {
    Login login;
    if (!credentials_.newer(link.login, login)) return false;
    protocol::Command command;
    add_auth(command, login);
    link.append(command.argv());
    link.auths.expect(login.number);
    link.login = login.number;
    link.outbox.note_secret();
    return true;
  } catch (...) {
    (void)log_.add_caught();
    link.drop();
    return false;
  }
}

void Logins::authenticate(SideConnection &side) noexcept {
  if (!side.connection || side.is_broken) return;
  try {
    Login login;
    if (!credentials_.newer(side.login, login)) return;
    protocol::Command command;
    add_auth(command, login);
    side.append(command.argv());
    side.auths.expect(login.number);
    side.login = login.number;
  } catch (...) {
    (void)log_.add_caught();
    side.drop();
  }
}

// The server continues with the user that it knows: a refusal ends nothing. It is logged once.
void Logins::note_reply(Link &link, uint64_t login, const Reply &reply, Nanos now) {
  const bool was_refused = link.is_login_refused;
  link.is_login_refused = reply.is_error();
  if (!reply.is_error()) return;
  (void)credentials_.refused(login, now);
  alarm_.wake();
  if (was_refused) return;
  log_.add(LogLevel::kWarning, link.settings.address() + " refused the new credentials (" +
                                   error_code(reply) + "); the connection stays as it was");
}

}  // namespace redlatch::runtime
