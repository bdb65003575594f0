// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Value: a reply of the simulated store, with the types of RESP2. Owns its texts and items.
#pragma once

#include <charconv>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlatch::sim {

using Argv = std::span<const std::string_view>;

// 0 for a text that begins with no digit.
inline int64_t integer_of(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Value {
  enum class Kind : uint8_t { kNil, kInteger, kText, kStatus, kError, kArray };

  Kind kind = Kind::kNil;
  int64_t integer = 0;
  std::string text;  // of kText, kStatus ("OK") and kError ("WRONGTYPE Operation ..")
  std::vector<Value> items;

  static Value nil() { return {}; }
  static Value of(int64_t number) { return {Kind::kInteger, number, {}, {}}; }
  static Value of(std::string words) { return {Kind::kText, 0, std::move(words), {}}; }
  static Value status(std::string words) { return {Kind::kStatus, 0, std::move(words), {}}; }
  static Value error(std::string words) { return {Kind::kError, 0, std::move(words), {}}; }
  static Value list(std::vector<Value> values) { return {Kind::kArray, 0, {}, std::move(values)}; }

  bool is_error() const { return kind == Kind::kError; }
  bool operator==(const Value &) const = default;
};

}  // namespace redlatch::sim
