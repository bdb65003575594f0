// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// take_message turns a message that a server sends without having been asked, such as a grant, into
// an event of the service.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/reply.h"
#include "lock/service.h"

namespace redlatch::driver {

// `is_sharded`: the server has sharded channels. With RESP2 replies on the connection for messages
// look like messages: they are ignored. Throws std::bad_alloc.
void take_message(lock::LockService &service, size_t node, bool is_sharded, const Reply &message,
                  Nanos now);

}  // namespace redlatch::driver
