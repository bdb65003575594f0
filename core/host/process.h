// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The process and the machine that it runs on.
#pragma once

#include <cstdint>
#include <string>

namespace redlatch {

// The variable of the environment; nullptr if it is not set. Valid until the environment changes.
const char *environment_variable(const char *name);
// Empty if the machine has none.
std::string host_name();
int64_t process_number();
// The user with whose rights the process runs.
int64_t user_number();

}  // namespace redlatch
