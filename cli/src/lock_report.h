// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What the server knows about a lock, as values, and its forms for people and programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redlatch/redlatch.h"

namespace redlatch::cli {

struct LockReport {
  struct Holder {
    std::string token;
    std::string who;
    std::string label;
    std::int64_t since_ms;
    std::int64_t remaining_ms;
  };
  struct Waiter {
    std::string token;
    std::int64_t since_ms;
  };

  explicit LockReport(const rl_info* info);

  [[nodiscard]] bool is_free() const { return state == RL_STATE_FREE; }

  std::string name;
  std::string type;
  std::int64_t state;
  std::int64_t remaining_ms;
  std::int64_t fence;
  std::int64_t waiting_count;
  std::int64_t server_ms;
  std::vector<Holder> holders;
  std::vector<Waiter> waiters;
};

// Some lines, each with its end.
[[nodiscard]] std::string report_table(const LockReport& report);

// One line with its end. `server` is the URL without password.
[[nodiscard]] std::string report_json(const LockReport& report, const std::string& server);

// "held by web-3 (pid 4121) for 00:12:40, lease until 10:31:07Z, 2 waiting".
[[nodiscard]] std::string report_sentence(const LockReport& report);

}  // namespace redlatch::cli
