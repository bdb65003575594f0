// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Drain: until when a shutdown waits for what was given back. The time and the number of nodes that
// have answered go in. No thread, no clock here.
//
// All nodes of a cluster are waited for, because each has locks of its own; of a quorum a majority,
// and the others for a short time longer. No node is waited for after limit().
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace redlatch::driver {

class Drain {
 public:
  Drain(Nanos timeout, Nanos now) : limit_(after(now, timeout)) {}

  // `drained`: how many of the `count` nodes have answered. A client of one server may become one
  // of a cluster meanwhile.
  // @return whether the wait is over; if not, to be asked again at limit(), or when more may have.
  [[nodiscard]] bool is_over(size_t drained, size_t count, bool is_of_cluster, Nanos now);
  Nanos limit() const { return limit_; }

 private:
  bool have_most_ = false;
  Nanos limit_;
};

}  // namespace redlatch::driver
