// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Log: the last lines about background events, which no call reports, until the program takes them.
// One ring for the process; any thread. The library prints nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace redlatch {

enum class LogLevel : uint8_t { kError, kWarning, kInfo };

// The ring keeps this many lines. It drops the oldest, and a line with their number replaces them.
inline constexpr size_t kMaxLogLines = 256;

// Add one line: the name of its level, then `text`. Without memory the line is lost.
void log(LogLevel level, std::string_view text) noexcept;

// Called when there are lines to take, by any thread that adds one, with the log locked, so that it
// is never called after it was replaced. It must not log; it may throw std::bad_alloc.
using LogListener = std::function<void()>;

// Call `listener` when a line of `level` or a graver one is added, once until all lines were taken;
// call it now if the log has lines of any level. Replaces the listener before; an empty one only
// removes that. If it throws std::bad_alloc, nothing has changed.
void watch_log(LogLevel level, LogListener listener);

// Move the oldest line to `line`, if it has at most `limit` bytes. @return its size; 0 if the log
// is empty.
size_t take_log_line(size_t limit, std::string &line);

}  // namespace redlatch
