// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The first line of a file: a password.
#pragma once

#include <cstdint>
#include <string>

#include "base/password.h"

namespace redlatch {

enum class LineSource : uint8_t {
  kAny,      // a pipe is waited for, for at most a second
  kRegular,  // does not wait
};

struct SecretLine {
  Password text;  // at most kMaxPasswordBytes
  bool is_pipe = false;
  bool is_regular = false;  // and not of /dev or /proc, whose descriptors may be closed later
};

// Read the first line of `path`. @return empty, or why it failed.
std::string read_secret_line(const std::string &path, LineSource source, SecretLine &line);

}  // namespace redlatch
