// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Lets objects detect that they are in a child of the process that made them.
#pragma once

#include <cstdint>

namespace redlatch {

// How many forks lie between the process of the first call and this one. A handler that the C
// library runs in each child counts them; getpid() would cost a system call each time. The first
// call may throw std::bad_alloc; once a call has returned, none does.
uint32_t fork_count();

}  // namespace redlatch
