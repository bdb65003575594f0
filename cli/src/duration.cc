// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "duration.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace redlatch::cli {
namespace {

constexpr std::int64_t kSecondMs = 1000;
constexpr std::int64_t kMinuteMs = 60 * kSecondMs;
constexpr std::int64_t kHourMs = 60 * kMinuteMs;
// Keeps every product below within 64 bits, and is longer than any useful wait.
constexpr std::int64_t kLongestMs = 36500 * kDayMs;

std::int64_t unit_ms(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s" || unit.empty()) return kSecondMs;
  if (unit == "m") return kMinuteMs;
  if (unit == "h") return kHourMs;
  if (unit == "d") return kDayMs;
  return 0;
}

std::string_view take_digits(std::string_view& text) {
  const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, size);
  text.remove_prefix(size);
  return digits;
}

template <typename... Numbers>
std::string formatted(const char* format, Numbers... numbers) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, numbers...);
  return buffer.data();
}

std::string formatted_time(const char* format, std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / kSecondMs);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "?";  // a year that has no number
  std::array<char, 64> buffer{};
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format, &parts);
  return {buffer.data(), size};
}

std::int64_t clock_us(clockid_t clock) {
  std::timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

long long whole(std::int64_t value) { return static_cast<long long>(value); }

struct Parts {
  std::string_view integer;
  std::string_view fraction;
  std::int64_t unit_ms;
};

std::optional<Parts> parts_of(std::string_view text) {
  Parts parts{take_digits(text), {}, 0};
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = take_digits(text);
    if (parts.fraction.empty()) return std::nullopt;
  }
  parts.unit_ms = unit_ms(text);
  if ((parts.integer.empty() && parts.fraction.empty()) || parts.unit_ms == 0) return std::nullopt;
  return parts;
}

}  // namespace

bool is_duration(std::string_view text) { return parts_of(text).has_value(); }

std::optional<std::int64_t> parse_duration_ms(std::string_view text) {
  const std::optional<Parts> parts = parts_of(text);
  if (!parts) return std::nullopt;
  const std::int64_t unit = parts->unit_ms;
  std::int64_t ms = 0;
  for (const char c : parts->integer) {
    ms = ms * 10 + (c - '0') * unit;
    if (ms > kLongestMs) return std::nullopt;
  }
  // A thousandth of a day is above a millisecond: nine digits are enough, and whether more follow.
  constexpr std::size_t kDigits = 9;
  const std::string_view rest = parts->fraction.substr(std::min(parts->fraction.size(), kDigits));
  std::int64_t part = 0;
  std::int64_t scale = 1;
  for (const char c : parts->fraction.substr(0, kDigits)) {
    part = part * 10 + (c - '0');
    scale *= 10;
  }
  if (rest.find_first_not_of('0') != std::string_view::npos) ++part;
  // Rounded up: 0 often has a meaning of its own.
  return ms + (part * unit + scale - 1) / scale;
}

std::string seconds_text(std::int64_t ms) {
  const double seconds = static_cast<double>(ms) / 1000.0;
  if (ms < kSecondMs) return formatted("%.3g s", seconds);
  if (ms % kSecondMs == 0 || ms >= 100 * kSecondMs) return formatted("%.0f s", seconds);
  return formatted("%.1f s", seconds);
}

std::string span_text(std::int64_t ms) {
  const std::int64_t span = std::max<std::int64_t>(ms, 0);
  if (span < 10 * kSecondMs) return formatted("%.2fs", static_cast<double>(span) / 1000.0);
  if (span < kMinuteMs) return formatted("%llds", whole(span / kSecondMs));
  if (span < kHourMs) {
    return formatted("%lldm%02llds", whole(span / kMinuteMs), whole(span % kMinuteMs / kSecondMs));
  }
  if (span < kDayMs) {
    return formatted("%lldh%02lldm", whole(span / kHourMs), whole(span % kHourMs / kMinuteMs));
  }
  return formatted("%lldd%02lldh", whole(span / kDayMs), whole(span % kDayMs / kHourMs));
}

std::string clock_span_text(std::int64_t ms) {
  const std::int64_t span = std::max<std::int64_t>(ms, 0);
  return formatted("%02lld:%02lld:%02lld", whole(span / kHourMs), whole(span % kHourMs / kMinuteMs),
                   whole(span % kMinuteMs / kSecondMs));
}

std::string date_text(std::int64_t unix_ms) {
  return formatted_time("%Y-%m-%dT%H:%M:%SZ", unix_ms);
}

std::string date_ms_text(std::int64_t unix_ms) {
  return formatted_time("%Y-%m-%dT%H:%M:%S", unix_ms) +
         formatted(".%03lldZ", whole(unix_ms % kSecondMs));
}

std::int64_t now_us() { return clock_us(CLOCK_BOOTTIME); }

std::int64_t unix_now_ms() { return clock_us(CLOCK_REALTIME) / 1000; }

}  // namespace redlatch::cli
