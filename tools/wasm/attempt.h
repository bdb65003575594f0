// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Attempt: connects with the newest password, and with the next ones if the server refuses it. The
// machine says how: it is a driver::NodeAttempt, or has the same login(), begin() and end().
#pragma once

#include <memory>
#include <utility>

#include "base/clock.h"
#include "dialogue_host.h"
#include "driver/credentials.h"
#include "driver/login_attempt.h"

namespace redlatch::wasm {

template <class Machine>
class Attempt final {
 public:
  template <class... Args>
  explicit Attempt(driver::Credentials &credentials, Args &&...args)
      : credentials_(credentials), machine_(std::forward<Args>(args)...) {}
  Attempt(const Attempt &) = delete;
  Attempt &operator=(const Attempt &) = delete;
  ~Attempt() { end_wait(); }

  Machine &machine() { return machine_; }
  bool is_over() const { return machine_.login().is_over(); }
  // Of the last dialogue, once one was held.
  DialogueHost &host() { return *host_; }

  // After each event: the application may have given other credentials.
  void proceed(Nanos now) {
    using Stage = driver::LoginAttempt::Stage;
    driver::LoginAttempt &login = machine_.login();
    while (!login.is_over()) {
      switch (login.stage()) {
        case Stage::kReading:
          login.on_read({}, now);
          break;
        case Stage::kWaiting:
          if (!await_login(now)) return;
          break;
        case Stage::kDialling:
          if (!hold_dialogue(now)) return;
          break;
        default:
          credentials_.on_refused(login.login().number);
          login.on_hope(credentials_.is_worth_waiting(login.login().number, now));
          break;
      }
    }
  }
  // Ends the dialogue.
  void stop(Nanos now) {
    if (is_held_) host_->stop(now);
  }
  void on_time(Nanos now) {
    if (is_held_) host_->on_time(now);
  }
  Nanos next_due() const { return is_held_ ? host_->next_due() : wait_until_; }

 private:
  // @return false: it waits.
  bool await_login(Nanos now) {
    using What = driver::Credentials::Given::What;
    driver::LoginAttempt &login = machine_.login();
    if (!std::exchange(is_waiting_, true)) credentials_.begin_wait();
    const auto given = credentials_.give(login.login().number, login.limit(), now);
    wait_until_ = given.until;
    if (given.what == What::kWait) return false;
    end_wait();
    given.what == What::kLogin ? login.on_given(credentials_.login()) : login.on_missing(given.why);
    return true;
  }
  void end_wait() {
    if (std::exchange(is_waiting_, false)) credentials_.end_wait();
  }
  // @return false: it continues.
  bool hold_dialogue(Nanos now) {
    if (!is_held_) {
      host_.reset();
      host_ = std::make_unique<DialogueHost>(machine_.begin(now));
      is_held_ = true;
    }
    if (!host_->is_over()) return false;
    is_held_ = false;
    machine_.end(now);
    return true;
  }

  driver::Credentials &credentials_;
  Machine machine_;
  std::unique_ptr<DialogueHost> host_;
  bool is_held_ = false;
  bool is_waiting_ = false;
  Nanos wait_until_ = kNever;
};

}  // namespace redlatch::wasm
