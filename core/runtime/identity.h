// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What a node of a Redlock says of itself.
#pragma once

#include "base/settings.h"
#include "base/status.h"
#include "engine/service.h"
#include "io/connection.h"

namespace redlatch::runtime {

// Ask over a fresh connection, for at most one command time limit. A node that may not say it is no
// failure here. Throws std::bad_alloc.
Outcome ask_identity(io::Connection &connection, const Settings &settings, int wake_fd,
                     engine::ServerFacts &facts);

}  // namespace redlatch::runtime
