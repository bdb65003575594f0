// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The command line as values. Names and the child's words are parsed here and not by CLI11, which
// would search them for options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "option_flags.h"
#include "run_options.h"

namespace redlatch::cli {

enum class Output { kTable, kJson, kJsonLines, kTsv };

struct Arguments {
  std::string command;  // "run", "status", ..; "print" when only `text` is to be printed.
  std::string text;     // Help, or the version.

  std::vector<std::string> urls;  // Several are the nodes of a quorum.
  OptionFlags options;            // For clients and quorums.
  bool is_local = false;          // The embedded server of this host.
  bool asks_password = false;
  std::optional<std::string> password;  // The answer to the prompt.
  int verbosity = 0;
  Output output = Output::kTable;
  bool is_colored = false;

  // `run`, `once`, `elect`, `leader`, `recall`: one; `ls`: at most one, a pattern.
  std::vector<std::string> names;

  RunOptions run;  // `once` and `elect` have them, too.
  // All that `run` locks, NAME first.
  [[nodiscard]] std::vector<std::string> run_names() const;

  // The variable REDLATCH_PASSWORD_FILE of the command, if it is another one than ours.
  std::optional<std::string> command_password_file;

  bool watches = false;  // `leader --watch`

  // `recall`, `leader --resign`
  struct Recall {
    std::optional<std::string> reason;
    bool resigns = false;
    bool is_forced = false;
  };
  Recall recall;

  bool tells_by_exit_code = false;  // `ls`

  bool is_confirmed = false;
  std::optional<std::string> if_owner;

  bool stays = false;  // `server --run`

  std::optional<std::int64_t> cap;  // `limit NAME N`
  std::int64_t cap_for_ms = 0;      // `limit --for`; 0 = no end of its own.
  bool clears_cap = false;

  std::int64_t check_wait_ms = 0;  // `doctor --wait`
  int min_replicas = 0;            // `doctor --min-replicas`
};

// Throws UsageError.
[[nodiscard]] Arguments parse_arguments(const std::vector<std::string>& words);

}  // namespace redlatch::cli
