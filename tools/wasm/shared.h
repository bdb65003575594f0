// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Shared: what the links of a client have in common.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/settings.h"
#include "driver/credentials.h"
#include "driver/log.h"
#include "driver/node_connection.h"
#include "host/random.h"
#include "lock/service.h"

namespace redlatch::wasm {

struct Shared {
  bool is_alone() const { return nodes.size() == 1 && !nodes.front().is_cluster(); }
  void note_refused(driver::NodeConnection::Refused login) {
    if (login != 0) credentials.on_refused(login);
  }

  std::vector<Settings> nodes;
  const std::optional<QuorumSettings> quorum;
  driver::Log &log;
  lock::Output &output;
  std::unique_ptr<lock::LockService> service;
  driver::Credentials credentials;
};

// For driver::open_service().
struct Randomness {
  Randomness() {
    std::array<uint8_t, 8> bytes{};
    (void)fill_random(id);
    (void)fill_random(bytes);
    for (const uint8_t byte : bytes) seed = seed << 8 | byte;
  }
  std::array<uint8_t, 16> id{};
  uint64_t seed = 0;
};

}  // namespace redlatch::wasm
