// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Dial: an attempt to connect with the newest password, and with the next ones if the server
// refuses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "attempt.h"
#include "base/settings.h"
#include "driver/credentials.h"
#include "driver/login_attempt.h"

namespace redlatch::wasm {

class Dial final {
 public:
  // A dialogue for settings with a password. `before`: the refused attempt, or nullptr.
  using Make = std::function<std::unique_ptr<driver::Dialogue>(const Settings &,
                                                               const Attempt *before, Nanos now)>;

  Dial(const Settings &settings, driver::Credentials &credentials, Make make, Nanos now)
      : credentials_(credentials), make_(std::move(make)), login_(settings) {
    proceed(now);
  }
  Dial(const Dial &) = delete;
  Dial &operator=(const Dial &) = delete;
  ~Dial() { end_wait(); }

  bool is_over() const { return login_.is_over(); }
  const Outcome &outcome() const { return login_.outcome(); }
  uint64_t login() const { return login_.login().number; }
  // The last one; nullptr: there was none.
  Attempt *attempt() const { return attempt_.get(); }
  // After each event: others may have been given.
  void proceed(Nanos now);

  void on_time(Nanos now) {
    if (attempt_) attempt_->on_time(now);
  }
  Nanos next_due() const {
    if (is_waiting_) return wait_until_;
    return attempt_ ? attempt_->next_due() : kNever;
  }

 private:
  bool await_login(Nanos now);
  bool dial(Nanos now);
  void end_wait();

  driver::Credentials &credentials_;
  const Make make_;
  driver::LoginAttempt login_;
  std::unique_ptr<Attempt> attempt_;
  bool was_refused_ = false;  // that of the attempt
  bool is_waiting_ = false;
  Nanos wait_until_ = kNever;
};

}  // namespace redlatch::wasm
