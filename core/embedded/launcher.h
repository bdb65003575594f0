// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Finds and starts the supervisor program `redlatch-embedded`, and reads its report, which it sends
// when its server answers or when it gives up.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "host/descriptor.h"

namespace redlatch::embedded {

// Descriptors that the program inherits.
inline constexpr int kReportFd = 3;  // for one line: a status and a message
inline constexpr int kAliveFd = 4;   // closed when the first process of the program ends
inline constexpr int kStartFd = 5;   // the file `start`, locked

inline constexpr size_t kMaxReport = 2048;

// The path of the program, beside this library or where it was installed; empty if not found.
std::string find_supervisor();
// The folder that this library, or the program it is linked into, was loaded from.
std::string own_folder();

struct Start {
  std::string supervisor;
  std::string folder;
  std::string server;      // the server's binary; empty: searched for
  const Descriptor *lock;  // the locked file `start`; the program unlocks it when it reports
};

// Start the program and wait for its report, at most until `limit`, or until `wake_fd` turns
// readable. No child process is left.
Outcome start_supervisor(const Start &start, Nanos limit, int wake_fd);

}  // namespace redlatch::embedded
