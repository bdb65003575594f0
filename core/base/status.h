// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Status: the result of a call. The numbers are those of the C ABI (capi/statuses.def), which
// checks at compile time that both lists agree.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace redlatch {

enum class Status : int32_t {
  kOk = 0,
  kBusy = 1,
  kTimeout = 2,
  kPending = 3,
  kEnd = 4,
  kCancelled = 5,
  kStillHeld = 6,
  kInterrupted = 7,
  kSkipped = 8,
  kAlreadyHeld = -1,
  kNotHeld = -2,
  kLost = -3,
  kDeadlock = -4,
  kUnavailable = -5,
  kOutcomeUnknown = -6,
  kNotReplicated = -7,
  kDenied = -8,
  kUnsupported = -9,
  kServer = -10,
  kInvalid = -11,
  kClosed = -12,
  kForked = -13,
  kNoMemory = -14,
  kInternal = -15,
  kWrongType = -16,
};

// A status with a message of one line. Errors are values: core throws only std::bad_alloc and what
// derives from it, which the ABI turns into kNoMemory.
struct [[nodiscard]] Outcome {
  Status status = Status::kOk;
  std::string message;

  bool ok() const { return status == Status::kOk; }
};

// A failure. Its message is cleaned, because it may contain text of a server or a caller.
inline Outcome failure(Status status, std::string_view message) {
  return Outcome{status, clean(message)};
}

// `words()` is the message. Without memory it has none.
template <class Words>
Outcome failure_if_memory(Status status, const Words &words) noexcept {
  try {
    return failure(status, words());
  } catch (const std::bad_alloc &) {
    return Outcome{status, {}};
  }
}

// Without memory it has no message.
inline Outcome copy_of(const Outcome &why) noexcept {
  try {
    return why;
  } catch (const std::bad_alloc &) {
    return Outcome{why.status, {}};
  }
}

}  // namespace redlatch
