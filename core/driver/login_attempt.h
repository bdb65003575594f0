// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LoginAttempt: an attempt to connect with the passwords of the moment. If the server refuses one,
// it may have been replaced since: the files are read again, and the application is asked. Another
// password is tried at once, and so on for connect_timeout. If the application does not answer in
// time, or passwords are replaced for longer, the attempt fails with kUnavailable, and callers
// continue to wait. Its host reads files, waits and dials; no clock here.
//
//   kReading --> kWaiting --> kDialling --> kOver
//      ^                          |
//      '--------- kDenied <-------'
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/password.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/login.h"

namespace redlatch::driver {

class LoginAttempt {
 public:
  enum class Stage : uint8_t {
    kReading,   // the password files are read into settings(): on_read()
    kWaiting,   // for a login after login(), at most until limit(): on_given() or on_missing()
    kDialling,  // settings() are dialled: on_dialled()
    kDenied,    // the server has refused login(): on_hope() says whether others may come
    kOver,
  };

  explicit LoginAttempt(const Settings &settings) : settings_(settings) {}

  Stage stage() const { return stage_; }
  bool is_over() const { return stage_ == Stage::kOver; }
  // When it is over.
  const Outcome &outcome() const { return outcome_; }
  Outcome take_outcome() noexcept { return std::move(outcome_); }
  // To be dialled; they keep what is not read again, nor given.
  Settings &settings() { return settings_; }
  // Given by the application; number 0: it gave no login.
  const Login &login() const { return login_; }
  // While it waits.
  Nanos limit() const { return wait_limit_; }

  // ---- events
  void on_read(const Outcome &outcome, Nanos now);
  void on_given(const Login &login);
  void on_missing(const Outcome &why);
  void on_dialled(const Outcome &outcome, Nanos now);
  void on_hope(bool may_others_come);

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  void end(const Outcome &outcome);

  Stage stage_ = Stage::kReading;
  Settings settings_;
  Login login_;
  // The last refusal of the server.
  struct Denied {
    Outcome outcome;
    uint64_t login = 0;
    Password password, sentinel_password;
  };
  std::optional<Denied> denied_;
  Nanos wait_limit_ = 0;
  Nanos limit_ = 0;  // no further password is tried then; 0: the first one was not refused
  Outcome outcome_;
};

}  // namespace redlatch::driver
