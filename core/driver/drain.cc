// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/drain.h"

#include <algorithm>

#include "base/limits.h"
#include "timing/quorum.h"

namespace redlatch::driver {

bool Drain::is_over(size_t drained, size_t count, bool is_of_cluster, Nanos now) {
  const size_t enough = is_of_cluster ? count : timing::majority_of(count);
  if (!have_most_ && drained >= enough) {
    have_most_ = true;
    limit_ = std::min(limit_, now + timing::node_limit(kDefaultTtlMs * kMs));
  }
  return drained >= count || now >= limit_;
}

}  // namespace redlatch::driver
