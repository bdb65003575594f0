// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Exit codes of the command, and the exception that carries one to main(). Codes from 64 to 78 are
// those of sysexits.h; 126, 127 and 128 + n are the shell's.
#pragma once

#include <string>
#include <utility>

#include "redlatch/redlatch.h"

namespace redlatch::cli {

enum ExitCode : int {
  kExitHeld = 0,  // `status`: every lock is held.
  kExitFree = 1,  // `status`: one is free. `force-release`: nothing was changed. `limit`: no cap.
                  // `leader`: the election has none.
  kExitNoneFound = 1,     // `ls --exit-code`
  kExitFindings = 1,      // `doctor`: something warns.
  kExitFailures = 2,      // `doctor`: something fails.
  kExitUsage = 64,        // Flags, durations, names, URLs.
  kExitUnavailable = 69,  // The server cannot be reached, or does not answer.
  kExitSoftware = 70,     // A bug of ours.
  kExitSystem = 71,       // The system has no memory, thread, process or descriptor left.
  kExitNotAcquired = 75,  // Busy, or the wait was used up.
  kExitDenied = 77,       // User, password or rights.
  kExitConfig = 78,       // An unsuitable server, file or key.
  kExitLost = 79,         // The lock was lost while the command ran.
  kExitNotExecutable = 126,
  kExitNotFound = 127,
  kExitSignal = 128,  // Plus the number of the signal.
};

// Ends the command: main() prints `text`, if there is any, and exits with `exit_code`.
struct Failure {
  int exit_code;
  std::string text;
};

// The call itself is wrong.
struct UsageError : Failure {
  explicit UsageError(std::string what) : Failure{kExitUsage, std::move(what)} {}
};

// True if the call itself is wrong. Reported even under --quiet: no repetition could succeed.
inline bool is_wrong_call(int exit_code) {
  return exit_code == kExitUsage || exit_code == kExitNotExecutable || exit_code == kExitNotFound;
}

inline int exit_code_of(rl_status status) {
  switch (status) {
    case RL_OK:
      return 0;
    case RL_BUSY:
    case RL_TIMEOUT:
      return kExitNotAcquired;
    case RL_E_NOT_HELD:
      return kExitFree;
    case RL_E_LOST:
      return kExitLost;
    case RL_E_UNAVAILABLE:
    case RL_E_OUTCOME_UNKNOWN:
    case RL_E_NOT_REPLICATED:  // Not as busy: no other host has the lock.
    case RL_E_SERVER:
      return kExitUnavailable;
    case RL_E_DENIED:
      return kExitDenied;
    case RL_E_UNSUPPORTED:
    case RL_E_WRONG_TYPE:
      return kExitConfig;
    case RL_E_INVALID:
      return kExitUsage;
    case RL_E_NO_MEMORY:
      return kExitSystem;
    default:
      return kExitSoftware;
  }
}

}  // namespace redlatch::cli
