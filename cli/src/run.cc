// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "acquire.h"
#include "child.h"
#include "commands.h"
#include "duration.h"
#include "exit_code.h"
#include "session.h"
#include "signals.h"
#include "supervisor.h"
#include "terminal.h"
#include "text.h"

namespace redlatch::cli {
namespace {

std::vector<std::pair<std::string, std::string>> variables(const Arguments& arguments,
                                                           const Session& session,
                                                           const rl_lease* lease) {
  return {
      {"REDLATCH_LOCK", arguments.names.front()},
      {"REDLATCH_FENCE", std::to_string(rl_lease_fence(lease))},
      {"REDLATCH_TTL_MS", std::to_string(arguments.lease_ms)},
      {"REDLATCH_HOLDER", session.holder()},
      {"REDLATCH_MODE", "exclusive"},
      {"REDLATCH_PID", std::to_string(getpid())},
  };
}

// The child is gone. Returns false if it turns out that the lock was gone before.
bool release(const Session& session, const Arguments& arguments, rl_lease* lease, const Log& log) {
  const std::string& name = arguments.names.front();
  const std::int64_t remaining_ms = rl_lease_remaining_ms(lease);
  const rl_status status = rl_release(lease, session.error());
  if (status == RL_OK) return true;
  const std::string message = rl_error_message(session.error());
  if (status == RL_E_LOST) {
    log.say("lost lock " + in_quotes(name) + " (fence " + std::to_string(rl_lease_fence(lease)) +
            "): " + loss_reason(message) + "; the command had ended by the time this was seen");
    return false;
  }
  log.say("cannot release lock " + in_quotes(name) + " (" + escaped(message) +
          "); its lease ends in " + seconds_text(remaining_ms));
  return true;
}

}  // namespace

int run(const Arguments& arguments, const Log& log) {
  Signals signals;
  const Session session(arguments);
  const LeaseHandle lease = acquire(session, arguments, signals, log);
  const std::int64_t begin_us = now_us();
  signals.begin_child();
  Terminal terminal;
  Supervisor supervisor(arguments, lease.get(), signals, terminal, log);
  Child child(arguments.child_words, variables(arguments, session, lease.get()), signals, terminal);
  const Supervisor::Outcome outcome = supervisor.watch(child);

  if (outcome.is_lost) return kExitLost;
  if (!release(session, arguments, lease.get(), log)) return kExitLost;
  log.detail("released " + escaped(arguments.names.front()) + " after " +
             seconds_text((now_us() - begin_us) / 1000));
  return outcome.exit_code;
}

}  // namespace redlatch::cli
