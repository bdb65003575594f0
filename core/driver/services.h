// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Services: makes the LockService for the URLs of a client. A client of one server that is found to
// be a node of a cluster becomes a client of that cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/settings.h"
#include "driver/log.h"
#include "lock/service.h"

namespace redlatch::driver {

// Locks on one server, or with `quorum` on most of several; else it is NULL. `id` and `seed` are
// random. `nodes`, `quorum` and `output` outlive the service. Throws std::bad_alloc.
std::unique_ptr<lock::LockService> open_service(std::span<const Settings> nodes,
                                                const QuorumSettings *quorum,
                                                std::span<const uint8_t, 16> id, uint64_t seed,
                                                lock::Output &output);

// The only server of `service`, which open_service() has made, is a node of a cluster, and is not
// connected. Waiting callers keep waiting. Throws std::bad_alloc, and then nothing has changed.
void become_cluster(lock::LockService &service, Settings &settings, std::span<const uint8_t, 16> id,
                    uint64_t seed, Log &log);

}  // namespace redlatch::driver
