// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Small text helpers that every layer shares.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace redlatch {

// `text` for people: quoted, unusual bytes as \xNN, cut after `limit` bytes. Names are any bytes;
// a message is one line.
std::string quoted(std::string_view text, size_t limit = 64);

// `text` as it may stand in a message: bytes that are not UTF-8 are U+FFFD, and control characters
// spaces. Servers may say anything, and some languages refuse such texts.
std::string clean(std::string_view text);

// The first `limit` bytes of `text` at most, without half a character at the end.
std::string_view cut(std::string_view text, size_t limit);

// "0.05 s".
std::string in_seconds(int64_t ms);

// Parse all of `text` as a decimal number. @return false if it is not one, or too large.
template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number &number) {
  const char *end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

}  // namespace redlatch
