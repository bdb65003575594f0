// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "recall_options.h"

#include <CLI/CLI.hpp>
#include <string>

#include "exit_code.h"
#include "redlatch/redlatch.h"

namespace redlatch::cli {

void add_recall_options(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--reason", arguments.recall.reason,
                  "Why, for the holders: at most " + std::to_string(RL_MAX_REASON_BYTES) + " bytes")
      ->type_name("TEXT");
}

void add_leader_options(CLI::App& command, Arguments& arguments) {
  command.add_flag("--watch", arguments.watches,
                   "Show each change, a line each, until a signal comes");
  command.add_flag("--resign", arguments.recall.resigns, "Ask the leader to resign, by a recall");
  command.add_flag("--force", arguments.recall.is_forced,
                   "With --resign: take the lock away from the leader");
  add_recall_options(command, arguments);
}

void check_recall(const Arguments& arguments) {
  const Arguments::Recall& recall = arguments.recall;
  if (recall.reason && recall.reason->size() > RL_MAX_REASON_BYTES) {
    throw UsageError("--reason must be at most " + std::to_string(RL_MAX_REASON_BYTES) +
                     " bytes (got " + std::to_string(recall.reason->size()) + " bytes)");
  }
  if (arguments.command != "leader") return;
  if (recall.resigns && arguments.watches) throw UsageError("--resign excludes --watch");
  if (recall.is_forced && !recall.resigns) throw UsageError("--force goes with --resign");
  if (recall.reason && !recall.resigns) throw UsageError("--reason goes with --resign");
  if (recall.reason && recall.is_forced) {
    throw UsageError("--force excludes --reason: the leader is not asked");
  }
}

}  // namespace redlatch::cli
