// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Taking the lock for `run`, while signals can end the wait.
#pragma once

#include "arguments.h"
#include "command_client.h"
#include "handles.h"
#include "reports.h"
#include "signals.h"

namespace redlatch::cli {

// Returns the lease, or throws a Failure: not acquired, a signal (128 + n), or an error.
[[nodiscard]] LeaseHandle acquire(const CommandClient& client, const Arguments& arguments,
                                  const Signals& signals, const Reports& reports);

// The failure of a lease that ended before the child was started; the reason is in client.error().
[[nodiscard]] Failure lost_before_start(const CommandClient& client, const Arguments& arguments);

// Sleeps for a random part of --start-jitter. Throws a Failure if a signal ends that.
void sleep_jitter(const RunOptions& options, const Signals& signals, const Log& log);

}  // namespace redlatch::cli
