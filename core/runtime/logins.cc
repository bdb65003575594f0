// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/logins.h"

#include <cassert>
#include <new>

#include "host/clock.h"
#include "runtime/password_files.h"

namespace redlatch::runtime {

// ---- connections that are made -----------------------------------------------------------------

void Logins::hold(driver::LoginAttempt &attempt, const std::function<void()> &dial) {
  using Stage = driver::LoginAttempt::Stage;
  while (!attempt.is_over()) {
    switch (attempt.stage()) {
      case Stage::kReading: {
        const auto outcome = read_passwords_again(attempt.settings());
        attempt.on_read(outcome, boot_now());
        break;
      }
      case Stage::kWaiting: {
        Login login;
        const auto outcome = credentials_.await(attempt.limit(), attempt.login().number, login);
        outcome.ok() ? attempt.on_given(login) : attempt.on_missing(outcome);
        break;
      }
      case Stage::kDialling:
        dial();
        break;
      default:
        attempt.on_hope(credentials_.refused(attempt.login().number, boot_now()));
        break;
    }
    assert(attempt.check() == nullptr);
  }
}

// ---- connections that are there ----------------------------------------------------------------

bool Logins::authenticate(Link &link) noexcept {
  if (!link.is_usable()) return false;
  try {
    Login login;
    if (!credentials_.newer(link.connection.login(), login)) return false;
    // Called at once, with the mutex held.
    const auto append = [&link](auto argv) NOT_ANALYSED { link.append(argv); };
    if (!link.connection.authenticate(login, append)) return false;
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
    if (!credentials_.newer(side.auth.login(), login)) return;
    side.auth.renew(login, [&side](auto argv) NOT_ANALYSED { side.append(argv); });
  } catch (...) {
    (void)log_.add_caught();
    side.drop();
  }
}

void Logins::note_refused(uint64_t login, Nanos now) {
  assert(login != 0);
  (void)credentials_.refused(login, now);
  alarm_.wake();
}

}  // namespace redlatch::runtime
