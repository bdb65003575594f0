// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstring>

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

bool fill_random(uint64_t &number) {
  std::array<uint8_t, sizeof number> bytes{};
  if (!fill_random(std::span<uint8_t>(bytes))) return false;
  std::memcpy(&number, bytes.data(), bytes.size());
  return true;
}

Outcome no_random(int error) noexcept {
  return failure_if_memory(Status::kInternal, [error] {
    return "cannot get random bytes from the kernel: " + reason_of(error);
  });
}

}  // namespace redlatch
