// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The state of a lock on the server, as values, and its forms for people and programs.
#pragma once

#include <array>
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
    std::string candidate;  // The id of a leader; empty for any other holder.
    std::int64_t mode;
    std::int64_t since_ms;
    std::int64_t remaining_ms;
    std::int64_t permits;  // 0 = not a semaphore.
    bool is_recallable;    // Its client may only retain the lock.
  };
  struct Waiter {
    std::string token;
    std::string who;
    std::string candidate;  // The id of one that waits to lead; else empty.
    std::int64_t mode;
    std::int64_t since_ms;
  };

  // A period of `once`.
  struct Mark {
    std::string key;
    bool is_done;           // A run has succeeded.
    std::int64_t since_ms;  // When its last run began, or succeeded.
    std::int64_t remaining_ms;
    std::int64_t tries;
  };

  explicit LockReport(const rl_info* info);

  [[nodiscard]] bool is_free() const { return state == RL_STATE_FREE; }
  [[nodiscard]] bool is_shared() const {
    return !holders.empty() && holders.front().mode == RL_MODE_READ;
  }
  // A value that no lock library of today leaves: probably the name has another use.
  [[nodiscard]] bool is_endless() const { return state == RL_STATE_FOREIGN && remaining_ms < 0; }
  [[nodiscard]] bool is_reentrant() const { return !owner.empty(); }
  [[nodiscard]] bool has_permits() const { return used > 0; }
  [[nodiscard]] bool has_cap() const { return cap >= 0; }
  // A free name with a cap is one, too.
  [[nodiscard]] bool is_semaphore() const { return has_permits() || (is_free() && has_cap()); }
  // The longest lease of the holders, if they are of redlatch; 0 = not known. A holder that is
  // removed now works until then at the latest.
  [[nodiscard]] std::int64_t longest_lease_ms() const;
  [[nodiscard]] std::vector<std::string> tokens() const;  // One for each holder.

  std::string name;
  std::string type;
  std::string owner;  // Empty unless the lock is reentrant.
  std::int64_t state;
  std::int64_t remaining_ms;
  std::int64_t fence;
  std::int64_t holding_count;  // Readers, or holds of the owner; there may be more than `holders`.
  std::int64_t waiting_count;
  std::int64_t server_ms;
  // For a semaphore.
  std::int64_t used;              // Permits that are out.
  std::int64_t limit;             // That of the last client that got permits.
  std::int64_t cap;               // -1 = none.
  std::int64_t cap_remaining_ms;  // -1 = no end of its own.
  std::vector<Holder> holders;
  std::vector<Waiter> waiters;
  std::vector<Mark> marks;  // The latest run first.
};

// "succeeded 3m00s ago, remembered for 51m00s more".
[[nodiscard]] std::string mark_in_words(const LockReport::Mark& mark, std::int64_t server_ms);

// "web-3/4121 (label: run=1234 ./report.sh)"; the form of a holder in all messages.
[[nodiscard]] std::string who_in_words(const std::string& who, const std::string& label);

// The holder of a name without an end, and the advice for a name that has another use.
inline constexpr const char* kEndless = "data of another program, or a lock without end";
inline constexpr const char* kOtherName = ": use another name, or --namespace";

// "by 2026-11-21T10:31:32Z (25s)": the latest end of a holder that is removed now.
[[nodiscard]] std::string stop_text(std::int64_t server_ms, std::int64_t lease_ms);

// For programs.
[[nodiscard]] const char* state_name(std::int64_t state);

// A line of a table, such as "  holder    web-3/4121", with its end.
[[nodiscard]] std::string report_line(const char* title, const std::string& text);

// The columns of `ls`, in their order.
inline constexpr std::array<const char*, 7> kLockColumns = {"LOCK",  "MODE",  "HOLDER", "HELD FOR",
                                                            "LEASE", "FENCE", "WAITING"};
using LockRow = std::array<std::string, kLockColumns.size()>;

// For people: "–" for a missing value.
[[nodiscard]] LockRow report_row(const LockReport& report);

// Some lines, each with its end. `is_colored`: the state stands out.
[[nodiscard]] std::string report_table(const LockReport& report, bool is_colored);

// One object, without a line end. `server` is the URL without password.
[[nodiscard]] std::string report_json(const LockReport& report, const std::string& server);

// One line with its end: name, state, mode, holder (readers, owner), held for and lease in ms,
// fence, waiting; "-" for a missing value.
[[nodiscard]] std::string report_tsv(const LockReport& report);

// "held by web-3/4121 for 00:12:40, lease until 2026-11-21T10:31:07Z, 2 waiting".
[[nodiscard]] std::string report_sentence(const LockReport& report);

}  // namespace redlatch::cli
