// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Process: what a caller sees of the product in its own simulated process, whether that locks on
// one server or on a quorum of several.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "engine/subjects.h"

namespace redlatch::sim {

class Process {
 public:
  using RequestPtr = std::shared_ptr<engine::Request>;

  virtual ~Process() = default;

  // Calls of users.
  virtual void start(const RequestPtr &request, std::function<void()> done) = 0;
  virtual void cancel(engine::Request &request) = 0;
  virtual void abandon(engine::Lease &lease) = 0;
  virtual bool is_held(const engine::Lease &lease) const = 0;

  // It stands still until then.
  virtual bool is_paused() const = 0;
  virtual Nanos paused_until() const = 0;
};

}  // namespace redlatch::sim
