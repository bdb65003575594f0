// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Durations and times as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redlatch::cli {

inline constexpr std::int64_t kDayMs = 86'400'000;

// "500ms", "30s", "1.5m", "1h", "7d"; without a unit, seconds. nullopt for other texts.
[[nodiscard]] std::optional<std::int64_t> parse_duration_ms(std::string_view text);

// True if it has the form of a duration, however long.
[[nodiscard]] bool is_duration(std::string_view text);

// "0.31 s", "12 s", "31.2 s": for messages.
[[nodiscard]] std::string seconds_text(std::int64_t ms);

// "0.31s", "12s", "12m40s", "3h05m", "2d04h": for tables.
[[nodiscard]] std::string span_text(std::int64_t ms);

// "00:12:40".
[[nodiscard]] std::string clock_span_text(std::int64_t ms);

// RFC 3339 in UTC: "2026-11-21T10:18:27Z", "2026-11-21T10:18:27.113Z".
[[nodiscard]] std::string date_text(std::int64_t unix_ms);
[[nodiscard]] std::string date_ms_text(std::int64_t unix_ms);

// Time since boot, including suspend, as for leases.
[[nodiscard]] std::int64_t now_us();

// The wall clock, for display only.
[[nodiscard]] std::int64_t unix_now_ms();

}  // namespace redlatch::cli
