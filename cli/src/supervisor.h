// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Watches over the child and the lease: passes signals on, stops the child when the lock is lost or
// cannot be kept, and returns when the child is gone and the lock was held for long enough. Main
// thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arguments.h"
#include "child.h"
#include "handles.h"
#include "lease_limits.h"
#include "lease_watch.h"
#include "reports.h"
#include "signals.h"
#include "terminal.h"
#include "timer.h"

namespace redlatch::cli {

class Supervisor {
 public:
  struct Outcome {
    int exit_code;  // The child's.
    bool is_lost;
    bool is_hold_lost;          // Only afterwards, while it was kept for --min-hold.
    std::int64_t hold_left_ms;  // The rest of --min-hold, when a signal ended it.
    bool is_recalled;           // The child was ended because of that: it leads an election.
    int ending_signal;          // One that asks this process to end has come; 0 = none.
  };

  // Everything that can fail is made here, before there is a child.
  Supervisor(const Arguments& arguments, rl_client* client, rl_lease* lease, const Signals& signals,
             Terminal& terminal, const Reports& reports);

  Outcome watch(Child& child);

 private:
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] std::int64_t hold_left_ms() const;
  void on_signal(const Signals::Event& event);
  void on_child();
  void on_child_stopped(int signal);
  void go_on();
  void name_survivors() const;

  void look();
  void check_lease();
  void check_hold();
  [[nodiscard]] int signal_recall();
  void check_recall();
  void stop_child(std::int64_t grace_ms);
  void check_stopping();
  void warn(std::int64_t remaining_ms);
  void lose(const std::string& reason, std::int64_t grace_ms);
  void arm(std::int64_t delay_ms);

  [[nodiscard]] std::string reason_to_stop(std::int64_t remaining_ms) const;
  [[nodiscard]] bool ends_by_plan(std::int64_t remaining_ms) const;
  [[nodiscard]] std::string lock_text() const;

  const std::string& name_;
  const RunOptions& options_;
  const Signals& signals_;
  const Log& log_;
  const Events& events_;
  const LeaseLimits limits_;
  const std::int64_t begin_us_;
  rl_client* client_;
  rl_lease* lease_;
  Terminal& terminal_;
  ErrorHandle error_;
  Timer timer_;
  LeaseWatch watch_;
  Child* child_ = nullptr;

  bool is_warned_ = false;
  bool is_lost_ = false;
  int ending_signal_ = 0;
  bool wants_terminal_ = false;
  std::optional<int> child_exit_code_;
  std::optional<std::int64_t> kill_at_us_;  // The child is being stopped.
  bool is_killed_ = false;
  bool is_hold_over_ = false;  // A signal or a loss ended --min-hold.
  bool is_hold_lost_ = false;
  std::int64_t renew_at_us_;  // For --renew.
  RequestHandle renewal_;
};

}  // namespace redlatch::cli
