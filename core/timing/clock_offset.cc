// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "timing/clock_offset.h"

#include <algorithm>
#include <cassert>

#include "base/limits.h"

namespace redlatch::timing {

namespace {

// The rate that the drift margin covers.
constexpr Nanos aging(Nanos now) { return now / 100; }

// The network may deliver any number. Numbers out of range are refused, not clamped, which would
// make all of them the same time.
constexpr bool is_time(int64_t server_ms) { return server_ms >= 0 && server_ms <= kMaxServerMs; }

}  // namespace

void ClockOffset::sample(Nanos sent_at, Nanos now, int64_t server_ms) {
  assert(sent_at <= now);
  if (!is_time(server_ms)) return forget();
  move_to(now / kSecond);
  if (best_ != kNone && best_ - aging(now) + server_ms * kMs > now + 2 * kMs) {
    forget();
    move_to(now / kSecond);
  }
  // The stamp is rounded down to a millisecond: the server's time was up to 1 ms later.
  const Nanos bound = sent_at - (server_ms + 1) * kMs + aging(now);
  Slot &slot = slots_[static_cast<size_t>(second_) % kSlots];
  slot.bound = std::max(slot.bound, bound);
  best_ = std::max(best_, bound);
}

std::optional<Nanos> ClockOffset::local_time(int64_t server_ms, Nanos now) {
  move_to(now / kSecond);
  if (best_ == kNone || !is_time(server_ms)) return std::nullopt;
  const Nanos local = server_ms * kMs + best_ - aging(now);
  if (local > now) return std::nullopt;
  return local;
}

std::optional<Nanos> ClockOffset::offset(Nanos now) {
  move_to(now / kSecond);
  if (best_ == kNone) return std::nullopt;
  return aging(now) - best_;
}

void ClockOffset::move_to(int64_t second) {
  assert(second >= 0);
  if (second == second_) return;
  second_ = second;
  Slot &slot = slots_[static_cast<size_t>(second) % kSlots];
  slot = Slot{second, kNone};
  best_ = kNone;
  for (const Slot &other : slots_) {
    if (other.second > second - static_cast<int64_t>(kSlots)) best_ = std::max(best_, other.bound);
  }
}

}  // namespace redlatch::timing
