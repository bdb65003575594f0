// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "commands.h"
#include "exit_code.h"
#include "lock_report.h"
#include "session.h"
#include "text.h"

namespace redlatch::cli {
namespace {

std::string without_last_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// Asks for the name typed back: a "y" is typed before one has read what it is for.
bool is_confirmed_by_name(const std::string& name, const Log& log) {
  log.always("this takes the lock away from a holder that may still be working. Type the name of " +
             std::string("the lock to go on:"));
  std::string line;
  std::getline(std::cin, line);
  return line == name || line == escaped(name);
}

std::string removal_in_words(const LockReport& report, const std::string& name,
                             std::int64_t removed_count) {
  const bool is_all = report.holding_count <= removed_count;
  if (is_all) return "removed " + lock_words(name) + "; it was " + report_sentence(report);
  return "removed " + std::to_string(removed_count) + " of the " +
         std::to_string(report.holding_count) + (report.is_shared() ? " readers" : " holds") +
         " of " + lock_words(name);
}

int force_release_one(const Session& session, const Arguments& arguments, const std::string& name,
                      const Log& log) {
  const InfoHandle info = session.inspect(name);
  const LockReport report(info.get());
  log.say(without_last_line_end(report_table(report, false)));
  const std::string lock = lock_words(name);
  if (report.is_free()) {
    log.say("nobody holds " + lock + ", nothing was changed");
    return kExitFree;
  }

  std::vector<std::string> tokens = {arguments.if_owner.value_or("")};
  if (!arguments.is_confirmed) {
    if (!is_confirmed_by_name(name, log)) {
      log.say("that is not the name, nothing was changed");
      return kExitFree;
    }
    // What was confirmed are the holders that were shown, and nobody who came in the meantime.
    if (tokens.front().empty() && !report.holders.empty()) tokens = report.tokens();
  }
  std::int64_t removed_count = 0;
  for (const std::string& token : tokens) {
    const rl_status status = rl_force_release(session.client(), name.data(), name.size(),
                                              token.data(), token.size(), session.error());
    if (status != RL_OK && status != RL_E_NOT_HELD) throw session.failure();
    if (status == RL_OK) removed_count += token.empty() ? report.holding_count : 1;
  }
  if (removed_count > 0) {
    log.say(removal_in_words(report, name, removed_count));
    return 0;
  }
  log.say("did not remove " + lock + ": " + escaped(rl_error_message(session.error())) +
          "; nothing was changed");
  return kExitFree;
}

}  // namespace

int force_release(const Arguments& arguments, const Log& log) {
  const bool can_ask = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  if (!arguments.is_confirmed && !can_ask) {
    throw UsageError("force-release asks on a terminal only; elsewhere say --yes");
  }
  const Session session(arguments);
  int exit_code = 0;
  for (const std::string& name : arguments.names) {
    const int its_code = force_release_one(session, arguments, name, log);
    if (its_code != 0) exit_code = its_code;
  }
  return exit_code;
}

}  // namespace redlatch::cli
