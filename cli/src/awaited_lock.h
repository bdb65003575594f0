// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// AwaitedLock: which of its locks a `run` waits for. The library acquires several names one after
// the other, in the order of their bytes, and holds those before the one that it waits for.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "command_client.h"
#include "lock_report.h"

namespace redlatch::cli {

class AwaitedLock {
 public:
  // For one server. `names`: at least one.
  AwaitedLock(const CommandClient& client, std::vector<std::string> names);

  // Asks the server about the locks in order, and first about the last one that was found. Empty:
  // no answer.
  [[nodiscard]] std::optional<LockReport> look();

 private:
  [[nodiscard]] std::optional<LockReport> report_on(std::size_t index) const;

  const CommandClient& client_;
  std::vector<std::string> names_;
  std::size_t last_ = 0;
};

}  // namespace redlatch::cli
