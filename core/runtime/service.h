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
#include "base/thread_annotations.h"
#include "driver/log.h"
#include "lock/service.h"
#include "runtime/runtime_mutex.h"

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
  void open(std::span<const uint8_t, 16> id, uint64_t seed, lock::Output &output)
      REQUIRES(runtime_mutex);
  bool is_open() const REQUIRES(runtime_mutex) { return service_ != nullptr; }
  lock::LockService *operator->() const REQUIRES(runtime_mutex) { return service_.get(); }
  lock::LockService &operator*() const REQUIRES(runtime_mutex) { return *service_; }
  // The only server is a node of a cluster. Throws std::bad_alloc, and then nothing has changed.
  void become_cluster(std::span<const uint8_t, 16> id, uint64_t seed, driver::Log &log)
      REQUIRES(runtime_mutex);

 private:
  // A server may turn out to be one of a cluster.
  std::vector<Settings> nodes_ UNGUARDED("the rest is constant, and alone read without the mutex");
  const std::optional<QuorumSettings> quorum_;
  const Nanos timeout_;
  std::unique_ptr<lock::LockService> service_ GUARDED_BY(runtime_mutex);
};

}  // namespace redlatch::runtime
