// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Service: the LockService of a runtime, and the settings that it was opened with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "lock/service.h"

namespace redlatch::runtime {

class Service {
 public:
  // Locks on one server, or with `quorum` on most of several.
  Service(std::vector<Settings> nodes, std::optional<QuorumSettings> quorum);

  std::span<const Settings> nodes() const { return nodes_; }
  const Settings &settings() const { return nodes_.front(); }
  bool is_quorum() const { return quorum_.has_value(); }
  const QuorumSettings &quorum_settings() const { return *quorum_; }
  // The longest command timeout.
  Nanos timeout() const { return timeout_; }

  // Throws std::bad_alloc.
  void open(std::span<const uint8_t, 16> id, uint64_t seed, lock::Output &output);
  bool is_open() const { return service_ != nullptr; }
  lock::LockService *operator->() const { return service_.get(); }
  // The only server is a node of a cluster. Throws std::bad_alloc, and then nothing has changed.
  void become_cluster(std::span<const uint8_t, 16> id, uint64_t seed, lock::Output &output);
  // How many nodes are waited for at the shutdown, of so many: each node of a cluster has locks of
  // its own.
  size_t enough_drained(size_t node_count) const;

 private:
  std::vector<Settings> nodes_;  // constant, except that a server may turn out to be of a cluster
  const std::optional<QuorumSettings> quorum_;
  const Nanos timeout_;
  std::unique_ptr<lock::LockService> service_;
};

}  // namespace redlatch::runtime
