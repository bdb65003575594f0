// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Writes JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text.h"

namespace redlatch::cli {

// Collects the members of an object.
class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) {
    return raw(key, json_string(value));
  }
  JsonObject& number(std::string_view key, std::int64_t value) {
    return raw(key, std::to_string(value));
  }
  JsonObject& raw(std::string_view key, std::string_view value) {
    out_ += out_.empty() ? "{" : ",";
    out_ += json_string(key);
    out_ += ":";
    out_ += value;
    return *this;
  }
  [[nodiscard]] std::string done() const { return out_.empty() ? "{}" : out_ + "}"; }

 private:
  std::string out_;
};

// An array with the output of `write` for each row.
template <typename Rows, typename Write>
std::string json_array(const Rows& rows, Write write) {
  std::string out = "[";
  for (const auto& row : rows) {
    if (out.size() > 1) out += ",";
    out += write(row);
  }
  return out + "]";
}

}  // namespace redlatch::cli
