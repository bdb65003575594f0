// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/shutdown.h"

#include <algorithm>

#include "base/limits.h"
#include "host/clock.h"
#include "timing/quorum.h"

namespace redlatch::runtime {

void Shutdown::wait_drained(Lock &lock, const Service &service, size_t node_count) {
  Nanos limit = boot_now() + service.timeout();
  for (const size_t count : {service.enough_drained(node_count), node_count}) {
    while (service->drained_count() < count && boot_now() < limit) {
      wakeup_.sleep(lock, waiter_, limit);
    }
    limit = std::min(limit, boot_now() + timing::node_limit(kDefaultTtlMs * kMs));
  }
}

}  // namespace redlatch::runtime
