// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "awaited_lock.h"

#include <algorithm>
#include <utility>

namespace redlatch::cli {
namespace {

template <typename Clients>
bool has_client(const Clients& clients, const std::string& name) {
  return std::any_of(clients.begin(), clients.end(),
                     [&](const auto& client) { return client.who == name; });
}

}  // namespace

AwaitedLock::AwaitedLock(const CommandClient& client, std::vector<std::string> names)
    : client_(client), names_(std::move(names)) {
  std::sort(names_.begin(), names_.end());
}

std::optional<LockReport> AwaitedLock::look() {
  const std::string own_name = client_.holder();
  std::optional<LockReport> report = report_on(last_);
  const auto is_found = [&] { return !report || has_client(report->waiters, own_name); };
  if (names_.size() == 1 || is_found()) return report;
  for (last_ = 0;; ++last_) {
    report = report_on(last_);
    const bool is_last = last_ + 1 == names_.size();
    if (is_last || is_found() || !has_client(report->holders, own_name)) return report;
  }
}

std::optional<LockReport> AwaitedLock::report_on(std::size_t index) const {
  const InfoHandle info = client_.try_inspect(names_[index]);
  return info ? std::optional<LockReport>(info.get()) : std::nullopt;
}

}  // namespace redlatch::cli
