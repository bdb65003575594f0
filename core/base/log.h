// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Log: the last lines about what no call reports, for whoever asks. One ring for the process; any
// thread. The library prints nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace redlatch {

enum class LogLevel : uint8_t { kError, kWarning, kInfo };

// The ring keeps this many lines; the oldest go first, and their number is told in their place.
inline constexpr size_t kMaxLogLines = 256;

// Note one line: `text` behind the name of its level. Lost without memory.
void log(LogLevel level, std::string_view text) noexcept;

// Told that there are lines to take, by any thread that notes one, with the log locked: so that it
// is never called once it was replaced. It must not log; it may throw std::bad_alloc.
using LogListener = std::function<void()>;

// Tell `listener` of lines of `level` and graver ones: once, until all lines were taken; at once if
// there are lines already. In the place of the one before; an empty one: nobody is told. Throws
// std::bad_alloc, and has changed nothing then.
void watch_log(LogLevel level, LogListener listener);

// Move the oldest line to `line`, if it has at most `limit` bytes. @return its size, 0 for none.
size_t take_log_line(size_t limit, std::string &line);

}  // namespace redlatch
