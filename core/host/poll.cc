// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/poll.h"

#include <array>
#include <cerrno>

#include "host/clock.h"

namespace redlatch {

int poll_until(std::span<pollfd> fds, Nanos limit) {
  for (;;) {
    timespec left{};
    const int n = ppoll(fds.data(), fds.size(), remaining_time(limit, left), nullptr);
    if (n >= 0 || errno != EINTR) return n;
  }
}

bool await_input(int fd, Nanos limit, int wake_fd) {
  std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {wake_fd, POLLIN, 0}}};
  return poll_until(fds, limit) > 0 && fds[0].revents != 0;
}

}  // namespace redlatch
