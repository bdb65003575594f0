// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// PartOwner: what a part of LockClient asks of the client.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace redlatch::lock {

struct Request;

class PartOwner {
 public:
  virtual void finish(Request &request, Status status, std::string_view message) noexcept = 0;
  // The server's clock, in the answer to a command sent at `sent_at`; 0: not known.
  virtual void note_time(Nanos sent_at, Nanos now, int64_t server_ms) = 0;
  // A machine met an event that its state does not allow. @return the message for callers.
  virtual std::string_view report_defect(const char *machine) noexcept = 0;

 protected:
  ~PartOwner() = default;
};

}  // namespace redlatch::lock
