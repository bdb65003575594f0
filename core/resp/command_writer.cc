// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "resp/command_writer.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include "base/password.h"

namespace redlatch::resp {

// RESP's request format is an array of counted strings. Both formatters of hiredis use format
// strings internally, which took a third to a half of all instructions of an uncontended acquire
// and release.
void append_command(std::string &out, std::span<const std::string_view> argv) {
  constexpr size_t kFrame = 25;  // the longest count with its sign, and two line ends
  size_t size = kFrame;
  for (const std::string_view part : argv) size += part.size() + kFrame;
  const size_t start = out.size();
  grow(out, size);
  out.resize(start + size);
  char *at = out.data() + start;
  const auto end_line = [&at] {
    *at++ = '\r';
    *at++ = '\n';
  };
  const auto write_count = [&](char sign, size_t count) {
    *at++ = sign;
    if (count < 100) {  // nearly always
      if (count >= 10) *at++ = static_cast<char>('0' + count / 10);
      *at++ = static_cast<char>('0' + count % 10);
    } else {
      at = std::to_chars(at, at + kFrame, count).ptr;
    }
    end_line();
  };
  write_count('*', argv.size());
  for (const std::string_view part : argv) {
    write_count('$', part.size());
    at = std::copy(part.begin(), part.end(), at);
    end_line();
  }
  assert(at <= out.data() + start + size);
  out.resize(static_cast<size_t>(at - out.data()));
}

}  // namespace redlatch::resp
