// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Messages, made of parts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

#include "base/settings.h"

namespace redlatch {

// "lock 'orders'"
struct LockName {
  std::string_view name;
};

// In quotes, see quoted().
struct Quoted {
  std::string_view text;
};

// As "0.05 s".
struct Seconds {
  int64_t ms;
};

// A separator and a text; nothing if the text is empty.
struct After {
  std::string_view separator, text;
};

// A text that may have any bytes, see clean().
struct Foreign {
  std::string_view text;
};

// A pointer to the settings of a server is written as its address.
using MessagePart = std::variant<std::string_view, int64_t, LockName, Quoted, Seconds, After,
                                 Foreign, const Settings *>;

// Without memory the text is empty: the status that goes with it says enough.
std::string message_of(std::initializer_list<MessagePart> parts) noexcept;

}  // namespace redlatch
