// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Taking the lock for `run`, while signals can end the wait.
#pragma once

#include <cstdint>

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

// Reports an unreachable server early, because the wait may have no limit. Returns RL_OK also if
// the wait may still succeed; else the message is in client.error().
[[nodiscard]] rl_status trial_connect(const CommandClient& client, const Log& log);

// Sleeps. Throws a Failure if a signal ends that.
void pause(std::int64_t delay_ms, const Signals& signals);

// Sleeps for a random part of --start-jitter. Throws a Failure if a signal ends that.
void sleep_jitter(const RunOptions& options, const Signals& signals, const Log& log);

}  // namespace redlatch::cli
