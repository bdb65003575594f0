// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// `once`: a run with a begin and an end that the server remembers.
#pragma once

#include <string>

#include "arguments.h"
#include "command_client.h"
#include "reports.h"

namespace redlatch::cli {

// The lock is held: note that a run begins. Throws a Failure; its exit code is 0 if a run of this
// period has succeeded before.
void begin_once(const CommandClient& client, const Arguments& arguments, rl_lease* lease,
                const Reports& reports);

// The child has succeeded: note that, and release the lock. The message is in client.error().
[[nodiscard]] rl_status end_once(const CommandClient& client, const RunOptions::Once& once,
                                 rl_lease* lease);

// end_once() has failed with `message`.
[[nodiscard]] std::string unnoted_words(const std::string& name, const std::string& message);

}  // namespace redlatch::cli
