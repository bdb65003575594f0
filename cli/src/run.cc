// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <algorithm>
#include <string>

#include "acquire.h"
#include "child.h"
#include "command_client.h"
#include "commands.h"
#include "duration.h"
#include "exit_code.h"
#include "held_lock.h"
#include "line_writer.h"
#include "once.h"
#include "reports.h"
#include "signals.h"
#include "supervisor.h"
#include "terminal.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// A signal ended --min-hold: the lock stays for the rest of it, without a process that waits.
void leave_to_lease(const CommandClient& client, rl_lease* lease, std::int64_t hold_left_ms,
                    const Log& log) {
  const std::int64_t remaining_ms = rl_lease_remaining_ms(lease);
  const std::int64_t left_ms = std::max<std::int64_t>(hold_left_ms, RL_MIN_TTL_MS);
  if (remaining_ms < left_ms && rl_extend(lease, left_ms, client.error()) != RL_OK) {
    log.say("cannot keep the lock for the rest of --min-hold (" +
            escaped(rl_error_message(client.error())) + "); its lease ends in " +
            seconds_text(remaining_ms));
  }
  if (rl_lease_detach(lease, nullptr, 0, client.error()) != RL_OK) {
    log.say("cannot leave the lock to its lease (" + escaped(rl_error_message(client.error())) +
            ")");
  }
}

// Throws UsageError for options that only a single server supports.
void check_for_quorum(const RunOptions& run) {
  if (run.once) throw UsageError("once: the servers of a quorum do not remember runs");
  if (run.is_shared) throw UsageError("--shared: a lock on several servers has no readers");
  if (!run.owner.empty()) throw UsageError("--owner: a lock on several servers is not reentrant");
  if (run.limit > 0)
    throw UsageError(
        "--permits: a lock on several servers is not a semaphore: two permits and three "
        "servers would let three holders in");
  if (!run.others.empty())
    throw UsageError(
        "--also: a lock on several servers is for one name: the servers have no common "
        "order of waiters");
  if (run.on.recall_signal != 0 || run.on.ignores_recalls)
    throw UsageError("--on-recall: a lock on several servers cannot be recalled");
  const std::string flag = run.lock_options.given_of_one_server();
  if (!flag.empty()) throw UsageError(flag + " is not possible for a lock on several servers");
}

int run_reported(const Arguments& arguments, const Reports& reports) {
  warn_of_short_times(arguments.run, reports.log);
  Signals signals;
  CommandClient client(arguments);
  if (client.is_quorum()) check_for_quorum(arguments.run);
  sleep_jitter(arguments.run, signals, reports.log);
  const LeaseHandle lease = acquire(client, arguments, signals, reports);
  if (arguments.run.once) begin_once(client, arguments, lease.get(), reports);
  const std::int64_t begin_us = now_us();
  signals.begin_child();
  Terminal terminal;
  Supervisor supervisor(arguments, client.handle(), lease.get(), signals, terminal, reports);
  flush_line_writers(kPatienceMs);
  Child child = start_child(arguments, client, lease.get(), signals, terminal, reports);
  const Supervisor::Outcome outcome = supervisor.watch(child);

  if (outcome.is_lost || outcome.is_hold_lost) {
    client.close_within(kCloseMs);
    const bool is_failure = outcome.is_lost && !arguments.run.preserves_status;
    return is_failure ? kExitLost : outcome.exit_code;
  }
  if (outcome.hold_left_ms > 0) {
    leave_to_lease(client, lease.get(), outcome.hold_left_ms, reports.log);
    return outcome.exit_code;
  }
  const Released released =
      release(client, arguments, lease.get(), begin_us, outcome.exit_code == 0, reports);
  if (!released.is_acknowledged) client.close_within(kCloseMs);
  const bool has_failed = released.failure_code != 0 && !arguments.run.preserves_status;
  return has_failed ? released.failure_code : outcome.exit_code;
}

}  // namespace

int run(const Arguments& arguments, const Log& log) {
  return with_reports(arguments, log,
                      [&](const Reports& reports) { return run_reported(arguments, reports); });
}

}  // namespace redlatch::cli
