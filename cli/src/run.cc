// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "acquire.h"
#include "child.h"
#include "command_client.h"
#include "commands.h"
#include "duration.h"
#include "exit_code.h"
#include "guesses.h"
#include "line_writer.h"
#include "once.h"
#include "reports.h"
#include "runs_around.h"
#include "secret_pipe.h"
#include "signals.h"
#include "supervisor.h"
#include "terminal.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// A lock that was lost needs no answer to its release; a server that is away gives none.
constexpr std::int64_t kCloseMs = 300;
constexpr std::int64_t kShortMs = 1000;

std::vector<HeldLock> held_locks(const Arguments& arguments, const rl_lease* lease) {
  std::vector<HeldLock> locks;
  for (const std::string& name : arguments.run_names()) {
    const auto part = static_cast<std::int32_t>(locks.size());
    locks.push_back({name, rl_lease_part_fence(lease, part)});
  }
  return locks;
}

std::vector<std::pair<std::string, std::string>> variables(const Arguments& arguments,
                                                           const CommandClient& client,
                                                           const rl_lease* lease) {
  const std::vector<HeldLock> locks = held_locks(arguments, lease);
  std::vector<std::pair<std::string, std::string>> variables = {
      {"REDLATCH_LOCK", arguments.names.front()},
      {"REDLATCH_FENCE", std::to_string(rl_lease_fence(lease))},
      {"REDLATCH_FENCES", fence_entries(locks)},
      {"REDLATCH_TTL_MS", std::to_string(arguments.run.ttl_ms)},
      {"REDLATCH_HOLDER", client.holder()},
      {"REDLATCH_MODE", arguments.run.mode()},
      {"REDLATCH_PID", std::to_string(getpid())},
      {"REDLATCH_RUNS", runs_with(locks, client.holder())},
  };
  if (const auto& path = arguments.command_password_file) {
    variables.emplace_back(kPasswordFileVariable, *path);
  }
  return variables;
}

void report_release(const std::string& name, std::int64_t begin_us, const Reports& reports) {
  const std::int64_t held_ms = (now_us() - begin_us) / 1000;
  reports.log.detail("released " + escaped(name) + " after " + seconds_text(held_ms));
  reports.events.send(reports.events.make("released").number("held_ms", held_ms));
}

// The child has ended, with success if `has_succeeded`; the lock is held since `begin_us`. Returns
// the exit code of a failure that outweighs the child's code, or 0.
int release(CommandClient& client, const Arguments& arguments, rl_lease* lease,
            std::int64_t begin_us, bool has_succeeded, const Reports& reports) {
  const std::string& name = arguments.names.front();
  const bool is_success_of_once = arguments.run.once && has_succeeded;
  const std::int64_t remaining_ms = rl_lease_remaining_ms(lease);
  const rl_status status = is_success_of_once ? end_once(client, *arguments.run.once, lease)
                                              : rl_release(lease, client.error());
  if (status == RL_STILL_HELD) {
    reports.log.detail(lock_words(name) +
                       " is still held by its owner through another acquisition");
  }
  if (status == RL_OK || status == RL_STILL_HELD) {
    report_release(name, begin_us, reports);
    return 0;
  }
  const std::string message = escaped(rl_error_message(client.error()));
  if (status != RL_E_LOST) {
    reports.log.say(is_success_of_once ? unnoted_words(name, message)
                                       : "cannot release " + lock_words(name) + " (" + message +
                                             "); its lease ends in " + seconds_text(remaining_ms));
    client.close_within(kCloseMs);
    return is_success_of_once ? exit_code_of(status) : 0;
  }
  const std::int64_t fence = rl_lease_fence(lease);
  const std::string reason = escaped(loss_reason(lease));
  reports.log.say("lost " + lock_words(name) + " (fence " + std::to_string(fence) + "): " + reason +
                  "; the command had ended by the time this was seen" +
                  (is_success_of_once ? ", and its run counts as failed" : ""));
  JsonObject event = reports.events.make("lost");
  reports.events.send(event.number("fence", fence).text("reason", reason));
  client.close_within(kCloseMs);
  return kExitLost;
}

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
  const std::string flag = run.lock_options.given_of_one_server();
  if (!flag.empty()) throw UsageError(flag + " is not possible for a lock on several servers");
}

// Throws Failure. A missing NAME makes the first word of COMMAND the name.
Child start_child(const Arguments& arguments, const CommandClient& client, const rl_lease* lease,
                  const Signals& signals, Terminal& terminal) {
  try {
    return Child(arguments.run, variables(arguments, client, lease), signals, terminal);
  } catch (Failure& failure) {
    if (failure.exit_code == kExitNotFound) {
      failure.text += not_found_hint(arguments.run.words, arguments.names.front());
    }
    throw;
  }
}

// By a person it is mostly a mistake, such as 30ms in place of 30s.
void warn_of_short_times(const RunOptions& run, const Log& log) {
  if (run.ttl_ms < kShortMs) {
    log.say("--ttl of " + seconds_text(run.ttl_ms) +
            " is below 1 s: a short pause of this host, the network or the server loses the lock");
  }
  if (run.max_hold_ms > 0 && run.max_hold_ms < kShortMs) {
    log.say("--max-hold of " + seconds_text(run.max_hold_ms) +
            " is below 1 s: the command is stopped within that time");
  }
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
  Child child = start_child(arguments, client, lease.get(), signals, terminal);
  reports.log.trace("started " + escaped(joined_command(arguments.run.words)) + " as " +
                    child.words());
  reports.events.send(reports.events.make("started").number("pid", child.id()));
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
  const int failure_code =
      release(client, arguments, lease.get(), begin_us, outcome.exit_code == 0, reports);
  return failure_code == 0 || arguments.run.preserves_status ? outcome.exit_code : failure_code;
}

}  // namespace

int run(const Arguments& arguments, const Log& log) {
  // Before the acquire: no output while the lock is held may wait for a reader.
  start_line_writer(STDERR_FILENO);
  if (arguments.run.status_fd >= 0) start_line_writer(arguments.run.status_fd);
  const Events events(arguments.run.status_fd, arguments.names.front());
  const auto report_exit = [&events](int exit_code, const std::string& message) {
    JsonObject event = events.make("exit");
    event.number("exit_code", exit_code);
    if (!message.empty()) event.text("message", message);
    events.send(event);
  };
  try {
    const int exit_code = run_reported(arguments, {log, events});
    report_exit(exit_code, "");
    return exit_code;
  } catch (const Failure& failure) {
    report_exit(failure.exit_code, failure.text);
    throw;
  } catch (const std::bad_alloc&) {
    report_exit(kExitSoftware, "out of memory");
    throw;
  }
}

}  // namespace redlatch::cli
