// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/login_attempt.h"

#include <cassert>
#include <utility>

namespace redlatch::driver {

void LoginAttempt::end(const Outcome &outcome) {
  outcome_ = outcome;
  stage_ = Stage::kOver;
}

void LoginAttempt::on_read(const Outcome &outcome, Nanos now) {
  assert(stage_ == Stage::kReading);
  if (!outcome.ok()) return end(outcome);
  wait_limit_ = after(now, settings_.connect_timeout);
  stage_ = Stage::kWaiting;
}

void LoginAttempt::on_missing(const Outcome &why) {
  assert(stage_ == Stage::kWaiting);
  end({why.status, "cannot connect to " + settings_.address() + ": " + why.message});
}

void LoginAttempt::on_given(const Login &login) {
  assert(stage_ == Stage::kWaiting);
  login_ = login;
  if (login.number != 0) {
    settings_.user = login.user;
    settings_.password = login.password;
  }
  const bool is_same = denied_ && login.number == denied_->login &&
                       settings_.password == denied_->password &&
                       settings_.sentinel.password == denied_->sentinel_password;
  if (is_same) return end(denied_->outcome);
  stage_ = Stage::kDialling;
}

void LoginAttempt::on_dialled(const Outcome &outcome, Nanos now) {
  assert(stage_ == Stage::kDialling);
  if (outcome.status != Status::kDenied) return end(outcome);
  if (limit_ != 0 && now >= limit_) return end({Status::kUnavailable, outcome.message});
  if (limit_ == 0) limit_ = after(now, settings_.connect_timeout);
  denied_ = {outcome, login_.number, settings_.password, settings_.sentinel.password};
  stage_ = login_.number == 0 ? Stage::kReading : Stage::kDenied;
}

void LoginAttempt::on_hope(bool may_others_come) {
  assert(stage_ == Stage::kDenied);
  if (!may_others_come) return end(denied_->outcome);
  stage_ = Stage::kReading;
}

const char *LoginAttempt::check() const {
  if (denied_.has_value() != (limit_ != 0)) return "the first refusal sets the limit";
  if (stage_ == Stage::kDenied && login_.number == 0) return "the application gave what is refused";
  if (denied_ && login_.number < denied_->login) return "logins only get newer";
  return nullptr;
}

}  // namespace redlatch::driver
