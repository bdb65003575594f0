// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClockOffset: turns a server's time stamp into a local time that is certainly not too late.
//
// Each answer that carries the server's clock was made after its request was sent, so the server's
// time S was read at a local time >= t_send: t_send - S bounds the offset from below. The largest
// bound of the last minute is the best one; each is lowered by 1 % of its age, because the rates of
// two clocks may differ by that (kept for ever, 50 ppm would accept grants 4 s late after a day).
// No clock of its own; owned by the engine; not thread-safe.
#pragma once

#include <array>
#include <optional>

#include "base/clock.h"

namespace redlatch::timing {

class ClockOffset {
 public:
  // A reply to a request sent at `sent_at`, read at `now`, carried `server_ms`. If it contradicts
  // what was known (a clock was stepped), or is no time, everything before is forgotten.
  void sample(Nanos sent_at, Nanos now, int64_t server_ms);

  // The earliest local time at which the server's clock can have read `server_ms`, as known at
  // `now`; nothing without a fresh sample, for what is no time, or for a stamp of the future: it
  // was made before the server's clock went back.
  std::optional<Nanos> local_time(int64_t server_ms, Nanos now);

  // Another connection may be another server, or the same one after a restart.
  void forget() { *this = {}; }

 private:
  // All samples age at the same rate, so the one that is best when it is made stays the best until
  // it leaves the window: what is compared is the bound as it would have been at time 0.
  static constexpr Nanos kSecond = 1000 * kMs;
  static constexpr size_t kSlots = 60;
  static constexpr Nanos kNone = INT64_MIN;
  struct Slot {
    int64_t second = -1;
    Nanos bound = kNone;
  };

  void move_to(int64_t second);

  std::array<Slot, kSlots> slots_{};  // the best of each second of the last minute
  int64_t second_ = -1;
  Nanos best_ = kNone;
};

}  // namespace redlatch::timing
