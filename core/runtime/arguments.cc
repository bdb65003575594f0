// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/arguments.h"

#include "base/limits.h"
#include "base/text.h"
#include "host/clock.h"

namespace redlatch::runtime {

Outcome check_token(std::string_view token) {
  if (is_token(token)) return {};
  // Not shown: with a token its lock can be released.
  const bool has_size = token.size() == protocol::kTokenSize;
  const std::string shown = has_size ? "other characters" : std::to_string(token.size()) + " bytes";
  return failure(Status::kInvalid, "token must be " + std::to_string(protocol::kTokenSize) +
                                       " bytes, the token of a lease (got " + shown + ")");
}

Outcome check_wait(int64_t wait_ms) {
  if (wait_ms >= -1) return {};
  return failure(Status::kInvalid, "wait must be -1 (no limit), 0 (one try) or more (got " +
                                       std::to_string(wait_ms) + " ms)");
}

std::string key_pattern(const Settings &settings, std::string_view pattern) {
  return protocol::key_pattern(settings.name_space, pattern.empty() ? "*" : pattern);
}

Nanos limit_of(int64_t wait_ms) {
  if (wait_ms < 0 || wait_ms > kMaxWaitMs) return kNever;
  return after(boot_now(), wait_ms * kMs);
}

Nanos validity_of(int64_t valid_ms) {
  return valid_ms < 0 || valid_ms > kMaxWaitMs ? kNever : valid_ms * kMs;
}

}  // namespace redlatch::runtime
