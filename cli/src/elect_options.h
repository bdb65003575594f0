// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The options of `elect`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run_options.h"

namespace redlatch::cli {

class ElectParser {
 public:
  // Must outlive the parsing.
  void add_to(CLI::App& elect);

  // The parsed options, and the child's `words`. Throws UsageError.
  [[nodiscard]] RunOptions checked(const std::vector<std::string>& words) const;

 private:
  [[nodiscard]] std::string checked_id() const;
  void check_http() const;

  RunParser run_;
  std::optional<std::string> id_;
  std::optional<std::string> http_;
  bool restarts_ = false;
  bool is_http_public_ = false;
};

}  // namespace redlatch::cli
