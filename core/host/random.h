// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Random bytes from the kernel. There is no fallback: a token that can be guessed is no proof of
// ownership.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"

namespace redlatch {

// Fill `bytes`. Blocks only early in boot. @return false, with errno, if the kernel has no random
// bytes.
[[nodiscard]] bool fill_random(std::span<uint8_t> bytes);
[[nodiscard]] bool fill_random(uint64_t &number);

// `error`: errno of the failed call.
Outcome no_random(int error) noexcept;

}  // namespace redlatch
