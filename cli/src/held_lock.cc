// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "held_lock.h"

#include <unistd.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "duration.h"
#include "exit_code.h"
#include "guesses.h"
#include "line_writer.h"
#include "once.h"
#include "runs_around.h"
#include "secret_pipe.h"
#include "text.h"

namespace redlatch::cli {
namespace {

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
  if (arguments.run.elect) variables.emplace_back("REDLATCH_ID", arguments.run.elect->id);
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

}  // namespace

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

// A missing NAME makes the first word of COMMAND the name.
Child start_child(const Arguments& arguments, const CommandClient& client, const rl_lease* lease,
                  const Signals& signals, Terminal& terminal, const Reports& reports) {
  try {
    Child child(arguments.run, variables(arguments, client, lease), signals, terminal);
    const std::string command = escaped(joined_command(arguments.run.words));
    reports.log.trace("started " + command + " as " + child.words());
    reports.events.send(reports.events.make("started").number("pid", child.id()));
    return child;
  } catch (Failure& failure) {
    if (failure.exit_code == kExitNotFound) {
      failure.text += not_found_hint(arguments.run.words, arguments.names.front());
    }
    throw;
  }
}

Released release(const CommandClient& client, const Arguments& arguments, rl_lease* lease,
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
    return {0, true};
  }
  const std::string message = escaped(rl_error_message(client.error()));
  if (status != RL_E_LOST) {
    reports.log.say(is_success_of_once ? unnoted_words(name, message)
                                       : "cannot release " + lock_words(name) + " (" + message +
                                             "); its lease ends in " + seconds_text(remaining_ms));
    return {is_success_of_once ? exit_code_of(status) : 0, false};
  }
  const std::int64_t fence = rl_lease_fence(lease);
  const std::string reason = escaped(loss_reason(lease));
  reports.log.say("lost " + lock_words(name) + " (fence " + std::to_string(fence) + "): " + reason +
                  "; the command had ended by the time this was seen" +
                  (is_success_of_once ? ", and its run counts as failed" : ""));
  JsonObject event = reports.events.make("lost");
  reports.events.send(event.number("fence", fence).text("reason", reason));
  return {kExitLost, false};
}

int with_reports(const Arguments& arguments, const Log& log,
                 const std::function<int(const Reports&)>& work) {
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
    const int exit_code = work({log, events});
    report_exit(exit_code, "");
    return exit_code;
  } catch (const Failure& failure) {
    report_exit(failure.exit_code, failure.text);
    throw;
  } catch (const std::bad_alloc&) {
    report_exit(kExitSystem, "out of memory");
    throw;
  }
}

}  // namespace redlatch::cli
