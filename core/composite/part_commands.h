// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// PartCommands: a release or an extension of a lease of several names: one command for each part,
// all at once. It ends when all have ended.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "composite/composite.h"
#include "compound/compound.h"
#include "lock/request.h"

namespace redlatch::composite {

class PartCommands final : public compound::Compound {
 public:
  // `inner` and `table` outlive it. Throws std::bad_alloc, and then nothing has changed.
  PartCommands(const Inner &inner, compound::Table &table, std::shared_ptr<lock::Request> request,
               const Composite &composite);
  ~PartCommands() override;

  void start(Nanos now) noexcept;
  void review(Nanos now) override;
  void on_no_memory(Nanos) noexcept override { end(Status::kOutcomeUnknown); }
  void fail(Status status, std::string_view message, Nanos) noexcept override {
    end(status, message);
  }

 private:
  const Inner &inner_;
  std::vector<std::shared_ptr<compound::PartRequest>> parts_;
};

}  // namespace redlatch::composite
