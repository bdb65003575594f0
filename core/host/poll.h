// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// poll() with a limit on the clock of host/clock.h.
#pragma once

#include <poll.h>

#include <span>

#include "base/clock.h"

namespace redlatch {

// poll() until `limit`; signals do not end it.
int poll_until(std::span<pollfd> fds, Nanos limit);

// Wait until `fd` is readable or has ended, `limit` has passed, or `wake_fd` turns readable.
// @return whether `fd` is readable or has ended. -1: no descriptor.
bool await_input(int fd, Nanos limit, int wake_fd);

}  // namespace redlatch
