// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/shutdown.h"

#include "driver/drain.h"
#include "host/clock.h"

namespace redlatch::runtime {

// A cluster may get further nodes meanwhile.
void Shutdown::wait_drained(Lock &lock, const Service &service, const Links &links) {
  driver::Drain drain(service.timeout(), boot_now());
  while (!drain.is_over(service->drained_count(), links.size(), service.settings().is_cluster(),
                        boot_now())) {
    wakeup_.sleep(lock, waiter_, drain.limit());
  }
}

}  // namespace redlatch::runtime
