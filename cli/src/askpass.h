// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Asks for the password on the terminal.
#pragma once

#include <string>

namespace redlatch::cli {

// The typed password, without echo. A signal ends the process and restores the terminal. Throws
// UsageError without a terminal.
[[nodiscard]] std::string ask_password();

}  // namespace redlatch::cli
