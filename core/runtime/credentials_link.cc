// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: passwords that change. A connection is made with those of that moment, and AUTH is sent
// on the connections that are there when the application gives new ones.
#include <new>
#include <string>
#include <utility>

#include "net/secret_line.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "runtime/runtime.h"

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

// ---- calls -------------------------------------------------------------------------------------

Outcome Runtime::give_credentials(std::string_view user, std::string_view password,
                                  Nanos valid_for) {
  Lock lock(mutex_);
  if (is_shut_) return failure(Status::kClosed, "the client was shut down");
  if (!settings().folder.empty()) {
    return failure(Status::kInvalid,
                   "an embedded server has no user and no password: its folder keeps others out");
  }
  credentials_.set(user, password, valid_for, boot_now());
  for (Link &link : links_) {
    authenticate(link);
    authenticate_side(link);
  }
  if (has_background_) wake(background_);
  flush(lock);
  settle();
  wake_all(lock);
  return {};
}

Outcome Runtime::fail_credentials(std::string_view why) {
  Lock lock(mutex_);
  if (is_shut_) return failure(Status::kClosed, "the client was shut down");
  if (credentials_.fail(why, boot_now())) {
    log_.add(LogLevel::kWarning, "the application gave no new credentials");
  }
  if (has_background_) wake(background_);
  wake_all(lock);
  return {};
}

Outcome Runtime::watch_credentials(const std::shared_ptr<Queue> &queue, int64_t tag) {
  Lock lock(mutex_);
  if (is_shut_) return {};
  if (queue && !settings().folder.empty()) {
    return failure(Status::kInvalid, "an embedded server has no user and no password");
  }
  credentials_.watch(queue, tag, boot_now());
  if (has_background_) wake(background_);
  wake_all(lock);
  return {};
}

// ---- connections that are made -----------------------------------------------------------------

// Waits for credentials, for at most connect_timeout. In a thread that may block.
Outcome Runtime::complete_settings(Settings &settings, Login &login) {
  auto outcome = net::read_passwords_again(settings);
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
Outcome Runtime::connect_with_credentials(const Settings &settings, Login &login,
                                          const Connect &connect) {
  Nanos limit = 0;
  Settings tried = settings;
  auto outcome = complete_settings(tried, login);
  if (!outcome.ok()) return outcome;
  while (true) {
    outcome = connect(tried);
    if (outcome.status != Status::kDenied) return outcome;
    if (limit != 0 && boot_now() >= limit) {
      outcome.status = Status::kUnavailable;
      return outcome;
    }
    if (limit == 0) limit = after(boot_now(), settings.connect_timeout);
    const uint64_t number = login.number;
    if (number != 0 && !credentials_.refused(number, boot_now())) return outcome;
    Settings present = settings;
    auto completed = complete_settings(present, login);
    if (!completed.ok()) return completed;
    const bool is_same = login.number == number && present.password == tried.password &&
                         present.sentinel.password == tried.sentinel.password;
    if (is_same) return outcome;
    tried = std::move(present);
  }
}

// ---- connections that are there ----------------------------------------------------------------

// Sends AUTH, if the application has given credentials that the server did not get. A connection
// that there is no memory for is made again.
void Runtime::authenticate(Link &link) noexcept {
  if (!link.is_usable()) return;
  try {
    Login login;
    if (!credentials_.newer(link.login, login)) return;
    protocol::Command command;
    add_auth(command, login);
    link.append(command.argv());
    link.auths.expect(login.number);
    link.login = login.number;
    link.outbox.note_secret();
    is_output_due_ = was_active_ = true;
  } catch (...) {
    (void)log_.add_caught();
    link.drop();
  }
}

void Runtime::authenticate_side(Link &link) noexcept {
  SideConnection &side = link.confirming;
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
void Runtime::note_auth(Link &link, uint64_t login, const Reply &reply, Nanos now) {
  const bool was_refused = link.is_login_refused;
  link.is_login_refused = reply.is_error();
  if (!reply.is_error()) return;
  (void)credentials_.refused(login, now);
  wake(background_);
  if (was_refused) return;
  log_.add(LogLevel::kWarning, link.settings.address() + " refused the new credentials (" +
                                   error_code(reply) + "); the connection stays as it was");
}

}  // namespace redlatch::runtime
