// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClockOffset: turns a server's time stamp into a local time that is certainly not too late.
//
// Each reply with the server's time S was made after its request was sent, so S was read at a local
// time >= t_send: t_send - S bounds the offset from below. The largest bound of the last minute is
// the best one; each is lowered by 1 % of its age, because the rates of two clocks may differ by
// that (if bounds never aged, 50 ppm would accept grants 4 s late after a day). It reads no clock;
// owned by the client; not thread-safe.
#pragma once

#include <array>
#include <optional>

#include "base/clock.h"

namespace redlatch::timing {

// A new primary whose clock is further behind may give fences that are smaller than earlier ones.
inline constexpr Nanos kClockLimit = 100 * kMs;

class ClockOffset {
 public:
  // Add the time `server_ms` of a reply that was read at `now`, to a request sent at `sent_at`. If
  // it contradicts the bounds (a clock was stepped), or is no valid time, all bounds are forgotten.
  void sample(Nanos sent_at, Nanos now, int64_t server_ms);

  // The earliest local time at which the server's clock can have read `server_ms`, as known at
  // `now`. nullopt without a sample of the last minute, for an invalid time, and for a time in the
  // future: the server's clock was stepped back since.
  std::optional<Nanos> local_time(int64_t server_ms, Nanos now);

  // The server's clock minus the local clock; nullopt without a sample of the last minute.
  std::optional<Nanos> offset(Nanos now);

  // Another connection may be another server, or the same one after a restart.
  void forget() { *this = {}; }

 private:
  // All bounds age at the same rate, so they are stored as they would have been at time 0, and the
  // best one stays the best until it leaves the window.
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
