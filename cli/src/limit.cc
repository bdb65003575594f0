// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// `limit`: the cap of a semaphore.
#include <string>

#include "command_client.h"
#include "commands.h"
#include "duration.h"
#include "exit_code.h"
#include "handles.h"
#include "lock_report.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kNoCap = -1;

int show_cap(const CommandClient& client, const std::string& name, const Log& log) {
  const InfoHandle info(
      rl_semaphore_stats(client.handle(), name.data(), name.size(), client.error()));
  if (!info) throw client.failure();
  const LockReport report(info.get());
  if (!report.has_cap()) {
    log.say(lock_words(name) + " has no cap");
    return kExitFree;
  }
  write_output(std::to_string(report.cap) + "\n");
  if (report.cap_remaining_ms >= 0) {
    log.say("the cap of " + lock_words(name) + " ends in " + span_text(report.cap_remaining_ms));
  }
  return 0;
}

std::string cap_set_in_words(const std::string& name, std::int64_t cap, std::int64_t for_ms) {
  if (cap == kNoCap) return "removed the cap of " + lock_words(name);
  const std::string end = for_ms > 0 ? ", for " + span_text(for_ms) : "";
  return "set the cap of " + lock_words(name) + " to " + std::to_string(cap) + end +
         ": it counts from the next grant on";
}

}  // namespace

int limit(const Arguments& arguments, const Log& log) {
  const CommandClient client = CommandClient::of_one(arguments, "limit");
  const std::string& name = arguments.names.front();
  if (!arguments.cap && !arguments.clears_cap) return show_cap(client, name, log);
  const std::int64_t cap = arguments.cap.value_or(kNoCap);
  const rl_status status = rl_semaphore_set_cap(client.handle(), name.data(), name.size(), cap,
                                                arguments.cap_for_ms, client.error());
  if (status != RL_OK) throw client.failure();
  log.say(cap_set_in_words(name, cap, arguments.cap_for_ms));
  return 0;
}

}  // namespace redlatch::cli
