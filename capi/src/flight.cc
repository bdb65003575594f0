// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Flights: one caller computes a value, the others wait for it.
#include <memory>
#include <string>

#include "base/limits.h"
#include "calls.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

// Waiting callers read a failure within this time; later callers do not get it.
constexpr Nanos kFailureTtl = 10'000 * kMs;

// The value that a finished request has found; nullptr: it has found no value.
const runtime::FlightValue *value_of(const rl_request *request) {
  if (request == nullptr || rl_request_status(request) != RL_OK) return nullptr;
  const Request &done = *request->request;
  return done.is_flight() ? done.arguments->value.get() : nullptr;
}

Outcome fill_result(Request &request, runtime::FlightValue value, Nanos ttl) {
  request.arguments = std::make_unique<runtime::RequestArguments>();
  request.arguments->value = std::make_shared<const runtime::FlightValue>(std::move(value));
  request.arguments->value_ttl = ttl;
  return {};
}

auto store_of(const char *value, size_t value_len, int64_t ttl_ms) {
  return [=](Request &request) {
    auto outcome = check_text("value", value, value_len);
    if (outcome.ok()) outcome = config::check_ttl(ttl_ms);
    if (outcome.ok() && value_len > kMaxValueBytes) {
      outcome =
          failure(Status::kInvalid, "value must be at most " + std::to_string(kMaxValueBytes) +
                                        " bytes (got " + std::to_string(value_len) + " bytes)");
    }
    if (!outcome.ok()) return outcome;
    runtime::FlightValue stored;
    stored.bytes = text_of(value, value_len);
    return fill_result(request, std::move(stored), ttl_ms * kMs);
  };
}

auto failure_of(const char *type, size_t type_len, const char *text, size_t text_len) {
  return [=](Request &request) {
    auto outcome = check_text("type", type, type_len);
    if (outcome.ok()) outcome = check_text("text", text, text_len);
    if (!outcome.ok()) return outcome;
    runtime::FlightValue value;
    value.is_failure = true;
    value.type = text_of(type, type_len).substr(0, kMaxFailureType);
    value.type = value.type.substr(0, value.type.find('\0'));
    value.bytes = text_of(text, text_len).substr(0, kMaxFailureText);
    return fill_result(request, std::move(value), kFailureTtl);
  };
}

}  // namespace

extern "C" {

rl_request *rl_flight_start(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                            const rl_acquire_options *options) {
  return start(client, Request::Op::kAcquire, [&](Request &request) {
    return fill_flight(*client, request, name, name_len, wait_ms, options);
  });
}

size_t rl_flight_value(const rl_request *request, char *buffer, size_t buffer_size) {
  const auto *value = value_of(request);
  copy_out(value == nullptr ? std::string_view() : value->bytes, buffer, buffer_size);
  return value == nullptr ? RL_NO_TEXT : value->bytes.size();
}

int32_t rl_flight_has_failed(const rl_request *request) {
  const auto *value = value_of(request);
  return value != nullptr && value->is_failure ? 1 : 0;
}

size_t rl_flight_failure_type(const rl_request *request, char *buffer, size_t buffer_size) {
  const auto *value = value_of(request);
  return copy_out(value == nullptr ? std::string_view() : value->type, buffer, buffer_size);
}

rl_status rl_flight_store(rl_lease *lease, const char *value, size_t value_len, int64_t ttl_ms,
                          rl_error *err) {
  return run(lease, Request::Op::kRelease, err, store_of(value, value_len, ttl_ms));
}

rl_request *rl_flight_store_start(rl_lease *lease, const char *value, size_t value_len,
                                  int64_t ttl_ms) {
  return start(lease, Request::Op::kRelease, store_of(value, value_len, ttl_ms));
}

rl_status rl_flight_fail(rl_lease *lease, const char *type, size_t type_len, const char *text,
                         size_t text_len, rl_error *err) {
  return run(lease, Request::Op::kRelease, err, failure_of(type, type_len, text, text_len));
}

rl_request *rl_flight_fail_start(rl_lease *lease, const char *type, size_t type_len,
                                 const char *text, size_t text_len) {
  return start(lease, Request::Op::kRelease, failure_of(type, type_len, text, text_len));
}

}  // extern "C"
