// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The label that `run` gives a lock: KEY=VALUE pairs and the command, written like variables
// in front of a command in a shell.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlatch::cli {

using LabelPairs = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] bool is_label_pair(std::string_view word);

// The pairs that `label` begins with.
[[nodiscard]] LabelPairs label_pairs(std::string_view label);

}  // namespace redlatch::cli
