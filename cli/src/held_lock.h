// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The steps of `run`, `once` and `elect` while they hold a lock.
#pragma once

#include <cstdint>
#include <functional>

#include "arguments.h"
#include "child.h"
#include "command_client.h"
#include "reports.h"
#include "signals.h"
#include "terminal.h"

namespace redlatch::cli {

// A lock that was lost needs no answer to its release; a server that is away gives none.
inline constexpr std::int64_t kCloseMs = 300;

// A time below 1 s is mostly a mistake of a person, such as 30ms in place of 30s.
void warn_of_short_times(const RunOptions& run, const Log& log);

// Reports the start. Throws a Failure.
[[nodiscard]] Child start_child(const Arguments& arguments, const CommandClient& client,
                                const rl_lease* lease, const Signals& signals, Terminal& terminal,
                                const Reports& reports);

struct Released {
  int failure_code;      // That of a failure that outweighs the child's code, or 0.
  bool is_acknowledged;  // False: the server is away, or the lock was lost.
};

// The child has ended, with success if `has_succeeded`; the lock is held since `begin_us`.
[[nodiscard]] Released release(const CommandClient& client, const Arguments& arguments,
                               rl_lease* lease, std::int64_t begin_us, bool has_succeeded,
                               const Reports& reports);

// The exit code of `work`, which is also reported as the last event.
[[nodiscard]] int with_reports(const Arguments& arguments, const Log& log,
                               const std::function<int(const Reports&)>& work);

}  // namespace redlatch::cli
