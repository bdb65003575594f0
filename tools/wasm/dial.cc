// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "dial.h"

namespace redlatch::wasm {

void Dial::proceed(Nanos now) {
  using Stage = driver::LoginAttempt::Stage;
  while (!login_.is_over()) {
    switch (login_.stage()) {
      case Stage::kReading:
        login_.on_read({}, now);
        break;
      case Stage::kWaiting:
        if (!await_login(now)) return;
        break;
      case Stage::kDialling:
        if (!dial(now)) return;
        break;
      default:
        credentials_.on_refused(login());
        login_.on_hope(credentials_.is_worth_waiting(login(), now));
        break;
    }
  }
}

// @return false: it waits.
bool Dial::await_login(Nanos now) {
  using What = driver::Credentials::Given::What;
  if (!is_waiting_) credentials_.begin_wait();
  is_waiting_ = true;
  const auto given = credentials_.give(login(), login_.limit(), now);
  wait_until_ = given.until;
  if (given.what == What::kWait) return false;
  end_wait();
  given.what == What::kLogin ? login_.on_given(credentials_.login()) : login_.on_missing(given.why);
  return true;
}

// @return false: it is under way.
bool Dial::dial(Nanos now) {
  if (!attempt_ || was_refused_) {
    const auto before = std::move(attempt_);
    attempt_ = std::make_unique<Attempt>(make_(login_.settings(), before.get(), now));
    was_refused_ = false;
  }
  if (!attempt_->is_over()) return false;
  login_.on_dialled(attempt_->outcome(), now);
  was_refused_ = !login_.is_over();
  return true;
}

void Dial::end_wait() {
  if (std::exchange(is_waiting_, false)) credentials_.end_wait();
}

}  // namespace redlatch::wasm
