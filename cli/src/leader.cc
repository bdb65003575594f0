// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// `leader`.
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "acquire.h"
#include "command_client.h"
#include "commands.h"
#include "duration.h"
#include "exit_code.h"
#include "json.h"
#include "leader_observer.h"
#include "line_writer.h"
#include "lock_report.h"
#include "recall.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kLookMs = 1000;
constexpr std::size_t kIdColumns = 20;

std::string table_line(const Leader& leader, std::int64_t server_ms) {
  std::string line = leader.id.empty() ? "–" : escaped(leader.id);
  line += std::string(kIdColumns - std::min(kIdColumns, column_count(line)), ' ');
  if (leader.id.empty()) return line + "  no leader\n";
  return line + "  term " + std::to_string(leader.term) + "  since " + date_text(leader.since_ms) +
         " (" + span_text(server_ms - leader.since_ms) + ")\n";
}

std::string tsv_line(const Leader& leader) {
  if (leader.id.empty()) return "-\t-\t-\n";
  return escaped(leader.id) + "\t" + std::to_string(leader.term) + "\t" +
         date_ms_text(leader.since_ms) + "\n";
}

std::string json_line(const Leader& leader, const LockReport& report, const std::string& server) {
  std::vector<std::string> candidates;
  for (const LockReport::Waiter& waiter : report.waiters) {
    if (!waiter.candidate.empty()) candidates.push_back(waiter.candidate);
  }
  JsonObject object;
  object.number("schema", 1).text("name", report.name);
  if (leader.id.empty()) {
    object.raw("id", "null").raw("term", "null").raw("since", "null");
  } else {
    object.text("id", leader.id).number("term", leader.term);
    object.text("since", date_ms_text(leader.since_ms));
  }
  object.raw("candidates", json_array(candidates, json_string));
  object.text("server", server).text("server_time", date_ms_text(report.server_ms));
  return object.done() + "\n";
}

void show(const rl_info* info, const Arguments& arguments, const CommandClient& client) {
  const LockReport report(info);
  const Leader leader(info);
  switch (arguments.output) {
    case Output::kTable:
      return write_output(table_line(leader, report.server_ms));
    case Output::kTsv:
      return write_output(tsv_line(leader));
    default:
      return write_output(json_line(leader, report, client.server()));
  }
}

// NULL: the reader of the output is gone.
InfoHandle next_leader(const CommandClient& client, const std::string& name, std::int64_t seen,
                       const Log& log) {
  const RequestHandle request(
      not_null(rl_leader_watch_start(client.handle(), name.data(), name.size(), seen, -1)));
  rl_status status = RL_PENDING;
  while (status == RL_PENDING || status == RL_INTERRUPTED) {
    log.say_library_lines(client.handle());
    if (has_no_reader(STDOUT_FILENO)) return nullptr;
    status = rl_request_wait(request.get(), kLookMs);
  }
  if (status != RL_OK) throw client.failure(status, rl_request_message(request.get()), 0);
  return InfoHandle(not_null(rl_request_take_info(request.get())));
}

int watch_leaders(const Arguments& arguments, const CommandClient& client, const Log& log) {
  if (trial_connect(client, log) != RL_OK) throw client.failure();
  std::int64_t seen = -1;
  while (const InfoHandle info = next_leader(client, arguments.names.front(), seen, log)) {
    show(info.get(), arguments, client);
    seen = rl_info_number(info.get(), RL_PART_LOCK, 0, RL_FIELD_POSITION);
  }
  return 0;
}

InfoHandle read_leader(const CommandClient& client, const std::string& name) {
  return InfoHandle(rl_leader(client.handle(), name.data(), name.size(), client.error()));
}

std::string leader_words(const Leader& leader, const std::string& name) {
  return "the leader " + in_quotes(leader.id) + " of " + in_quotes(name) + " (term " +
         std::to_string(leader.term) + ")";
}

// Takes the lock from the leader of the report only: another one may lead by now.
bool remove_leader(const CommandClient& client, const LockReport& report, const std::string& leader,
                   const Log& log) {
  const std::string& token = report.holders.front().token;
  const rl_status status = rl_force_release(client.handle(), report.name.data(), report.name.size(),
                                            token.data(), token.size(), client.error());
  if (status == RL_E_NOT_HELD) {
    log.say(leader + " does not lead any more; nothing was changed");
    return false;
  }
  if (status != RL_OK) throw client.failure();
  log.say("took the lock away from " + leader + "; its work stops " +
          stop_text(report.server_ms, report.longest_lease_ms()) + " at the latest");
  return true;
}

// A recall names no term. The leader before it was asked if it is that after it; else either may
// have been. Without `after` it is not known.
std::string resign_words(const Leader& before, const std::optional<Leader>& after, bool is_heard,
                         const std::string& name) {
  const bool is_same = after && !after->id.empty() && after->term == before.term;
  if (is_same) {
    const std::string leader = leader_words(before, name);
    return is_heard ? "asked " + leader + " to resign"
                    : "the client of " + leader + " did not hear the recall";
  }
  const auto candidate = [](const Leader& leader) {
    return in_quotes(leader.id) + " (term " + std::to_string(leader.term) + ")";
  };
  std::string text = is_heard ? "asked the leader of " + in_quotes(name) + " to resign"
                              : "no leader of " + in_quotes(name) + " heard the recall";
  text += ": it was " + candidate(before) + " before, and ";
  if (!after) return text + "cannot be read now";
  return text + (after->id.empty() ? "there is no leader now" : "is " + candidate(*after) + " now");
}

// The leader before the call.
JsonObject resign_json(const Leader& leader, const std::string& name) {
  JsonObject object;
  return object.number("schema", 1)
      .text("name", name)
      .text("id", leader.id)
      .number("term", leader.term);
}

void print_resign(JsonObject& object, const Arguments& arguments, const CommandClient& client) {
  if (arguments.output == Output::kTable || arguments.output == Output::kTsv) return;
  write_output(object.text("server", client.server()).done() + "\n");
}

int force(const Arguments& arguments, const CommandClient& client, const rl_info* info,
          const Log& log) {
  const std::string& name = arguments.names.front();
  const Leader leader(info);
  const bool is_removed = remove_leader(client, LockReport(info), leader_words(leader, name), log);
  JsonObject object = resign_json(leader, name);
  print_resign(object.raw("removed", is_removed ? "true" : "false"), arguments, client);
  return is_removed ? 0 : kExitFree;
}

int resign(const Arguments& arguments, const CommandClient& client, const rl_info* info,
           const Log& log) {
  const std::string& name = arguments.names.front();
  const Leader before(info);
  const std::int64_t heard = ask_to_finish(client, arguments);
  std::optional<Leader> after;
  if (const InfoHandle now = read_leader(client, name)) after.emplace(now.get());
  log.say(resign_words(before, after, heard > 0, name));
  JsonObject object = resign_json(before, name);
  object.number("heard", heard);
  const bool is_led = after && !after->id.empty();
  object.raw("id_after", is_led ? json_string(after->id) : "null");
  object.raw("term_after", is_led ? std::to_string(after->term) : "null");
  print_resign(object, arguments, client);
  return 0;
}

}  // namespace

int show_leader(const Arguments& arguments, const Log& log) {
  const CommandClient client = CommandClient::of_one(arguments, "leader");
  if (arguments.watches) return watch_leaders(arguments, client, log);
  const std::string& name = arguments.names.front();
  const InfoHandle info = read_leader(client, name);
  if (!info) throw client.failure();
  const bool resigns = arguments.recall.resigns;
  if (Leader(info.get()).id.empty()) {
    const std::string text = in_quotes(name) + " has no leader";
    resigns ? log.say(text) : log.detail(text);
    return kExitFree;
  }
  if (resigns && arguments.recall.is_forced) return force(arguments, client, info.get(), log);
  if (resigns) return resign(arguments, client, info.get(), log);
  show(info.get(), arguments, client);
  return 0;
}

}  // namespace redlatch::cli
