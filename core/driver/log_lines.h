// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LogLines: the last lines of a client's log, until the program takes them. A log of kMaxLogLines
// drops its oldest line, and a line with the number of dropped lines replaces them.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "driver/log.h"

namespace redlatch::driver {

class LogLines {
 public:
  // Adds one line: the name of its level, then `text`. Without memory the line is lost: the
  // operation matters more. @return false: it is lost, or empty because there was no memory for it.
  bool add(LogLevel level, std::string_view text) noexcept;
  bool is_empty() const { return lines_.empty(); }
  // Moves the oldest line to `line`, if it has at most `limit` bytes. Throws std::bad_alloc, and
  // then nothing is taken. @return its size; 0: the log is empty.
  size_t take(size_t limit, std::string &line);

 private:
  std::deque<std::string> lines_;
  size_t dropped_count_ = 0;
};

}  // namespace redlatch::driver
