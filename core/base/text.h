// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Text helpers for every folder.
#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace redlatch {

// `text` for a message: quoted, unusual bytes as \xNN, cut after `limit` bytes. Names may hold any
// bytes, and a message is one line.
std::string quoted(std::string_view text, size_t limit = 64);

// `text` with U+FFFD for bytes that are not UTF-8, and spaces for control characters. Servers may
// send any bytes, and some languages refuse such texts.
std::string clean(std::string_view text);

// At most the first `limit` bytes of `text`, without half a character at the end.
std::string_view cut(std::string_view text, size_t limit);

// `text` with *** for each `secret` in it, which may be empty.
std::string without(std::string_view text, std::string_view secret);

// The text of an errno value, in `buffer` or constant, without memory of its own.
const char *error_text(int error, std::span<char> buffer);
// The same as a string.
std::string reason_of(int error);

// As "0.05 s".
std::string in_seconds(int64_t ms);

// Parse all of `text` as a decimal number. @return false if it is not one, or too large.
template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number &number) {
  const char *end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

}  // namespace redlatch
