// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Memory that runs out once, at a chosen allocation (lock_client_memory_test.cc replaces `new`).
#pragma once

#include <cstdint>

namespace redlatch {

// How many allocations there are to the one that fails; 0: none does.
extern int64_t allocation_countdown;

}  // namespace redlatch
