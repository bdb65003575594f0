// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The failure of a server that cannot be used.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace redlatch {

inline constexpr std::string_view kNoAnswer = "no answer within the time limit";
inline constexpr std::string_view kClosedByServer = "the connection was closed by the server";

inline Outcome unreachable(const std::string &address, std::string_view why) {
  return failure(Status::kUnavailable, "cannot reach " + address + ": " + std::string(why));
}

}  // namespace redlatch
