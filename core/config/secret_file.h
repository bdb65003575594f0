// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A secret in a file, as containers mount it. It does not show in a list of processes.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/limits.h"
#include "base/password.h"
#include "base/status.h"

namespace redlatch::config {

// By path: what came from pipes, which can be read only once.
using PipeSecrets = std::map<std::string, Password, std::less<>>;

struct Secret {
  Password text;               // at most kMaxPasswordBytes
  bool is_read_again = false;  // at each connect: it came from a file that stays
};

// Read the first line of `path` to `secret`. If `path` is a pipe, wait for a writer and its line
// for at most a second, and keep the line in `of_pipes`.
Outcome read_secret(const std::string &path, Secret &secret, PipeSecrets &of_pipes);

}  // namespace redlatch::config
