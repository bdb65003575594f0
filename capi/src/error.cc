// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Errors, statuses, versions and constants.
#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "handles.h"

namespace redlatch::capi {

#define RL_STATUS(NAME, CORE, NUMBER, TRAITS, TEXT)                    \
  static_assert(RL_##NAME == (NUMBER), "redlatch.h and statuses.def"); \
  static_assert(static_cast<rl_status>(Status::k##CORE) == (NUMBER), "core and statuses.def");
#include "../statuses.def"
#undef RL_STATUS

#define RL_LIMIT(NAME, type, constant, value, text) \
  static_assert(RL_##NAME == int64_t{constant}, "redlatch.h and options.def");
#include "config/options.def"
#define RL_KIND_FORMAT(...)
#define RL_FORMAT(NAME, name, folder, number, ...) \
  static_assert(RL_FORMAT_##NAME == (number), "redlatch.h and formats.def");
#include "protocol/formats.def"
#undef RL_FORMAT
static_assert(RL_NODE_AWAY == static_cast<int>(NodeState::kAway));
static_assert(RL_ROLE_CLUSTER_MEMBER == static_cast<int>(NodeRole::kClusterMember));
static_assert(RL_LOST_GONE == static_cast<int>(runtime::LossReason::kGone));
static_assert(RL_LOG_ERROR == static_cast<int>(runtime::LogLevel::kError));
static_assert(RL_LOG_INFO == static_cast<int>(runtime::LogLevel::kInfo));
static_assert(offsetof(rl_event, kind) == 8 && offsetof(rl_event, status) == 12 &&
              offsetof(rl_event, handle) == 16);
static_assert(RL_EVENT_POSTED == static_cast<int>(runtime::QueueEvent::Kind::kPosted));
static_assert(RL_EVENT_REQUEST == static_cast<int>(runtime::QueueEvent::Kind::kRequest));
static_assert(RL_EVENT_LEASE == static_cast<int>(runtime::QueueEvent::Kind::kLease));
static_assert(RL_EVENT_LOG == static_cast<int>(runtime::QueueEvent::Kind::kLog));
static_assert(RL_EVENT_CREDENTIALS == static_cast<int>(runtime::QueueEvent::Kind::kCredentials));
static_assert(RL_EVENT_RECALL == static_cast<int>(runtime::QueueEvent::Kind::kRecall));
static_assert(int{RL_LEASE_HELD} == int{Lease::kHeld});
static_assert(int{RL_LEASE_LOST} == int{Lease::kLost});
static_assert(int{RL_LEASE_RELEASED} == int{Lease::kReleased});
static_assert(int{RL_LEASE_DETACHED} == int{Lease::kDetached});

namespace {

struct StatusRow {
  rl_status status;
  const char *name;
  int32_t traits;
  const char *text;
};

constexpr StatusRow kStatuses[] = {
#define RL_STATUS(NAME, CORE, NUMBER, TRAITS, TEXT) {NUMBER, "RL_" #NAME, TRAITS, TEXT},
#include "../statuses.def"
#undef RL_STATUS
};

struct Constant {
  const char *name;
  int32_t value;
};

#define RL_CONSTANT(NAME) \
  { #NAME, NAME }
// One entry in each line.
// clang-format off
constexpr Constant kConstants[] = {
#define RL_LIMIT(NAME, type, constant, value, text) {"RL_" #NAME, value},
#include "config/options.def"
    RL_CONSTANT(RL_MAYBE_APPLIED),
    RL_CONSTANT(RL_RETRYABLE),
    RL_CONSTANT(RL_FORMAT_STRING),
    RL_CONSTANT(RL_FORMAT_HASH),
    RL_CONSTANT(RL_FORMAT_HASH_RW),
    RL_CONSTANT(RL_MODE_WRITE),
    RL_CONSTANT(RL_MODE_READ),
    RL_CONSTANT(RL_MODE_UPGRADE),
    RL_CONSTANT(RL_EVENT_POSTED),
    RL_CONSTANT(RL_EVENT_REQUEST),
    RL_CONSTANT(RL_EVENT_LEASE),
    RL_CONSTANT(RL_EVENT_LOG),
    RL_CONSTANT(RL_EVENT_CREDENTIALS),
    RL_CONSTANT(RL_EVENT_RECALL),
    RL_CONSTANT(RL_LEASE_HELD),
    RL_CONSTANT(RL_LEASE_RELEASED),
    RL_CONSTANT(RL_LEASE_LOST),
    RL_CONSTANT(RL_LEASE_DETACHED),
    RL_CONSTANT(RL_LOG_NONE),
    RL_CONSTANT(RL_LOG_ERROR),
    RL_CONSTANT(RL_LOG_WARNING),
    RL_CONSTANT(RL_LOG_INFO),
    RL_CONSTANT(RL_PART_LOCK),
    RL_CONSTANT(RL_PART_HOLDER),
    RL_CONSTANT(RL_PART_WAITER),
    RL_CONSTANT(RL_PART_SERVER),
    RL_CONSTANT(RL_STATE_FREE),
    RL_CONSTANT(RL_STATE_HELD),
    RL_CONSTANT(RL_STATE_FOREIGN),
    RL_CONSTANT(RL_STATE_NO_LOCK),
#define RL_INFO_NUMBER(NAME, ...) RL_CONSTANT(RL_FIELD_##NAME),
#define RL_INFO_TEXT(NAME, ...) RL_CONSTANT(RL_FIELD_##NAME),
#include "../info_fields.def"
    RL_CONSTANT(RL_PART_NODE),
    RL_CONSTANT(RL_PART_FINDING),
    RL_CONSTANT(RL_PART_MARK),
    RL_CONSTANT(RL_LEVEL_UNKNOWN),
    RL_CONSTANT(RL_LEVEL_OK),
    RL_CONSTANT(RL_LEVEL_WARN),
    RL_CONSTANT(RL_LEVEL_FAIL),
    RL_CONSTANT(RL_NODE_UNKNOWN),
    RL_CONSTANT(RL_NODE_UP),
    RL_CONSTANT(RL_NODE_POLLED),
    RL_CONSTANT(RL_NODE_NO_VOTE),
    RL_CONSTANT(RL_NODE_AWAY),
    RL_CONSTANT(RL_ROLE_UNKNOWN),
    RL_CONSTANT(RL_ROLE_PRIMARY),
    RL_CONSTANT(RL_ROLE_REPLICA),
    RL_CONSTANT(RL_ROLE_CLUSTER_MEMBER),
    RL_CONSTANT(RL_LOST_NONE),
    RL_CONSTANT(RL_LOST_EXPIRED),
    RL_CONSTANT(RL_LOST_TAKEN_OVER),
    RL_CONSTANT(RL_LOST_FORCED),
    RL_CONSTANT(RL_LOST_MAX_HOLD),
    RL_CONSTANT(RL_LOST_NO_MAJORITY),
    RL_CONSTANT(RL_LOST_CLOSED),
    RL_CONSTANT(RL_LOST_DEFECT),
    RL_CONSTANT(RL_LOST_GONE),
};
// clang-format on
#undef RL_CONSTANT

const StatusRow *find_status(rl_status status) {
  for (const StatusRow &row : kStatuses) {
    if (row.status == status) return &row;
  }
  return nullptr;
}

char *end_text(std::string_view text, char *at) {
  at = std::copy(text.begin(), text.end(), at);
  *at = '\0';
  return at;
}

}  // namespace

rl_status answer(rl_error *err, Status status, std::string_view message) noexcept {
  const auto number = static_cast<rl_status>(status);
  if (err == nullptr) return number;
  err->status = number;
  if (message.empty() && number != RL_OK) message = rl_status_text(number);
  err->set_message(message);
  return number;
}

size_t copy_out(std::string_view text, char *buffer, size_t buffer_size) {
  if (buffer != nullptr && buffer_size > 0) {
    const size_t size = std::min(text.size(), buffer_size - 1);
    if (size > 0) std::memcpy(buffer, text.data(), size);
    buffer[size] = '\0';
  }
  return text.size();
}

}  // namespace redlatch::capi

using namespace redlatch::capi;

void rl_error::set_message(std::string_view text) noexcept {
  static constexpr std::string_view kCut = ".. (no memory for the rest)";
  std::unique_ptr<char[]> longer;
  if (text.size() < short_text.size()) {
    end_text(text, short_text.data());
  } else if (longer.reset(new (std::nothrow) char[text.size() + 1]); longer) {
    end_text(text, longer.get());
  } else {
    const std::string_view kept = redlatch::cut(text, short_text.size() - kCut.size() - 1);
    end_text(kCut, end_text(kept, short_text.data()));
  }
  long_text = std::move(longer);  // `text` may be that of this error
}

extern "C" {

const char *rl_status_name(rl_status status) {
  const StatusRow *row = find_status(status);
  return row == nullptr ? "RL_UNKNOWN" : row->name;
}

const char *rl_status_text(rl_status status) {
  const StatusRow *row = find_status(status);
  return row == nullptr ? "a status that this version does not know" : row->text;
}

int32_t rl_status_is(rl_status status, int32_t trait) {
  const StatusRow *row = find_status(status);
  return row != nullptr && (row->traits & trait) != 0 ? 1 : 0;
}

const char *rl_version(void) { return REDLATCH_VERSION; }

int32_t rl_abi_version(void) { return 1; }

int32_t rl_constant(const char *name, size_t name_len, int32_t if_unknown) {
  const std::string_view wanted = text_of(name, name_len);
  for (const StatusRow &row : kStatuses) {
    if (wanted == row.name) return row.status;
  }
  for (const Constant &constant : kConstants) {
    if (wanted == constant.name) return constant.value;
  }
  return if_unknown;
}

rl_error *rl_error_new(void) { return new (std::nothrow) rl_error; }

void rl_error_free(rl_error *err) { delete err; }

rl_status rl_error_status(const rl_error *err) {
  return err == nullptr ? static_cast<rl_status>(RL_E_INVALID) : err->status;
}

const char *rl_error_message(const rl_error *err) { return err == nullptr ? "" : err->message(); }

}  // extern "C"
