// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "supervisor.h"

#include <algorithm>

#include "duration.h"
#include "exit_code.h"
#include "line_writer.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// While the group of a dead child is being stopped, no signal reports its other members.
constexpr std::int64_t kGroupLookMs = 20;

bool is_job_control(int signal) {
  return signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

}  // namespace

Supervisor::Supervisor(const Arguments& arguments, rl_client* client, rl_lease* lease,
                       const Signals& signals, Terminal& terminal, const Reports& reports)
    : name_(arguments.names.front()),
      options_(arguments.run),
      signals_(signals),
      log_(reports.log),
      events_(reports.events),
      limits_(options_),
      begin_us_(now_us()),
      client_(client),
      lease_(lease),
      terminal_(terminal),
      error_(not_null(rl_error_new())),
      watch_(lease, !options_.on.ignores_recalls || options_.status_fd >= 0),
      renew_at_us_(begin_us_ + options_.renew_every_ms * 1000) {}

Supervisor::Outcome Supervisor::watch(Child& child) {
  child_ = &child;
  wants_terminal_ = terminal_.is_given();
  on_child();
  look();
  while (!is_over()) {
    on_signal(signals_.wait());
    look();
    log_.say_library_lines(client_);
  }
  terminal_.take_back();
  name_survivors();
  child.reap();
  const bool is_recalled = kill_at_us_ && !is_lost_;
  return {*child_exit_code_, is_lost_,      is_hold_lost_, is_hold_over_ ? hold_left_ms() : 0,
          is_recalled,       ending_signal_};
}

bool Supervisor::is_over() const {
  if (!child_exit_code_) return false;
  if (kill_at_us_) return is_killed_ || child_->is_all_gone();
  return is_lost_ || is_hold_over_ || hold_left_ms() <= 0;
}

std::int64_t Supervisor::hold_left_ms() const {
  return options_.min_hold_ms - (now_us() - begin_us_) / 1000;
}

void Supervisor::name_survivors() const {
  const int count = child_->living_count();
  if (count == 0 || is_killed_) return;
  log_.say("the command has ended, but " + std::to_string(count) +
           (count == 1 ? " process" : " processes") + " of its group " +
           std::to_string(child_->id()) +
           (count == 1 ? " still runs, without the lock" : " still run, without the lock"));
}

void Supervisor::on_signal(const Signals::Event& event) {
  if (ends_wait(event.signal)) ending_signal_ = event.signal;
  if (event.signal == SIGCHLD) {
    on_child();
  } else if (event.signal == SIGCONT) {
    go_on();
  } else if (child_exit_code_) {
    is_hold_over_ = is_hold_over_ || ends_wait(event.signal);
  } else if (event.signal != 0 && options_.forwards_signals) {
    // In the foreground the child gets the keys of the terminal by itself.
    if (options_.is_foreground && event.is_from_kernel) return;
    child_->forward(event.signal);
    log_.trace("passed " + signal_name(event.signal) + " on to " + child_->words());
  }
}

void Supervisor::on_child() {
  const Child::Change change = child_->poll();
  if (change.exit_code && !child_exit_code_) {
    child_exit_code_ = change.exit_code;
    const int signal = *change.exit_code - kExitSignal;
    // Ctrl-C goes to the child alone if it has the terminal.
    if (terminal_.is_given() && (signal == SIGINT || signal == SIGQUIT)) ending_signal_ = signal;
    log_.trace("the command ended with " + std::to_string(*change.exit_code));
    events_.send(events_.make("ended").number("exit_code", *change.exit_code));
    const std::int64_t left_ms = hold_left_ms();
    if (left_ms > 0 && !is_lost_) {
      log_.detail("keeping " + lock_text() + " for another " + seconds_text(left_ms));
    }
  }
  if (change.stop_signal != 0) on_child_stopped(change.stop_signal);
}

void Supervisor::on_child_stopped(int signal) {
  if (!terminal_.exists() || !is_job_control(signal))
    return;  // This process continues, and keeps the lock.
  if (signal != SIGTSTP) {
    wants_terminal_ = true;
    if (terminal_.is_ours()) {
      go_on();
      return;
    }
  }
  // The shell must see its job stopped before it reads commands. Nothing renews the lock meanwhile.
  terminal_.take_back();
  log_.say("stopped; " + lock_text() + " is not renewed until the job continues, and ends in " +
           seconds_text(rl_lease_remaining_ms(lease_)));
  flush_line_writers(kPatienceMs);
  Signals::stop_self(signal);
  go_on();
}

// Checks the lease before the child continues: it may have expired while this process was stopped.
void Supervisor::go_on() {
  look();
  if (child_exit_code_) return;
  if (wants_terminal_ && terminal_.is_ours()) terminal_.give(child_->id());
  child_->signal(SIGCONT);
}

void Supervisor::look() {
  if (kill_at_us_) {
    check_stopping();
  } else if (child_exit_code_) {
    check_hold();
    check_recall();
  } else if (!is_lost_) {
    check_lease();
    check_recall();
  }
}

// @return the signal that was sent, or 0.
int Supervisor::signal_recall() {
  if (child_exit_code_) return 0;
  if (!options_.elect) {
    if (options_.on.recall_signal != 0) child_->signal(options_.on.recall_signal);
    return options_.on.recall_signal;
  }
  stop_child(limits_.kill_after_ms);
  return options_.on.lost_signal;
}

void Supervisor::check_recall() {
  if (is_lost_ || is_hold_over_ || !watch_.take_recall()) return;
  const std::string reason = recall_reason(lease_);
  std::string text = "another client asks for " + lock_text();
  JsonObject event = events_.make("recalled");
  event.number("fence", rl_lease_fence(lease_)).text("reason", reason);
  const int number = signal_recall();
  if (child_exit_code_) text += ", which is kept for --min-hold";
  if (number != 0) {
    text += "; sent " + signal_name(number) + " to " + child_->words();
    event.text("signal", signal_name(number));
  }
  // At the end: it may contain quotes.
  if (!reason.empty()) text += "; its reason: " + in_quotes(reason);
  if (!options_.on.ignores_recalls) log_.say(text);
  events_.send(event);
}

void Supervisor::check_lease() {
  const std::int64_t remaining_ms = rl_lease_remaining_ms(lease_);
  if (rl_lease_check(lease_, error_.get()) != RL_OK) {
    lose(escaped(loss_reason(lease_)), limits_.kill_after_ms);
  } else if (remaining_ms <= limits_.stop_below_ms) {
    lose(reason_to_stop(remaining_ms), limits_.grace_ms(remaining_ms));
  } else if (remaining_ms <= limits_.warn_below_ms) {
    warn(remaining_ms);
    arm(remaining_ms - limits_.stop_below_ms);
  } else {
    if (is_warned_) {
      log_.say(lock_text() + " is renewed again");
      events_.send(events_.make("renewed").number("remaining_ms", remaining_ms));
    }
    is_warned_ = false;
    arm(remaining_ms - std::max(limits_.warn_below_ms, limits_.stop_below_ms));
  }
}

// The child is gone; --min-hold may not be over.
void Supervisor::check_hold() {
  const std::int64_t left_ms = hold_left_ms();
  if (left_ms <= 0 || is_lost_ || is_hold_over_) return;
  if (rl_lease_check(lease_, error_.get()) == RL_OK) return arm(left_ms);
  is_hold_lost_ = is_hold_over_ = true;
  log_.say(lock_text() + " was lost while it was kept for --min-hold: " +
           escaped(loss_reason(lease_)) + "; the command had ended before");
}

// Sets the timer, and renews as often as --renew asks. The library renews, too, when it becomes
// urgent, so the result of an extension is not checked here.
void Supervisor::arm(std::int64_t delay_ms) {
  if (options_.renew_every_ms == 0) return timer_.arm(delay_ms);
  const std::int64_t now = now_us();
  if (now >= renew_at_us_) {
    renewal_.reset(rl_extend_start(lease_, options_.ttl_ms));
    renew_at_us_ = now + options_.renew_every_ms * 1000;
  }
  timer_.arm(std::min(delay_ms, (renew_at_us_ - now) / 1000 + 1));
}

void Supervisor::warn(std::int64_t remaining_ms) {
  if (is_warned_ || ends_by_plan(remaining_ms)) return;
  is_warned_ = true;
  std::string text = "cannot renew " + lock_text() + ", its lease ends in " +
                     seconds_text(remaining_ms) + "; still trying";
  if (options_.on.lost_signal != 0) {
    text += ", and the command is stopped in " + seconds_text(remaining_ms - limits_.stop_below_ms);
  }
  log_.say(text);
  events_.send(events_.make("renewal_failing").number("remaining_ms", remaining_ms));
}

// True if the lease ends at the time that the options set.
bool Supervisor::ends_by_plan(std::int64_t remaining_ms) const {
  return limits_.ends_by_plan(remaining_ms, (now_us() - begin_us_) / 1000);
}

std::string Supervisor::reason_to_stop(std::int64_t remaining_ms) const {
  const std::string end = ", its lease ends in " + seconds_text(remaining_ms);
  if (!ends_by_plan(remaining_ms)) return "not renewed in time" + end;
  if (!options_.is_renewed) return "not renewed because of --no-renew" + end;
  return "the " + seconds_text(options_.max_hold_ms) + " of --max-hold are over in " +
         seconds_text(remaining_ms);
}

void Supervisor::lose(const std::string& reason, std::int64_t grace_ms) {
  is_lost_ = true;
  std::string text = "lost " + lock_text() + ": " + reason;
  JsonObject event = events_.make("lost");
  event.number("fence", rl_lease_fence(lease_)).text("reason", reason);
  if (options_.on.lost_signal == 0) {
    log_.say(text + "; the command continues without it");
    events_.send(event);
    return;
  }
  stop_child(grace_ms);
  const std::string signal = signal_name(options_.on.lost_signal);
  log_.say(text + "; sent " + signal + " to " + child_->words());
  events_.send(event.text("signal", signal));
}

void Supervisor::stop_child(std::int64_t grace_ms) {
  is_killed_ = options_.on.lost_signal == SIGKILL;
  if (is_killed_) {
    child_->kill_all();
  } else {
    child_->look_for_nested();  // Now, while the leaders of their groups are alive.
    child_->signal(options_.on.lost_signal);
    child_->signal(SIGCONT);
  }
  kill_at_us_ = now_us() + grace_ms * 1000;
  timer_.arm(grace_ms);
}

void Supervisor::check_stopping() {
  if (is_killed_) return;
  const std::int64_t left_us = *kill_at_us_ - now_us();
  if (left_us > 0) {
    const std::int64_t left_ms = left_us / 1000 + 1;
    timer_.arm(child_exit_code_ ? std::min(left_ms, kGroupLookMs) : left_ms);
    return;
  }
  child_->kill_all();
  is_killed_ = true;
  log_.say(child_->words() + " did not end in time; sent SIGKILL");
  events_.send(events_.make("killed"));
}

std::string Supervisor::lock_text() const {
  return lock_words(name_) + " (fence " + std::to_string(rl_lease_fence(lease_)) + ")";
}

}  // namespace redlatch::cli
