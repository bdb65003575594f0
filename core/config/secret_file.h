// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A secret in a file: what containers mount, and what does not show in a list of processes.
#pragma once

#include <string>

#include "base/status.h"

namespace redlatch::config {

inline constexpr size_t kMaxPasswordBytes = 64 * 1024;

// Read the first line of `path` to `secret`, at most kMaxPasswordBytes. A pipe that somebody
// writes to is waited for, a second at most.
Outcome read_secret(const std::string &path, std::string &secret);

}  // namespace redlatch::config
