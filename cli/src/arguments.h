// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The command line as values. Names and the child's words are parsed here and not by CLI11, which
// would search them for options.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run_options.h"

namespace redlatch::cli {

enum class Output { kTable, kJson, kJsonLines, kTsv };

// As they were typed. Of several servers only.
struct QuorumOptions {
  std::optional<std::string> restart_guard;
  bool is_durable = false;
  bool is_fenced = false;
  std::optional<std::string> node_timeout;
  std::optional<std::string> min_validity;
};

// As they were typed. Of rediss:// only.
struct TlsOptions {
  std::optional<std::string> cacert;
  std::optional<std::string> cert;
  std::optional<std::string> key;
  std::optional<std::string> sni;
  bool is_insecure = false;
};

struct Arguments {
  std::string command;  // "run", "status", ..; "print" when only `text` is to be printed.
  std::string text;     // Help, or the version.

  std::vector<std::string> urls;  // Several are the nodes of a quorum.
  QuorumOptions quorum;
  TlsOptions tls;
  bool is_local = false;  // The embedded server of this host.
  std::optional<std::string> name_space;
  std::optional<std::string> user;
  std::optional<std::string> password_file;
  bool asks_password = false;
  std::optional<std::string> password;  // The answer to the prompt.
  int verbosity = 0;
  Output output = Output::kTable;
  bool is_colored = false;

  std::vector<std::string> names;  // `run` has exactly one; `ls` at most one, a pattern.

  RunOptions run;

  bool tells_by_exit_code = false;  // `ls`

  bool is_confirmed = false;
  std::optional<std::string> if_owner;

  bool stays = false;  // `server --run`
};

// Throws UsageError.
[[nodiscard]] Arguments parse_arguments(const std::vector<std::string>& words);

}  // namespace redlatch::cli
