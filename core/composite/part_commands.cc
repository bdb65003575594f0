// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "composite/part_commands.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "composite/words.h"

namespace redlatch::composite {

using compound::PartLease;
using compound::PartRequest;
using lock::Request;

namespace {

// The most serious result of a part is the result of the whole.
int weight_of(const PartRequest &part) {
  switch (part.status.load()) {
    case Status::kOk:
      return 0;
    case Status::kLost:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

PartCommands::PartCommands(const Inner &inner, compound::Table &table,
                           std::shared_ptr<Request> request, const Composite &composite)
    : Compound(table, std::move(request), nullptr), inner_(inner) {
  for (const auto &lease : composite.leases()) {
    const auto part = std::make_shared<PartRequest>(request_->op);
    part->several.is_part = true;
    part->extend_to = request_->extend_to;
    part->lease = lease;
    part->owner = this;
    parts_.push_back(part);
  }
}

PartCommands::~PartCommands() {
  for (const auto &part : parts_) part->owner = nullptr;
}

void PartCommands::start(Nanos now) noexcept {
  for (const auto &part : parts_) {
    try {
      inner_->start(part, now);
    } catch (const std::bad_alloc &) {  // it has started nothing
      const bool is_release = request_->op == Request::Op::kRelease;
      part->complete(is_release ? Status::kOutcomeUnknown : Status::kNoMemory, {});
      if (is_release) inner_->release_async(*part->lease, now);
    }
  }
  mark();
}

void PartCommands::review(Nanos) {
  const PartRequest *worst = parts_.front().get();
  for (const auto &part : parts_) {
    if (!part->is_finished()) return;
    if (weight_of(*part) > weight_of(*worst)) worst = part.get();
  }
  const Status status = worst->status.load();
  if (status == Status::kOk) return end(Status::kOk);
  std::string message = status == Status::kOutcomeUnknown
                            ? words::of_part(worst->lease->name, worst->message)
                            : lock::words::same(worst->message);
  if (status == Status::kLost && request_->op == Request::Op::kRelease) {
    lock::Lease &lease = *request_->lease;
    lease.loss = worst->lease->loss;
    lease.reason = words::part_lost(worst->lease->name, worst->lease->reason);
    message = lock::words::lost(lease.name, lease.reason);
  }
  end(status, message);
}

}  // namespace redlatch::composite
