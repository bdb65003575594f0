// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/random.h"

#include <sys/random.h>

#include <cerrno>

namespace redlatch {

bool fill_random(std::span<uint8_t> bytes) {
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (n > 0) {
      filled += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace redlatch
