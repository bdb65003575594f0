// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runs of once.
#include <memory>
#include <string>

#include "base/limits.h"
#include "calls.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

// A success is remembered for this part of `every`: schedulers start some ms early.
constexpr int64_t kRememberedPercent = 90;
constexpr int64_t kMaxEveryMs = kMaxEveryDays * 24 * 3600 * 1000;

Outcome fill_key(Request &request, const char *key, size_t key_len) {
  if (auto outcome = check_text("key", key, key_len); !outcome.ok()) return outcome;
  const std::string_view text = text_of(key, key_len);
  if (text.size() > kMaxPeriodBytes) {
    return failure(Status::kInvalid, "key must be at most " + std::to_string(kMaxPeriodBytes) +
                                         " bytes (got " + std::to_string(text.size()) + " bytes)");
  }
  if (!request.arguments) request.arguments = std::make_unique<runtime::RequestArguments>();
  request.arguments->period = text;
  return {};
}

auto run_of(const char *key, size_t key_len, int64_t every_ms, int32_t tries) {
  return [=](Request &request) {
    auto outcome = fill_key(request, key, key_len);
    if (outcome.ok() && (every_ms < kMinEveryMs || every_ms > kMaxEveryMs)) {
      outcome = failure(Status::kInvalid, "every must be " + std::to_string(kMinEveryMs) +
                                              " ms to " + std::to_string(kMaxEveryDays) +
                                              " days (got " + std::to_string(every_ms) + " ms)");
    }
    if (outcome.ok() && (tries < 1 || tries > kMaxTries)) {
      outcome = failure(Status::kInvalid, "tries must be 1 to " + std::to_string(kMaxTries) +
                                              " (got " + std::to_string(tries) + ")");
    }
    if (!outcome.ok()) return outcome;
    const bool is_named = !request.arguments->period.empty();
    const int64_t remembered_ms = is_named ? every_ms : every_ms * kRememberedPercent / 100;
    request.arguments->remembered_for = remembered_ms * kMs;
    request.arguments->tries = tries;
    return outcome;
  };
}

auto success_of(const char *key, size_t key_len) {
  return [=](Request &request) { return fill_key(request, key, key_len); };
}

}  // namespace

extern "C" {

rl_status rl_once_begin(rl_lease *lease, const char *key, size_t key_len, int64_t every_ms,
                        int32_t tries, rl_error *err) {
  return run(lease, Request::Op::kBeginRun, err, run_of(key, key_len, every_ms, tries));
}

rl_request *rl_once_begin_start(rl_lease *lease, const char *key, size_t key_len, int64_t every_ms,
                                int32_t tries) {
  return start(lease, Request::Op::kBeginRun, run_of(key, key_len, every_ms, tries));
}

rl_status rl_once_done(rl_lease *lease, const char *key, size_t key_len, rl_error *err) {
  return run(lease, Request::Op::kRelease, err, success_of(key, key_len));
}

rl_request *rl_once_done_start(rl_lease *lease, const char *key, size_t key_len) {
  return start(lease, Request::Op::kRelease, success_of(key, key_len));
}

rl_status rl_once_forget(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  return run(client, Request::What::ask<runtime::operate::OnceForget>(), err,
             lock_named(name, name_len));
}

rl_request *rl_once_forget_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, Request::What::ask<runtime::operate::OnceForget>(),
               lock_named(name, name_len));
}

}  // extern "C"
