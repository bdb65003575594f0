// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/dialogue.h"

#include "base/dial_failure.h"

namespace redlatch::driver {

void Dialogue::on_late(Nanos now) { on_failed(unreachable(target().address(), kNoAnswer), now); }

void Dialogue::on_closed(const Outcome &why, Nanos now) {
  on_failed(why.ok() ? unreachable(target().address(), kClosedByServer) : why, now);
}

}  // namespace redlatch::driver
