// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A secret in a file, as containers mount it. It does not show in a list of processes.
#pragma once

#include <string>

#include "base/limits.h"
#include "base/status.h"

namespace redlatch::config {

// Read the first line of `path` to `secret`; it has at most kMaxPasswordBytes. If `path` is a pipe
// with a writer, wait for its line for at most a second.
Outcome read_secret(const std::string &path, std::string &secret);

}  // namespace redlatch::config
