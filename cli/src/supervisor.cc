// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "supervisor.h"

#include <algorithm>

#include "duration.h"
#include "exit_code.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// While the group of a dead child is being stopped nobody tells us about its other members.
constexpr std::int64_t kGroupLookMs = 20;

bool is_job_control(int signal) {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

Supervisor::Supervisor(const Arguments& arguments, rl_lease* lease, const Signals& signals,
                       Terminal& terminal, const Log& log)
    : arguments_(arguments),
      signals_(signals),
      log_(log),
      limits_(arguments.lease_ms, arguments.kill_after_ms),
      lease_(lease),
      terminal_(terminal),
      error_(not_null(rl_error_new())),
      loss_(lease) {}

Supervisor::Outcome Supervisor::watch(Child& child) {
  child_ = &child;
  wants_terminal_ = terminal_.is_given();
  on_child();
  look_at_lease();
  while (!child_exit_code_ || (kill_at_us_ && !is_killed_ && child.living_count() > 0)) {
    on_signal(signals_.wait());
    look_at_lease();
  }
  terminal_.take_back();
  const int count = child.living_count();
  if (count > 0 && !is_killed_) {
    log_.say("the command has ended, but " + std::to_string(count) +
             (count == 1 ? " process" : " processes") + " of its group " +
             std::to_string(child.group()) + " still run, without the lock");
  }
  child.reap();
  return {*child_exit_code_, kill_at_us_.has_value()};
}

void Supervisor::on_signal(int signal) {
  if (signal == SIGCHLD) {
    on_child();
  } else if (signal == SIGCONT) {
    go_on();
  } else if (signal != 0 && !child_exit_code_) {
    child_->pass_on(signal);
  }
}

void Supervisor::on_child() {
  const Child::Change change = child_->poll();
  if (change.exit_code) child_exit_code_ = change.exit_code;
  if (change.stop_signal != 0) on_child_stopped(change.stop_signal);
}

void Supervisor::on_child_stopped(int signal) {
  if (!terminal_.exists() || !is_job_control(signal)) return;  // We go on, and keep the lock.
  if (signal != SIGTSTP) {
    wants_terminal_ = true;
    if (terminal_.is_ours()) {
      go_on();
      return;
    }
  }
  // The shell must see its job stopped, or nobody could type. Nothing renews the lock meanwhile.
  terminal_.take_back();
  log_.say("stopped; " + lock_text() + " is not renewed until the job goes on, and ends in " +
           seconds_text(rl_lease_remaining_ms(lease_)));
  Signals::stop_self(signal);
  go_on();
}

// The child goes on only after a look at the lease: while we were stopped it may have run out.
void Supervisor::go_on() {
  look_at_lease();
  if (child_exit_code_) return;
  if (wants_terminal_ && terminal_.is_ours()) terminal_.give(child_->group());
  child_->signal(SIGCONT);
}

void Supervisor::look_at_lease() {
  if (kill_at_us_) {
    look_at_stopping();
    return;
  }
  if (child_exit_code_) return;
  const std::int64_t remaining_ms = rl_lease_remaining_ms(lease_);
  if (rl_lease_check(lease_, error_.get()) != RL_OK) {
    stop_child(loss_reason(rl_error_message(error_.get())), limits_.kill_after_ms);
  } else if (remaining_ms <= limits_.stop_below_ms) {
    stop_child("not renewed in time, its lease ends in " + seconds_text(remaining_ms),
               limits_.grace_ms(remaining_ms));
  } else if (remaining_ms <= limits_.warn_below_ms) {
    warn(remaining_ms);
    timer_.arm(remaining_ms - limits_.stop_below_ms);
  } else {
    if (is_warned_) log_.say(lock_text() + " is renewed again");
    is_warned_ = false;
    timer_.arm(remaining_ms - std::max(limits_.warn_below_ms, limits_.stop_below_ms));
  }
}

void Supervisor::warn(std::int64_t remaining_ms) {
  if (is_warned_) return;
  is_warned_ = true;
  log_.say("cannot renew " + lock_text() + ", its lease ends in " + seconds_text(remaining_ms) +
           "; still trying, and the command is stopped in " +
           seconds_text(remaining_ms - limits_.stop_below_ms));
}

void Supervisor::stop_child(const std::string& reason, std::int64_t grace_ms) {
  // The signal first: every line of text could wait for a slow reader.
  child_->signal(SIGTERM);
  child_->signal(SIGCONT);
  kill_at_us_ = now_us() + grace_ms * 1000;
  timer_.arm(grace_ms);
  log_.say("lost " + lock_text() + ": " + reason + "; sent SIGTERM to process group " +
           std::to_string(child_->group()));
}

void Supervisor::look_at_stopping() {
  if (is_killed_) return;
  const std::int64_t left_us = *kill_at_us_ - now_us();
  if (left_us > 0) {
    const std::int64_t left_ms = left_us / 1000 + 1;
    timer_.arm(child_exit_code_ ? std::min(left_ms, kGroupLookMs) : left_ms);
    return;
  }
  child_->signal(SIGKILL);
  is_killed_ = true;
  log_.say("process group " + std::to_string(child_->group()) +
           " did not end in time; sent SIGKILL");
}

std::string Supervisor::lock_text() const {
  return "lock " + in_quotes(arguments_.names.front()) + " (fence " +
         std::to_string(rl_lease_fence(lease_)) + ")";
}

}  // namespace redlatch::cli
