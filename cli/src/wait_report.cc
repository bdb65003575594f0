// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "wait_report.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "duration.h"
#include "lock_report.h"
#include "quorum_report.h"
#include "runs_around.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// A server that does not answer is not asked each second, because each time takes the time limit.
constexpr int kSkippedAfterFailure = 10;
constexpr std::string_view kErase = "\r\033[K";

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string place_in_words(const LockReport& report, const std::string& own_name) {
  const auto is_own = [&](const LockReport::Waiter& waiter) { return waiter.who == own_name; };
  const auto found = std::find_if(report.waiters.begin(), report.waiters.end(), is_own);
  if (found == report.waiters.end()) return "";
  return ", place " + std::to_string(found - report.waiters.begin() + 1) + " of " +
         std::to_string(report.waiting_count);
}

// "01:33:17", UTC.
std::string time_of_day(std::int64_t unix_ms) {
  const std::string date = date_text(unix_ms);
  return date.substr(std::min(date.find('T') + 1, date.size()), 8);
}

// Short enough for a line of a terminal.
std::string holder_in_words(const LockReport& report) {
  if (report.state != RL_STATE_HELD || report.holders.size() != 1) return report_sentence(report);
  const LockReport::Holder& holder = report.holders.front();
  std::string text = "held by " + who_in_words(holder.who, {});
  if (holder.since_ms > 0) text += " since " + time_of_day(holder.since_ms);
  if (report.remaining_ms > 0) {
    text += " until " + time_of_day(report.server_ms + report.remaining_ms) + "Z";
  }
  return text;
}

// In the background it would erase input to the shell. Without job control (-1) there is no
// background.
bool is_in_foreground() {
  const pid_t foreground = tcgetpgrp(STDERR_FILENO);
  return foreground == -1 || foreground == getpgrp();
}

}  // namespace

WaitReport::WaitReport(const CommandClient& client, const Arguments& arguments, const Log& log)
    : client_(client),
      arguments_(arguments),
      log_(log),
      is_on_terminal_(arguments.verbosity == 0 && isatty(STDERR_FILENO) == 1),
      is_verbose_(arguments.verbosity > 0) {}

WaitReport::Sight WaitReport::look() const {
  const std::string& name = arguments_.names.front();
  if (client_.is_quorum()) {
    const std::string text = quorum_sentence(QuorumView(arguments_).report_on(name));
    return {": " + text, text};
  }
  const InfoHandle info = client_.try_inspect(name);
  if (!info) return {};
  const LockReport report(info.get());
  std::string holder;
  for (const auto& one : report.holders) holder += one.who + one.token;
  return {place_in_words(report, client_.holder()) + ": " + holder_in_words(report), holder};
}

bool WaitReport::is_held_around() const {
  const std::string& name = arguments_.names.front();
  if (client_.is_quorum()) {
    const QuorumReport report = QuorumView(arguments_).report_on(name);
    return report.state() == QuorumReport::State::kHeld && !report.who.empty() &&
           is_run_around(name, report.fence, report.who);
  }
  const InfoHandle info = client_.try_inspect(name);
  if (!info) return false;
  const LockReport report(info.get());
  // No two locks, on whatever servers, have one fence. The names of those that share it may come
  // late.
  return std::any_of(report.holders.begin(), report.holders.end(),
                     [&](const LockReport::Holder& holder) {
                       return is_run_around(name, report.fence, holder.who);
                     });
}

void WaitReport::warn_of_itself() {
  const std::string& name = arguments_.names.front();
  if (was_warned_ || !is_run_around(name) || !is_held_around()) return;
  was_warned_ = true;
  std::string text = lock_words(name) +
                     " is held by the redlatch run that this one runs under: it will not be "
                     "released while this one waits";
  const bool can_be_reentrant = !client_.is_quorum() && arguments_.run.limit == 0;
  if (can_be_reentrant) text += ". Use --owner in both for a reentrant lock";
  log_.say(text);
}

void WaitReport::show() {
  if (!is_verbose_ && !(is_on_terminal_ && is_in_foreground())) return;
  if (skipped_count_ > 0) {
    --skipped_count_;
    return;
  }
  const Sight sight = look();
  if (sight.text.empty()) skipped_count_ = kSkippedAfterFailure;
  const std::string line =
      escaped(arguments_.names.front()) + (sight.text.empty() ? ": no answer" : sight.text);
  if (is_verbose_) {
    if (sight.holder != last_holder_ || sight.text.empty()) log_.detail(line);
    last_holder_ = sight.holder;
    return;
  }
  const std::string shown = "redlatch: " + line;
  write_in_time(STDERR_FILENO, std::string(kErase) + std::string(cut(shown, terminal_width() - 1)));
  is_shown_ = true;
}

void WaitReport::clear() {
  if (std::exchange(is_shown_, false) && is_in_foreground()) write_in_time(STDERR_FILENO, kErase);
}

}  // namespace redlatch::cli
