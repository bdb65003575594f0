// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Workers: processes that share the work of a program, each part taken by the first that is free.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace redlatch::sim {

// How many parts were begun, by all processes.
using Begun = std::atomic<uint64_t>;
static_assert(Begun::is_always_lock_free, "it is shared by processes");

// `work` runs in `jobs` processes and writes what it found; `read` reads that, of one process after
// the other, and says whether it was complete. @return what went wrong.
std::vector<std::string> run_workers(int jobs, const std::function<void(Begun &, FILE *)> &work,
                                     const std::function<bool(FILE *)> &read);

}  // namespace redlatch::sim
