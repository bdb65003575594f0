// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Workers: processes that share the work of a program; each takes the next part when it is free.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace redlatch::sim {

// The number of parts that the processes have begun.
// A process of its own, and what it writes.
struct Child {
  pid_t pid;
  FILE *in;
};
// Run `work` in a child process, which ends with this one. nullopt: it could not be started.
std::optional<Child> start_child(const std::function<void(FILE *out)> &work);

using Begun = std::atomic<uint64_t>;
static_assert(Begun::is_always_lock_free, "it is shared by processes");

// `work` runs in `jobs` processes and writes its findings; `read` reads those of one process after
// the other, and returns whether they were complete. @return the problems.
std::vector<std::string> run_workers(int jobs, const std::function<void(Begun &, FILE *)> &work,
                                     const std::function<bool(FILE *)> &read);

}  // namespace redlatch::sim
