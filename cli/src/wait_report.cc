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

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
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

WaitReport::WaitReport(const CommandClient& client, const Arguments& arguments,
                       const Reports& reports)
    : client_(client),
      arguments_(arguments),
      names_(arguments.run_names()),
      log_(reports.log),
      events_(reports.events),
      is_on_terminal_(arguments.verbosity == 0 && isatty(STDERR_FILENO) == 1),
      is_verbose_(arguments.verbosity > 0),
      awaited_(client, names_) {}

void WaitReport::announce() {
  log_.detail("waiting for " + lock_words(names_));
  JsonObject event = events_.make("waiting");
  if (names_.size() > 1 && arguments_.run.status_fd >= 0) add_awaited(event);
  events_.send(event);
}

void WaitReport::add_awaited(JsonObject& event) {
  event.raw("names", json_array(names_, json_string));
  const std::optional<LockReport> report = awaited_.look();
  if (!report) return;
  const auto write = [](const LockReport::Holder& holder) { return json_string(holder.who); };
  event.text("busy", report->name).raw("holders", json_array(report->holders, write));
}

WaitReport::Sight WaitReport::look() {
  if (client_.is_quorum()) {
    const std::string& name = names_.front();
    const std::string text = quorum_sentence(QuorumView(arguments_).report_on(name));
    return {name, ": " + text, text};
  }
  const std::optional<LockReport> report = awaited_.look();
  if (!report) return {};
  std::string holder = report->name;
  for (const auto& one : report->holders) holder += one.who + one.token;
  return {report->name, place_in_words(*report, client_.holder()) + ": " + holder_in_words(*report),
          holder};
}

std::string WaitReport::name_held_around() {
  if (client_.is_quorum()) {
    const QuorumReport report = QuorumView(arguments_).report_on(names_.front());
    const bool is_held = report.state() == QuorumReport::State::kHeld && !report.who.empty() &&
                         is_run_around(report.name, report.fence, report.who);
    return is_held ? report.name : "";
  }
  const std::optional<LockReport> report = awaited_.look();
  // A semaphore may have enough other permits.
  if (!report || report->has_permits()) return "";
  // No two locks, on whatever servers, have one fence. The names of those that share it may come
  // late.
  const auto is_around = [&](const LockReport::Holder& holder) {
    return is_run_around(report->name, report->fence, holder.who);
  };
  const auto& holders = report->holders;
  return std::any_of(holders.begin(), holders.end(), is_around) ? report->name : "";
}

bool WaitReport::is_run_around_any() const {
  return std::any_of(names_.begin(), names_.end(),
                     [](const std::string& name) { return is_run_around(name); });
}

void WaitReport::warn_of_itself() {
  if (was_warned_ || !is_run_around_any()) return;
  const std::string name = name_held_around();
  if (name.empty()) return;
  was_warned_ = true;
  std::string text = lock_words(name) +
                     " is held by the redlatch run that this one runs under: it will not be "
                     "released while this one waits";
  const bool can_be_reentrant = !client_.is_quorum() && arguments_.run.limit == 0 &&
                                names_.size() == 1 && !arguments_.run.once && !arguments_.run.elect;
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
  const std::string line = sight.text.empty() ? escaped(joined(names_)) + ": no answer"
                                              : escaped(sight.name) + sight.text;
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
