// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// How objects find out that they are in a child of the process that made them.
#pragma once

#include <cstdint>

namespace redlatch {

// How many forks lie between the process that loaded the library and this one. Counted by the C
// library in the child of each: asking the kernel for the process id would cost a system call each
// time. The first call may throw std::bad_alloc; once one has returned, none does.
uint32_t fork_count();

}  // namespace redlatch
