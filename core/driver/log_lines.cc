// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/log_lines.h"

#include <array>
#include <cassert>
#include <new>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace redlatch::driver {

namespace {

constexpr std::array<std::string_view, 4> kLevelWords = {"", "error ", "warning ", "info "};

}  // namespace

bool LogLines::add(LogLevel level, std::string_view text) noexcept {
  if (text.empty()) return false;
  try {
    std::string line(kLevelWords[static_cast<size_t>(level)]);
    line.append(clean(text));
    lines_.push_back(std::move(line));
  } catch (const std::bad_alloc &) {
    return false;
  }
  if (lines_.size() > kMaxLogLines) {
    lines_.pop_front();
    dropped_count_++;
  }
  assert(lines_.size() <= kMaxLogLines);
  return true;
}

size_t LogLines::take(size_t limit, std::string &line) {
  if (dropped_count_ > 0) {
    assert(!is_empty() && "newer lines replaced the dropped ones");
    std::string count = "warning " + std::to_string(dropped_count_) +
                        " older lines were dropped: they were not taken in time";
    if (count.size() > limit) return count.size();
    dropped_count_ = 0;
    line = std::move(count);
    return line.size();
  }
  if (is_empty()) return 0;
  const size_t size = lines_.front().size();
  if (size > limit) return size;
  line = std::move(lines_.front());
  lines_.pop_front();
  return size;
}

}  // namespace redlatch::driver
