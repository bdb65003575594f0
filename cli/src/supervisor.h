// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Watches over the child and the lease: passes signals on, stops the child when the lock is lost or
// cannot be kept, and returns when the child is gone. Main thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "arguments.h"
#include "child.h"
#include "handles.h"
#include "lease_limits.h"
#include "log.h"
#include "loss_watch.h"
#include "signals.h"
#include "terminal.h"
#include "timer.h"

namespace redlatch::cli {

class Supervisor {
 public:
  struct Outcome {
    int exit_code;  // The child's.
    bool is_lost;
  };

  // Everything that can fail is made here, before there is a child.
  Supervisor(const Arguments& arguments, rl_lease* lease, const Signals& signals,
             Terminal& terminal, const Log& log);

  Outcome watch(Child& child);

 private:
  void on_signal(int signal);
  void on_child();
  void on_child_stopped(int signal);
  void go_on();

  void look_at_lease();
  void warn(std::int64_t remaining_ms);
  void stop_child(const std::string& reason, std::int64_t grace_ms);
  void look_at_stopping();

  [[nodiscard]] std::string lock_text() const;

  const Arguments& arguments_;
  const Signals& signals_;
  const Log& log_;
  const LeaseLimits limits_;
  rl_lease* lease_;
  Terminal& terminal_;
  ErrorHandle error_;
  Timer timer_;
  LossWatch loss_;
  Child* child_ = nullptr;

  bool is_warned_ = false;
  bool wants_terminal_ = false;
  std::optional<int> child_exit_code_;
  std::optional<std::int64_t> kill_at_us_;  // The child is being stopped because the lock is lost.
  bool is_killed_ = false;
};

}  // namespace redlatch::cli
