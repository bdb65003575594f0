// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "once.h"

#include <algorithm>

#include "acquire.h"
#include "commands.h"
#include "exit_code.h"
#include "lock_report.h"
#include "text.h"

namespace redlatch::cli {
namespace {

rl_status begin(const CommandClient& client, const RunOptions::Once& once, rl_lease* lease) {
  return rl_once_begin(lease, once.key.data(), once.key.size(), once.every_ms, once.tries,
                       client.error());
}

struct Skip {
  bool is_done;
  std::string text;
};

// Why no run may begin. The period of a run that this process has waited for may be over.
Skip find_reason(const CommandClient& client, const Arguments& arguments) {
  const std::string& name = arguments.names.front();
  const InfoHandle info = client.inspect(name);
  const LockReport report(info.get());
  const auto is_it = [&](const LockReport::Mark& mark) {
    return mark.key == arguments.run.once->key;
  };
  const auto mark = std::find_if(report.marks.begin(), report.marks.end(), is_it);
  if (mark == report.marks.end()) {
    return {true, in_quotes(name) + " is skipped: a run has succeeded meanwhile"};
  }
  const std::string text =
      in_quotes(name) + (mark->is_done ? " is skipped: " : " has no try left: ");
  return Skip{mark->is_done, text + mark_in_words(*mark, report.server_ms)};
}

[[noreturn]] void skip(const Skip& why, const RunOptions& run, const Reports& reports) {
  JsonObject event = reports.events.make("skipped");
  reports.events.send(
      event.text("reason", why.is_done ? "succeeded" : "tries").text("message", why.text));
  if (!why.is_done) {
    // Not the 0 of --if-busy skip: nothing is busy.
    throw Failure{run.skips_busy ? kExitNotAcquired : run.conflict_exit_code, why.text};
  }
  reports.log.detail(why.text);
  throw Failure{0, ""};
}

}  // namespace

void begin_once(const CommandClient& client, const Arguments& arguments, rl_lease* lease,
                const Reports& reports) {
  const rl_status status = begin(client, *arguments.run.once, lease);
  if (status == RL_OK) return;
  if (status == RL_SKIPPED) {
    const Skip why = find_reason(client, arguments);
    // The reason counts, also if the lock has to end with its lease.
    if (rl_release(lease, client.error()) != RL_OK) {
      reports.log.detail("cannot release " + lock_words(arguments.names.front()) + " (" +
                         escaped(rl_error_message(client.error())) + ")");
    }
    skip(why, arguments.run, reports);
  }
  if (status == RL_E_LOST) throw lost_before_start(client, arguments);
  throw client.failure();
}

rl_status end_once(const CommandClient& client, const RunOptions::Once& once, rl_lease* lease) {
  return rl_once_done(lease, once.key.data(), once.key.size(), client.error());
}

std::string unnoted_words(const std::string& name, const std::string& message) {
  return "the success of this run of " + in_quotes(name) + " was not noted (" + message +
         "): the job may run again in this period";
}

int forget_runs(const Arguments& arguments, const Log& log) {
  const CommandClient client = CommandClient::of_one(arguments, "once");
  const std::string& name = arguments.names.front();
  if (rl_once_forget(client.handle(), name.data(), name.size(), client.error()) != RL_OK) {
    throw client.failure();
  }
  log.detail("forgot the runs of " + in_quotes(name));
  return 0;
}

}  // namespace redlatch::cli
