// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/text.h"

namespace redlatch {

std::string quoted(std::string_view text, size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\'' || c == '\\') {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += text.size() > limit ? "'.." : "'";
  return out;
}

}  // namespace redlatch
