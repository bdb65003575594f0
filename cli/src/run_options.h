// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The options of `run` as values, and their parser.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exit_code.h"
#include "option_flags.h"
#include "redlatch/redlatch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace redlatch::cli {

struct RunOptions {
  std::vector<std::string> words;  // The child's.
  std::string label;

  bool is_shared = false;
  std::string owner;  // Empty = the lock is not reentrant.
  // Locks that are held with NAME.
  struct Other {
    std::string name;
    bool is_shared;
  };
  std::vector<Other> others;
  std::int64_t permits = 1;
  std::int64_t limit = 0;  // 0 = the lock is not a semaphore.

  // The options that only `once` has.
  struct Once {
    std::int64_t every_ms = 0;
    std::int32_t tries = 3;
    std::string key;  // Empty = none.
    bool forgets = false;
  };
  std::optional<Once> once;

  // The options that only `elect` has.
  struct Elect {
    std::string id;
    bool restarts = false;
    std::string http;  // An address that parse_http_address() accepts; empty = none.
    bool is_http_public = false;
  };
  std::optional<Elect> elect;

  std::int64_t start_jitter_ms = 0;
  std::int64_t wait_ms = -1;
  bool skips_busy = false;  // A busy lock is not a failure.
  int conflict_exit_code = kExitNotAcquired;

  OptionFlags lock_options;
  std::int64_t ttl_ms = RL_DEFAULT_TTL_MS;
  bool is_renewed = true;
  std::int64_t renew_every_ms = 0;  // 0 = as often as the library does by itself.
  std::int64_t min_hold_ms = 0;
  std::int64_t max_hold_ms = 0;  // 0 = no limit.

  // The signals for a loss, and for a recall.
  struct On {
    int lost_signal = SIGTERM;  // 0 = the child continues.
    int recall_signal = 0;      // 0 = none.
    bool ignores_recalls = false;
  };
  On on;
  std::int64_t kill_after_ms = 0;
  bool preserves_status = false;

  bool is_foreground = false;
  bool forwards_signals = true;
  int status_fd = -1;

  // As shown to the child and in reports.
  [[nodiscard]] const char* mode() const {
    if (limit > 0) return "permits";
    return is_shared ? "shared" : "exclusive";
  }

  // The longest validity of a lease, right after the grant.
  [[nodiscard]] std::int64_t longest_ttl_ms() const {
    return max_hold_ms > 0 && max_hold_ms < ttl_ms ? max_hold_ms : ttl_ms;
  }
};

// `option` is wrong: "--tries must be .. (got '0')".
[[nodiscard]] UsageError must_be(const std::string& option, const std::string& allowed,
                                 const std::string& text);

// The value of `option` in milliseconds. Throws UsageError.
[[nodiscard]] std::int64_t duration(const std::string& option, const std::string& text);

class RunParser {
 public:
  // Must outlive the parsing.
  void add_to(CLI::App& run);
  // Those of `run` that `once` has, too.
  void add_to_once(CLI::App& once);
  // Those that `elect` has, too.
  void add_to_elect(CLI::App& elect);

  // The parsed options, and the child's `words`. Throws UsageError.
  [[nodiscard]] RunOptions checked(const std::vector<std::string>& words) const;

 private:
  using Text = std::optional<std::string>;  // As it was typed.

  void add_mode_options(CLI::App& run);
  void add_waiting_options(CLI::App& run);
  void add_min_hold_option(CLI::App& run);
  void add_holding_options(CLI::App& run, const char* ways_of_loss);
  void add_recall_option(CLI::App& run);
  void add_preserve_option(CLI::App& run);
  void add_child_options(CLI::App& run);
  void add_flock_options(CLI::App& run);

  void check_mode(RunOptions& options) const;
  void check_permits(RunOptions& options) const;
  void check_others(RunOptions& options) const;
  void check_waiting(RunOptions& options) const;
  void check_holding(RunOptions& options) const;
  void check_loss(RunOptions& options) const;
  void check_recall(RunOptions& options) const;
  [[nodiscard]] std::vector<std::string> checked_words(const std::vector<std::string>& words) const;
  [[nodiscard]] std::string checked_label(const RunOptions& options) const;

  OptionFlags lock_options_;
  bool is_exclusive_ = false;
  bool is_shared_ = false;
  Text permits_;
  std::vector<std::string> also_;
  std::vector<std::string> also_shared_;
  bool is_nonblock_ = false;
  Text wait_;
  Text if_busy_;
  std::optional<int> conflict_exit_code_;
  Text start_jitter_;
  Text renew_;
  Text min_hold_;
  Text on_lost_;
  Text on_recall_;
  Text kill_after_;
  bool preserves_status_ = false;
  bool is_foreground_ = false;
  bool forwards_no_signals_ = false;
  Text command_;
  std::vector<std::string> labels_;
  bool hides_command_ = false;
  std::optional<int> status_fd_;
  bool is_closing_ = false;
  bool is_not_forking_ = false;
};

}  // namespace redlatch::cli
