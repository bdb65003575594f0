// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/credentials.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace redlatch::driver {

namespace {

// Between two questions, if there was an answer that was of no use.
constexpr Nanos kPause = 1000 * kMs;
constexpr Nanos kLongestPause = 30'000 * kMs;
// Azure closes connections whose token was not renewed this long before its end.
constexpr Nanos kMargin = 180'000 * kMs;

// How long after they were given new ones are asked for: at three quarters of their time, or
// kMargin before its end if that is earlier; those that end very soon, at half of it.
Nanos refresh_after(Nanos valid_for) {
  if (valid_for == kNever) return kNever;
  return std::min(valid_for / 4 * 3, std::max(valid_for - kMargin, valid_for / 2));
}

}  // namespace

// ---- the application ---------------------------------------------------------------------------

void Credentials::set(std::string_view user, std::string_view password, Nanos valid_for,
                      Nanos now) {
  Login given;
  given.number = login_.number + 1;
  given.user = user;
  given.password = password;
  login_.number = given.number;
  login_.user.swap(given.user);
  login_.password = std::move(given.password);
  is_used_ = true;
  given_at_ = now;
  ends_at_ = valid_for == kNever ? kNever : after(now, valid_for);
  refresh_at_ = valid_for == kNever ? kNever : after(now, refresh_after(valid_for));
  is_refused_ = is_asked_ = false;
  failure_.clear();
  failure_count_ = 0;
  patient_at_ = urgent_at_ = now;
}

bool Credentials::fail(std::string_view why, Nanos now) {
  const std::string shown = clean(cut(without(why, login_.password), kMaxFailure));
  failure_ = "the application gave no credentials" + (shown.empty() ? "" : ": " + shown);
  is_asked_ = false;
  patient_at_ = after(now, std::min(kPause << failure_count_, kLongestPause));
  urgent_at_ = after(now, kPause);
  failure_count_ = std::min(failure_count_ + 1, 5);
  assert(patient_at_ >= urgent_at_);
  return failure_count_ == 1;
}

void Credentials::begin_watch() noexcept {
  is_used_ = is_watched_ = true;
  is_asked_ = false;
}

// ---- questions ---------------------------------------------------------------------------------

void Credentials::on_asked() noexcept {
  assert(is_watched_ && !is_asked_);
  is_asked_ = true;
}

void Credentials::on_not_asked(Nanos now) noexcept {
  patient_at_ = urgent_at_ = after(now, kPause);
}

Nanos Credentials::next_due() const {
  if (is_asked_ || !is_watched_) return kNever;
  if (is_needed()) return urgent_at_;
  return std::min(std::max(patient_at_, refresh_at_), std::max(urgent_at_, ends_at_));
}

// ---- connections -------------------------------------------------------------------------------

Outcome Credentials::missing(Nanos now) const {
  std::string why = failure_;
  if (why.empty() && login_.number == 0) why = "the application has not given credentials in time";
  if (why.empty() && is_refused_) {
    why =
        "the server has refused the credentials, and the application has not given others in time";
  }
  if (why.empty()) {
    const bool has_ended = now >= ends_at_;
    why = has_ended ? "the credentials have ended, and the application has not given others in time"
                    : "the application has not given new credentials in time";
  }
  return failure(Status::kUnavailable, why);
}

Credentials::Given Credentials::give(uint64_t than, Nanos limit, Nanos now) const {
  assert(than <= login_.number && "numbers only rise");
  const bool is_usable = now < ends_at_ && (!is_refused_ || !is_watched_);
  if (!is_used_ || (login_.number > than && is_usable)) return {Given::What::kLogin};
  const bool is_asked = is_asked_ || asks(now);
  const bool has_failed = !failure_.empty() && !is_asked;
  if (!is_watched_ || has_failed || now >= limit) return {Given::What::kFailure, missing(now)};
  return {Given::What::kWait, {}, is_asked ? limit : std::min(limit, may_ask_at(now))};
}

void Credentials::on_refused(uint64_t number) noexcept {
  assert(number != 0);
  if (number != login_.number) return;  // there are others already
  is_refused_ = true;
  urgent_at_ = std::max(urgent_at_, after(given_at_, kPause));
}

bool Credentials::is_worth_waiting(uint64_t number, Nanos now) const {
  if (number != login_.number || is_asked_) return true;
  return is_watched_ && now >= after(given_at_, kPause);
}

const char *Credentials::check() const {
  if (is_asked_ && !is_watched_) return "who is asked can be asked";
  if (is_watched_ && !is_used_) return "a watch makes them those of the client";
  if (is_refused_ && login_.number == 0) return "what was refused was given";
  if (refresh_at_ > ends_at_) return "others are asked for before they end";
  if (failure_.empty() != (failure_count_ == 0))
    return "failures are counted since the last answer";
  if (is_asked_ && next_due() != kNever) return "no question is put twice";
  return nullptr;
}

}  // namespace redlatch::driver
