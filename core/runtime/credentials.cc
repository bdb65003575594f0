// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/credentials.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>

#include "base/text.h"
#include "host/clock.h"

namespace redlatch::runtime {

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

void Credentials::set(std::string_view user, std::string_view password, Nanos valid_for,
                      Nanos now) {
  const MutexLock lock(mutex_);
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
  changed_.notify_all();
}

bool Credentials::fail(std::string_view why, Nanos now) {
  const MutexLock lock(mutex_);
  const std::string shown = clean(cut(without(why, login_.password), kMaxFailure));
  failure_ = "the application gave no credentials" + (shown.empty() ? "" : ": " + shown);
  is_asked_ = false;
  patient_at_ = after(now, std::min(kPause << failure_count_, kLongestPause));
  urgent_at_ = after(now, kPause);
  failure_count_ = std::min(failure_count_ + 1, 5);
  assert(patient_at_ >= urgent_at_);
  changed_.notify_all();
  return failure_count_ == 1;
}

void Credentials::watch(const std::shared_ptr<Queue> &queue, int64_t tag, Nanos now) {
  const MutexLock lock(mutex_);
  const bool is_due = queue && is_wanted(now) && now >= may_ask_at(now);
  if (is_due) queue->post(tag);
  queue_ = queue;
  tag_ = tag;
  is_asked_ = is_due;
  is_used_ = is_used_ || queue;
  changed_.notify_all();
}

// Without memory for the tag the question is repeated when next_due() says so.
void Credentials::ask(Nanos now) noexcept {
  const auto queue = queue_.lock();
  if (!queue || is_asked_ || now < may_ask_at(now)) return;
  try {
    queue->post(tag_);
    is_asked_ = true;
  } catch (const std::bad_alloc &) {
    patient_at_ = urgent_at_ = after(now, kPause);
  }
}

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

Outcome Credentials::await(Nanos limit, uint64_t than, Login &login) {
  MutexLock lock(mutex_);
  if (!is_used_) return {};
  assert(than <= login_.number && "numbers only rise");
  struct Waiting {
    explicit Waiting(int &count_) : count(count_) { count++; }
    ~Waiting() { count--; }
    int &count;
  } const waiting(waiting_count_);
  while (true) {
    const Nanos now = boot_now();
    const bool is_watched = !queue_.expired();
    const bool is_usable = now < ends_at_ && (!is_refused_ || !is_watched);
    if (login_.number > than && is_usable) {
      login = login_;
      return {};
    }
    ask(now);
    const bool has_failed = !failure_.empty() && !is_asked_;
    if (is_stopped_ || !is_watched || has_failed || now >= limit) return missing(now);
    const Nanos until = is_asked_ ? limit : std::min(limit, may_ask_at(now));
    lock.wait_for(changed_, std::chrono::nanoseconds(std::max(until - now, kMs)));
  }
}

bool Credentials::newer(uint64_t than, Login &login) const {
  const MutexLock lock(mutex_);
  if (login_.number <= than) return false;
  login = login_;
  return true;
}

uint64_t Credentials::number() const {
  const MutexLock lock(mutex_);
  return login_.number;
}

bool Credentials::refused(uint64_t number, Nanos now) {
  const MutexLock lock(mutex_);
  if (number != login_.number) return true;  // there are others already
  is_refused_ = true;
  const Nanos new_until = after(given_at_, kPause);
  urgent_at_ = std::max(urgent_at_, new_until);
  ask(now);
  return is_asked_ || (!queue_.expired() && now >= new_until);
}

Nanos Credentials::next_due() const {
  const MutexLock lock(mutex_);
  if (is_asked_ || queue_.expired()) return kNever;
  if (is_needed()) return urgent_at_;
  return std::min(std::max(patient_at_, refresh_at_), std::max(urgent_at_, ends_at_));
}

void Credentials::on_timer(Nanos now) {
  const MutexLock lock(mutex_);
  if (is_wanted(now)) ask(now);
}

void Credentials::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  queue_.reset();
  changed_.notify_all();
}

}  // namespace redlatch::runtime
