// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Asking the holders of a lock to finish.
#pragma once

#include <cstdint>

#include "arguments.h"
#include "command_client.h"

namespace redlatch::cli {

// Recalls the first name, for the reason of `--reason`. @return the number of holders whose client
// has heard it.
[[nodiscard]] std::int64_t ask_to_finish(const CommandClient& client, const Arguments& arguments);

}  // namespace redlatch::cli
