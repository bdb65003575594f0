// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NodeClock: what is known of the clock of one server, and how it compares with the clock of the
// node that locks came from, when the slots of a cluster move. It reads no clock.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "timing/clock_offset.h"

namespace redlatch::session {

class NodeClock {
 public:
  explicit NodeClock(bool is_of_cluster) : is_of_cluster_(is_of_cluster) {}

  // The answer to what was sent at `sent_at` was read at `read_at`: the server's clock read
  // `server_ms`.
  void sample(Nanos sent_at, Nanos read_at, int64_t server_ms, Nanos now);
  // The connection ended: the next server may have another clock.
  void forget();
  // Locks have come from the node with `source`.
  void note_arrivals(const NodeClock &source);
  // @return true once for the locks that have arrived, when both clocks are known.
  [[nodiscard]] bool take_arrivals();

  std::optional<Nanos> local_time(int64_t server_ms, Nanos now) {
    return offset_.local_time(server_ms, now);
  }
  std::optional<Nanos> offset(Nanos now) { return offset_.offset(now); }
  // Set in a cluster only. It outlives the connection, for leases that move away then.
  std::optional<Nanos> last() const { return last_; }
  // How far this clock is behind that of the node that locks came from last.
  Nanos behind() const { return source_ && last_ ? *source_ - *last_ : 0; }
  // @return true once for each connection, if the clock is too far behind.
  [[nodiscard]] bool take_warning();
  // The warning failed for want of memory.
  void warn_again() { is_warned_ = false; }

 private:
  const bool is_of_cluster_;
  timing::ClockOffset offset_;
  std::optional<Nanos> last_;
  std::optional<Nanos> source_;  // of the node that locks came from last
  bool is_known_ = false;        // last_ is of this connection
  bool is_warned_ = false;       // .. in which the clock was reported to be behind
  bool has_arrivals_ = false;    // locks that came while the clock was not known
};

}  // namespace redlatch::session
