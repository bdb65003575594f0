// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Log: takes lines about background events.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlatch::driver {

enum class LogLevel : uint8_t { kNone, kError, kWarning, kInfo };

class Log {
 public:
  // Without memory the line is lost.
  virtual void add(LogLevel level, std::string_view text) noexcept = 0;

 protected:
  ~Log() = default;
};

}  // namespace redlatch::driver
