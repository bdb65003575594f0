// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The first line of a file: a password. A file is replaced when its password is rotated, so it is
// read again for each connection; a pipe can be read only once.
#pragma once

#include <string>

#include "base/password.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::net {

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

// Read the password files of the server and of its sentinels again, unless they were pipes. A
// failure is kUnavailable, because the file may be there for the next attempt. Reads a file, so it
// is called by threads that may block. Throws std::bad_alloc.
Outcome read_passwords_again(Settings &settings);

}  // namespace redlatch::net
