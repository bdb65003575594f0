// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Wallet: the credentials of a client: what core/runtime does with the product's Credentials, and
// the application, which gives new ones by itself, or when it is asked, or both; it may be slow,
// and once in a while it has none.
//
// LoginTry: what core/runtime does with the product's LoginAttempt.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/settings.h"
#include "context.h"
#include "driver/credentials.h"
#include "driver/login_attempt.h"
#include "random.h"

namespace redlatch::sim {

class Client;

class Wallet {
 public:
  Wallet(Client &client, Context &context, uint64_t life);

  // The application begins.
  void begin();
  // It hears of a new password. The servers refuse the old one in `in`.
  void hear(Nanos in);

  // ---- connections
  const driver::Login &login() const { return credentials_.login(); }
  void begin_wait() { credentials_.begin_wait(); }
  void end_wait() { credentials_.end_wait(); }
  driver::Credentials::Given give(uint64_t than, Nanos limit);
  // @return whether others are worth waiting for.
  bool refused(uint64_t number);
  // The application was asked in good time for a refusal to be no end.
  bool may_replace(uint64_t number) const;

  // ---- rules
  // What it has given may be accepted, or not, from now on.
  void mark();
  // The last time when a connection could not be made with what it has given.
  Nanos last_invalid();
  // Twice a second.
  void watch();

 private:
  bool is_valid() const;
  void ask();
  void answer();
  void set();
  void changed();
  void arm();
  void check();

  Client &client_;
  Context &context_;
  Random random_;
  driver::Credentials credentials_;
  bool is_telling_ = false;   // the application gives new ones by itself
  bool is_watching_ = false;  // .. when it is asked
  bool is_asked_ = false;     // and has not answered yet
  bool has_failed_ = false;   // its last answer was that it has none
  Nanos valid_for_ = kNever;
  Nanos given_at_ = 0, ends_at_ = kNever;  // by the client's clock
  uint64_t refused_ = 0;                   // the number of the last that a server has refused
  Nanos last_invalid_ = 0;
  Nanos needed_since_ = kNever;  // it is to be asked
  uint64_t timer_ = 0;           // the number of the pending timer event
};

class LoginTry {
 public:
  using Stage = driver::LoginAttempt::Stage;

  // `attempt` outlives it.
  LoginTry(Client &client, Context &context, driver::LoginAttempt &attempt);
  ~LoginTry();
  LoginTry(const LoginTry &) = delete;
  LoginTry &operator=(const LoginTry &) = delete;

  // Until it is to be dialled, waits for the application, or is over.
  Stage go_on();
  // A dial has ended: on_dialled() and go_on() follow.
  void note_dialled(const Outcome &outcome);

 private:
  uint64_t login() const { return attempt_.login().number; }

  Client &client_;
  Context &context_;
  driver::LoginAttempt &attempt_;
  bool is_waiting_ = false;
  int denied_count_ = 0;
  bool was_replaceable_ = false;  // what was refused last
};

}  // namespace redlatch::sim
