// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The object behind rl_info: a lock, an embedded server, or the nodes of a client.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls.h"

struct rl_info {
  std::string name;
  redlatch::runtime::Info data;
  bool is_of_server = false;
  redlatch::runtime::ServerInfo server;
  std::vector<redlatch::NodeStatus> nodes;  // of rl_client_info() and rl_client_check()

  // Takes the answer of a finished inspection.
  void take(redlatch::runtime::operate::Inspect &inspection) noexcept {
    name = std::move(inspection.name);
    data = std::move(inspection.info);
  }

  size_t finding_count() const {
    size_t count = 0;
    for (const redlatch::NodeStatus &node : nodes) count += node.findings.size();
    return count;
  }

  int32_t state() const {
    if (data.type == "none") return RL_STATE_FREE;
    if (data.type != "string" && data.value.empty()) return RL_STATE_NO_LOCK;
    if (redlatch::runtime::is_held_by_client(data)) return RL_STATE_HELD;
    const bool may_be_shared = data.value == redlatch::runtime::kShared || data.has_permits();
    const bool has_expired_readers = may_be_shared && !is_shared();
    return has_expired_readers ? RL_STATE_FREE : RL_STATE_FOREIGN;
  }
  // Held by readers, or by a reentrant owner.
  bool is_shared() const { return data.holder_count > 0; }
  bool is_read() const { return data.value == redlatch::runtime::kShared; }
  // Without a description the fence shows it: it is made from the server's clock at the grant.
  int64_t since_ms() const {
    if (data.since_ms > 0 || is_shared() || state() != RL_STATE_HELD) return data.since_ms;
    const int64_t minted_ms = data.fence / 1000;
    return minted_ms <= data.server_ms ? minted_ms : 0;
  }
  bool has_row(int32_t part, int32_t index) const {
    return index >= 0 && index < rl_info_count(this, part);
  }
};

namespace redlatch::capi {

// Run an inspection, and wait for it. @return its answer; nullptr: `err` says why.
template <class Fill>
rl_info *run_for_info(const rl_client *client, Request::What what, rl_error *err,
                      const Fill &fill) {
  return guarded<rl_info *>(err, nullptr, [&]() -> rl_info * {
    // Before the server is asked, as the lease of an acquire.
    auto info = std::make_unique<rl_info>();
    std::shared_ptr<Request> inspection;
    const auto keep = [&](const std::shared_ptr<Request> &request) {
      inspection = request;
      return fill(*request);
    };
    if (run(client, what, err, keep) != RL_OK) return nullptr;
    info->take(inspection->as<runtime::operate::Inspect>());
    return info.release();
  });
}

}  // namespace redlatch::capi
