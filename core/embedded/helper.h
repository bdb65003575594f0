// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The supervisor program `redlatch-embedded` as the library sees it: where it is, how it is
// started, and what it says when its server answers or when it gives up.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/status.h"

namespace redlatch::embedded {

// Descriptors that the program finds open.
inline constexpr int kReportFd = 3;  // it writes one line: a status and a message
inline constexpr int kAliveFd = 4;   // it is closed when the first of its processes ends
inline constexpr int kStartFd = 5;   // the file `start`, locked

inline constexpr size_t kMaxReport = 2048;

// Where the program is; empty if it is nowhere. Looked for beside this library, and where it was
// installed.
std::string find_helper();
// The folder that this library, or the program it is linked into, was loaded from.
std::string own_folder();

struct Start {
  std::string helper;
  std::string folder;
  std::string server;      // the server's binary, if it is not to be looked for
  const Descriptor *lock;  // the locked file `start`; the program unlocks it when it reports
};

// Start the program and wait for its report, at most until `limit`, or until `wake_fd` turns
// readable. No child is left that the host would have to wait for.
Outcome start_helper(const Start &start, Nanos limit, int wake_fd);

}  // namespace redlatch::embedded
