// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What is said on a fresh connection before it is used: protocol, user, database, scripts, channel.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "engine/engine.h"
#include "io/connection.h"

namespace redlatch::client {

// Blocks until `limit`, or until `wake_fd` turns readable. kDenied and kUnsupported will not pass
// by trying again; the others may.
Outcome shake_hands(io::Connection &connection, const Settings &settings,
                    const std::string &channel, Nanos limit, int wake_fd,
                    engine::ServerFacts &facts);

}  // namespace redlatch::client
