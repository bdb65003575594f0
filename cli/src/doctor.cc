// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// `doctor`: what endangers locks on the servers, on the way to them and on this host.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command_client.h"
#include "commands.h"
#include "exit_code.h"
#include "json.h"
#include "text.h"

namespace redlatch::cli {
namespace {

struct Check {
  std::string server;  // Empty: about this host, or the whole quorum.
  std::string id;
  std::int64_t level;  // RL_LEVEL_*
  std::string seen;
  std::string advice;
};
using Checks = std::vector<Check>;

const char* level_name(std::int64_t level) {
  switch (level) {
    case RL_LEVEL_OK:
      return "ok";
    case RL_LEVEL_WARN:
      return "warn";
    case RL_LEVEL_FAIL:
      return "fail";
    default:
      return "unknown";
  }
}

// A check that is well and has an advice all the same: no danger, but good to know.
const char* level_name(const Check& check) {
  const bool is_note = check.level == RL_LEVEL_OK && !check.advice.empty();
  return is_note ? "note" : level_name(check.level);
}

std::int64_t count_of(const Checks& checks, std::int64_t level) {
  return std::count_if(checks.begin(), checks.end(),
                       [level](const Check& check) { return check.level == level; });
}

// The worst level; what is not known counts as ok.
std::int64_t level_of(const Checks& checks) {
  if (count_of(checks, RL_LEVEL_FAIL) > 0) return RL_LEVEL_FAIL;
  return count_of(checks, RL_LEVEL_WARN) > 0 ? RL_LEVEL_WARN : RL_LEVEL_OK;
}

// ---- this host and the way to the servers ------------------------------------------------------

Check host_clock() {
  timespec now{};
  const bool works = clock_gettime(CLOCK_BOOTTIME, &now) == 0;
  return {"", "host-clock", works ? RL_LEVEL_OK : RL_LEVEL_FAIL,
          works ? "CLOCK_BOOTTIME works: leases end in time also after a suspend"
                : "CLOCK_BOOTTIME is not available",
          works ? "" : "use Linux 2.6.39 or newer"};
}

bool is_of_this_host(const std::string& address) {
  if (!address.starts_with("redis://") && !address.starts_with("rediss://")) return true;
  const std::string host = address.substr(address.find("://") + 3);
  return host.starts_with("127.") || host.starts_with("localhost:") || host.starts_with("[::1]:");
}

Check way_to(const CommandClient& client, const std::string& address) {
  Check check{address, "tls", RL_LEVEL_OK, "the server is on this host", ""};
  const bool is_tls = address.starts_with("rediss://");
  if (is_tls) check.seen = "the connection is encrypted, and the server is verified";
  if (is_tls && client.option("tls_verify") == "none") {
    check = {address, "tls", RL_LEVEL_WARN,
             "the connection is encrypted, but any server is accepted",
             "name the authority by --cacert in place of --tls-verify none"};
  } else if (!is_tls && !is_of_this_host(address)) {
    check = {address, "tls", RL_LEVEL_WARN,
             "password and lock names cross the network without encryption",
             "use rediss://, or a network that is private"};
  }
  return check;
}

// ---- the servers -------------------------------------------------------------------------------

std::string text_of(const rl_info* info, std::int32_t part, std::int32_t row, std::int32_t field) {
  return read_text([&](char* buffer, std::size_t size) {
    return rl_info_text(info, part, row, field, buffer, size);
  });
}

Check finding_of(const rl_info* info, std::int32_t row) {
  const auto text = [&](std::int32_t field) { return text_of(info, RL_PART_FINDING, row, field); };
  return {text(RL_FIELD_ADDRESS), text(RL_FIELD_ID),
          rl_info_number(info, RL_PART_FINDING, row, RL_FIELD_LEVEL), text(RL_FIELD_SEEN),
          text(RL_FIELD_ADVICE)};
}

Check quorum_check(const rl_info* info) {
  const std::int32_t count = rl_info_count(info, RL_PART_NODE);
  std::int32_t voter_count = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto state = rl_info_number(info, RL_PART_NODE, i, RL_FIELD_STATE);
    if (state == RL_NODE_UP || state == RL_NODE_POLLED) ++voter_count;
  }
  const bool is_enough = voter_count > count / 2;
  return {"", "quorum", is_enough ? RL_LEVEL_OK : RL_LEVEL_FAIL,
          std::to_string(voter_count) + " of " + std::to_string(count) + " servers may vote",
          is_enough ? "" : "no lock can be taken: see the servers that may not vote"};
}

// ---- replicas that confirm ---------------------------------------------------------------------

// One name, so that the fence counters of many calls are one key.
constexpr std::string_view kTrialName = "redlatch-doctor";
constexpr std::int64_t kTrialWaitMs = 3000;

std::string advice_for(rl_status status) {
  switch (status) {
    case RL_E_NOT_REPLICATED:
      return "connect more replicas, or let callers ask for fewer by min_replicas";
    case RL_E_DENIED:
      return "give the user the right +wait (tools/acl.py)";
    case RL_E_UNSUPPORTED:
      return "use a server that has WAIT, or locks without min_replicas";
    default:
      return "see the other checks";
  }
}

// Takes a lock as a caller with this min_replicas would.
Check replicas_check(const CommandClient& client, const std::string& server, int count) {
  const AcquireOptionsHandle options(not_null(rl_acquire_options_new()));
  const std::string name = "min_replicas";
  const std::string text = std::to_string(count);
  rl_acquire_options_set(options.get(), name.data(), name.size(), text.data(), text.size(),
                         client.error());
  const LeaseHandle lease(rl_acquire(client.handle(), kTrialName.data(), kTrialName.size(),
                                     kTrialWaitMs, options.get(), client.error()));
  Check check{server, "min-replicas", RL_LEVEL_OK, "", ""};
  if (lease) {
    check.seen = "a grant is confirmed by " + text + (count == 1 ? " replica" : " replicas");
    rl_release(lease.get(), nullptr);
    return check;
  }
  const rl_status status = rl_error_status(client.error());
  check.seen = rl_error_message(client.error());
  const bool is_busy = status == RL_BUSY || status == RL_TIMEOUT;
  check.level = is_busy ? RL_LEVEL_UNKNOWN : RL_LEVEL_FAIL;
  if (!is_busy) check.advice = advice_for(status);
  return check;
}

Checks all_checks(const CommandClient& client, const rl_info* info) {
  Checks checks{host_clock()};
  std::int32_t row = 0;
  for (std::int32_t node = 0; node < rl_info_count(info, RL_PART_NODE); ++node) {
    checks.push_back(way_to(client, text_of(info, RL_PART_NODE, node, RL_FIELD_ADDRESS)));
    for (; row < rl_info_count(info, RL_PART_FINDING) &&
           rl_info_number(info, RL_PART_FINDING, row, RL_FIELD_NODE) == node;
         ++row) {
      checks.push_back(finding_of(info, row));
    }
  }
  if (client.is_quorum()) checks.push_back(quorum_check(info));
  return checks;
}

// ---- output ------------------------------------------------------------------------------------

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 2, width + 2), ' ');
  return text;
}

std::string summary(const Checks& checks) {
  const auto fails = count_of(checks, RL_LEVEL_FAIL);
  const auto warns = count_of(checks, RL_LEVEL_WARN);
  const auto unknowns = count_of(checks, RL_LEVEL_UNKNOWN);
  const auto count = fails + warns;
  std::string line = std::to_string(count) + (count == 1 ? " finding" : " findings");
  if (count > 0) {
    line += " (" + std::to_string(fails) + " fail, " + std::to_string(warns) + " warn)";
  }
  if (unknowns > 0) line += ", " + std::to_string(unknowns) + " not known";
  return line + "\n";
}

std::string table_of(const Checks& checks, bool is_quorum, bool is_colored) {
  std::size_t id_width = 0;
  for (const Check& check : checks) id_width = std::max(id_width, check.id.size());
  std::string out;
  std::string server;
  for (const Check& check : checks) {
    if (is_quorum && check.server != server) out += "\n" + escaped(check.server) + "\n";
    server = check.server;
    const bool is_bad = check.level == RL_LEVEL_WARN || check.level == RL_LEVEL_FAIL;
    out += bold(padded(level_name(check), std::size_t{7}), is_bad && is_colored);
    out += padded(check.id, id_width) + escaped(check.seen);
    if (!check.advice.empty()) out += " -> " + escaped(check.advice);
    out += "\n";
  }
  return out + (is_quorum ? "\n" : "") + summary(checks);
}

std::string tsv_of(const Checks& checks) {
  const auto cell = [](const std::string& text) { return text.empty() ? "-" : escaped(text); };
  std::string out;
  for (const Check& check : checks) {
    out += std::string(level_name(check)) + "\t" + check.id + "\t" + cell(check.server) + "\t" +
           cell(check.seen) + "\t" + cell(check.advice) + "\n";
  }
  return out;
}

std::string json_of(const Check& check) {
  JsonObject object;
  object.text("id", check.id).text("level", level_name(check));
  if (!check.server.empty()) object.text("server", check.server);
  return object.text("seen", check.seen).text("advice", check.advice).done();
}

std::string json_of(const Checks& checks, const CommandClient& client) {
  JsonObject object;
  object.number("schema", 1).text("server", client.server());
  object.text("level", level_name(level_of(checks)));
  object.number("fail", count_of(checks, RL_LEVEL_FAIL));
  object.number("warn", count_of(checks, RL_LEVEL_WARN));
  object.number("unknown", count_of(checks, RL_LEVEL_UNKNOWN));
  const auto write = [](const Check& check) { return json_of(check); };
  return object.raw("checks", json_array(checks, write)).done() + "\n";
}

void write_checks(const Checks& checks, const CommandClient& client, const Arguments& arguments) {
  switch (arguments.output) {
    case Output::kTable:
      return write_output(table_of(checks, client.is_quorum(), arguments.is_colored));
    case Output::kTsv:
      return write_output(tsv_of(checks));
    case Output::kJson:
      return write_output(json_of(checks, client));
    case Output::kJsonLines:
      for (const Check& check : checks) write_output(json_of(check) + "\n");
      return;
  }
}

}  // namespace

int doctor(const Arguments& arguments, const Log& /*log*/) {
  const CommandClient client(arguments);
  if (client.is_quorum() && arguments.min_replicas > 0) {
    throw UsageError("--min-replicas must be 0 with several servers (got " +
                     std::to_string(arguments.min_replicas) + ")");
  }
  InfoHandle info(rl_client_check(client.handle(), arguments.check_wait_ms, client.error()));
  if (!info) {
    // The known part is shown all the same: which server cannot be reached.
    const Failure why =
        client.failure(rl_error_status(client.error()), rl_error_message(client.error()), 0);
    info.reset(rl_client_info(client.handle(), nullptr));
    if (info) write_checks(all_checks(client, info.get()), client, arguments);
    const bool is_late = rl_error_status(client.error()) == RL_TIMEOUT;
    throw Failure{is_late ? kExitUnavailable : why.exit_code, why.text};
  }
  Checks checks = all_checks(client, info.get());
  if (arguments.min_replicas > 0) {
    const std::string server = text_of(info.get(), RL_PART_NODE, 0, RL_FIELD_ADDRESS);
    checks.push_back(replicas_check(client, server, arguments.min_replicas));
  }
  write_checks(checks, client, arguments);
  switch (level_of(checks)) {
    case RL_LEVEL_FAIL:
      return kExitFailures;
    case RL_LEVEL_WARN:
      return kExitFindings;
    default:
      return 0;
  }
}

}  // namespace redlatch::cli
