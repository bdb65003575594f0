// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Passwords that come from a pipe.
#pragma once

#include "arguments.h"

namespace redlatch::cli {

inline constexpr const char* kPasswordFileVariable = "REDLATCH_PASSWORD_FILE";

// A pipe can be read once, but each session reads the password file: read the pipes that options
// and REDLATCH_PASSWORD_FILE name now, and name files in memory in their place. These are for this
// process alone: `arguments` gets what the variable is for the command of `run`.
void keep_secrets_of_pipes(Arguments& arguments);

}  // namespace redlatch::cli
