// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Reply: one value that a server sent. Built and owned by core/resp, read by core/protocol. Plain
// data: a pointer into a reply is valid as long as the reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace redlatch {

struct Reply {
  enum class Kind : uint8_t { kNil, kInteger, kText, kError, kArray, kPush };

  Kind kind = Kind::kNil;
  int64_t integer = 0;
  const char *data = nullptr;
  size_t size = 0;  // of the text, or the number of elements
  Reply **elements = nullptr;

  std::string_view text() const {
    return kind == Kind::kText || kind == Kind::kError ? std::string_view(data, size)
                                                       : std::string_view();
  }
  bool is_error() const { return kind == Kind::kError; }
  bool is_list() const { return kind == Kind::kArray || kind == Kind::kPush; }
  size_t count() const { return is_list() ? size : 0; }
  // A missing element reads as nil, so that decoders need no bounds checks of their own.
  const Reply &at(size_t index) const {
    static const Reply kMissing{};
    return index < count() && elements[index] != nullptr ? *elements[index] : kMissing;
  }
};

}  // namespace redlatch
