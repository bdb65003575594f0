// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "command_client.h"
#include "commands.h"
#include "exit_code.h"
#include "lock_report.h"
#include "quorum_report.h"
#include "text.h"

namespace redlatch::cli {
namespace {

std::string without_last_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// Asks the user to type the name: a "y" is often typed before the question was read.
bool is_confirmed_by_name(const std::string& name, const Log& log) {
  log.always("this takes the lock away from a holder that may still be working. Type the name of " +
             std::string("the lock to continue:"));
  std::string line;
  std::getline(std::cin, line);
  return line == name || line == escaped(name);
}

std::string removal_in_words(const LockReport& report, const std::string& name,
                             std::int64_t removed_count) {
  const bool is_all = report.holding_count <= removed_count;
  if (is_all) return "removed " + lock_words(name) + "; it was " + report_sentence(report);
  return "removed " + std::to_string(removed_count) + " of the " +
         std::to_string(report.holding_count) +
         (report.has_permits() ? " holders"
          : report.is_shared() ? " readers"
                               : " holds") +
         " of " + lock_words(name);
}

// The holder notices the loss at its next renewal, or when its lease ends.
std::string stop_in_words(std::int64_t server_ms, std::int64_t lease_ms) {
  if (lease_ms <= 0) return "";
  return "; the former holder stops " + stop_text(server_ms, lease_ms) + " at the latest";
}

// As the lease is now: the question may have been open for long, and the lease was renewed.
std::string stop_in_words(const CommandClient& client, const std::string& name) {
  const InfoHandle info = client.try_inspect(name);
  if (!info) return "";
  const LockReport report(info.get());
  return stop_in_words(report.server_ms, report.longest_lease_ms());
}

// An empty --if-owner is refused before, so this is a decision. The value of a foreign key may be
// empty, too: then there is no other way to name its holder.
constexpr const char* kAnyHolder = "";

rl_status remove(const CommandClient& client, const std::string& name, const std::string& token) {
  if (token == kAnyHolder) {
    return rl_force_release_any(client.handle(), name.data(), name.size(), client.error());
  }
  return rl_force_release(client.handle(), name.data(), name.size(), token.data(), token.size(),
                          client.error());
}

int force_release_one(const CommandClient& client, const Arguments& arguments,
                      const std::string& name, const Log& log) {
  const InfoHandle info = client.inspect(name);
  const LockReport report(info.get());
  log.say(without_last_line_end(report_table(report, false)));
  const std::string lock = lock_words(name);
  if (report.is_free()) {
    log.say(lock + " is not held; nothing was changed");
    return kExitFree;
  }

  std::vector<std::string> tokens = {arguments.if_owner.value_or(kAnyHolder)};
  if (!arguments.is_confirmed) {
    if (!is_confirmed_by_name(name, log)) {
      log.say("that is not the name, nothing was changed");
      return kExitFree;
    }
    // The confirmation is for the holders that were shown, not for later ones.
    if (tokens.front().empty() && !report.holders.empty()) tokens = report.tokens();
  }
  const std::string stop = stop_in_words(client, name);
  std::int64_t removed_count = 0;
  for (const std::string& token : tokens) {
    const rl_status status = remove(client, name, token);
    if (status != RL_OK && status != RL_E_NOT_HELD) throw client.failure();
    if (status == RL_OK) removed_count += token.empty() ? report.holding_count : 1;
  }
  if (removed_count > 0) {
    log.say(removal_in_words(report, name, removed_count) + stop);
    return 0;
  }
  log.say("did not remove " + lock + ": " + escaped(rl_error_message(client.error())) +
          "; nothing was changed");
  return kExitFree;
}

// RL_OK if the shown holder, with --yes any holder, was removed from this server.
rl_status remove_from(const CommandClient& node, const NodeReport& shown,
                      const Arguments& arguments, const std::string& name) {
  std::string token = arguments.if_owner.value_or(kAnyHolder);
  // That client may have another token here.
  if (const auto* holder = holder_with(shown, token); holder != nullptr) token = holder->token;
  if (!shown.lock || shown.lock->is_free()) return shown.lock ? RL_E_NOT_HELD : RL_E_UNAVAILABLE;
  if (!arguments.is_confirmed && token.empty() && !shown.lock->holders.empty()) {
    token = shown.lock->holders.front().token;
  }
  return remove(node, name, token);
}

// A holder on most servers keeps the lock, so servers that did not answer matter.
int force_release_all(const QuorumView& view, const Arguments& arguments, const std::string& name,
                      const Log& log) {
  const QuorumReport report = view.report_on(name);
  log.say(without_last_line_end(quorum_table(report, false)));
  const std::string lock = lock_words(name);
  if (report.state() == QuorumReport::State::kFree) {
    log.say(lock + " is not held; nothing was changed");
    return kExitFree;
  }
  if (!arguments.is_confirmed && !is_confirmed_by_name(name, log)) {
    log.say("that is not the name, nothing was changed");
    return kExitFree;
  }
  const QuorumReport present = view.report_on(name);
  const std::string stop =
      present.is_foreign ? "" : stop_in_words(present.server_ms, present.remaining_ms);
  std::size_t removed_count = 0;
  int exit_code = kExitFree;
  for (std::size_t i = 0; i < report.nodes.size(); ++i) {
    const CommandClient& node = view.nodes()[i];
    const rl_status status = remove_from(node, report.nodes[i], arguments, name);
    if (status == RL_OK) ++removed_count;
    if (status == RL_OK || status == RL_E_NOT_HELD) continue;
    exit_code = exit_code_of(status);
    log.say("cannot remove it from " + node.server() + ": " +
            escaped(rl_error_message(node.error())));
  }
  log.say("removed " + lock + " from " + std::to_string(removed_count) + " of " +
          std::to_string(report.nodes.size()) + " servers" + (removed_count > 0 ? stop : ""));
  return exit_code == kExitFree && removed_count > 0 ? 0 : exit_code;
}

int force_release_of_quorum(const Arguments& arguments, const Log& log) {
  const QuorumView view(arguments);
  int exit_code = 0;
  for (const std::string& name : arguments.names) {
    const int its_code = force_release_all(view, arguments, name, log);
    if (its_code != 0) exit_code = its_code;
  }
  return exit_code;
}

}  // namespace

int force_release(const Arguments& arguments, const Log& log) {
  const bool can_ask = isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  if (!arguments.is_confirmed && !can_ask) {
    throw UsageError("force-release asks on a terminal only; elsewhere say --yes");
  }
  if (server_urls(arguments).size() > 1) return force_release_of_quorum(arguments, log);
  const CommandClient client(arguments);
  int exit_code = 0;
  for (const std::string& name : arguments.names) {
    try {
      const int its_code = force_release_one(client, arguments, name, log);
      if (its_code != 0) exit_code = its_code;
    } catch (const Failure& failure) {
      if (rl_error_status(client.error()) != RL_E_WRONG_TYPE) throw;
      log.say(failure.text);  // about this lock: the others follow
      exit_code = failure.exit_code;
    }
  }
  return exit_code;
}

}  // namespace redlatch::cli
