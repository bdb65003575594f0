// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Asks for the password on the terminal.
#pragma once

#include <string>

namespace redlatch::cli {

// What was typed, unseen. A signal ends the process, with the terminal as it was. Throws UsageError
// where there is no terminal.
[[nodiscard]] std::string ask_password();

}  // namespace redlatch::cli
