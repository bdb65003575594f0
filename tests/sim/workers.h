// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Workers: processes that share the work of a program; each takes the next part when it is free.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace redlatch::sim {

// The number of parts that the processes have begun.
using Begun = std::atomic<uint64_t>;
static_assert(Begun::is_always_lock_free, "it is shared by processes");

// `work` runs in `jobs` processes and writes its findings; `read` reads those of one process after
// the other, and returns whether they were complete. @return the problems.
std::vector<std::string> run_workers(int jobs, const std::function<void(Begun &, FILE *)> &work,
                                     const std::function<bool(FILE *)> &read);

}  // namespace redlatch::sim
