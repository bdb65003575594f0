// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The clocks of the host.
#pragma once

#include <ctime>

#include "base/clock.h"

namespace redlatch {

// CLOCK_BOOTTIME, for leases and deadlines. It continues while the machine is suspended, so that a
// lease that expired meanwhile is lost before anything else happens. While the kernel refuses it, a
// time after every deadline: a lease that no clock measures is lost. A runtime is not opened then.
// A program that embeds core/lock without core/runtime passes the time of its own clock to each
// call, and needs no kernel that has this one.
Nanos boot_now();
// @return 0, or errno: the kernel, or a sandbox, refuses it.
[[nodiscard]] int boot_clock_error();

// CLOCK_REALTIME, since 1970. Only to be shown: it may be stepped.
Nanos wall_now();

// The time until `limit`, at least 0, as system calls take it; nullptr if there is no limit.
const timespec *remaining_time(Nanos limit, timespec &left);

}  // namespace redlatch
