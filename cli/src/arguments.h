// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The command line as values. Names and the child's words are taken apart here and not by CLI11,
// which would look for options in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "redlatch/redlatch.h"

namespace redlatch::cli {

struct Arguments {
  std::string command;  // "run", "status", ..; "print" when only `text` is to be printed.
  std::string text;     // Help, or the version.

  std::optional<std::string> url;
  bool is_local = false;  // The embedded server of this host.
  std::optional<std::string> name_space;
  std::optional<std::string> user;
  std::optional<std::string> password_file;
  bool is_quiet = false;
  bool is_verbose = false;

  std::vector<std::string> names;  // `run` has exactly one.

  std::vector<std::string> child_words;
  std::int64_t wait_ms = -1;
  std::int64_t lease_ms = RL_DEFAULT_LEASE_MS;
  std::int64_t kill_after_ms = 0;
  int conflict_exit_code = 0;

  bool is_json = false;

  bool is_confirmed = false;
  std::optional<std::string> if_owner;

  bool stays = false;  // `server --run`
};

// Throws UsageError.
[[nodiscard]] Arguments parse_arguments(const std::vector<std::string>& words);

}  // namespace redlatch::cli
