// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "run_options.h"

#include <fcntl.h>
#include <sys/select.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "duration.h"
#include "handles.h"
#include "label.h"
#include "signals.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kDefaultKillAfterMs = 5000;
constexpr std::string_view kSignal = "signal:";
constexpr const char* kWaysOfLoss = "term, kill, signal:NAME or ignore (term)";

// "USR1", "SIGUSR1" or "10"; 0 for anything else.
int signal_number(std::string_view name) {
  const std::string full = (name.starts_with("SIG") ? "" : "SIG") + std::string(name);
  for (int number = 1; number < NSIG; ++number) {
    if (name == std::to_string(number) || full == signal_name(number)) return number;
  }
  return 0;
}

// The signal of "signal:NAME".
int signal_of(const std::string& option, const std::string& text) {
  const int number = signal_number(std::string_view(text).substr(kSignal.size()));
  if (number != 0) return number;
  throw must_be(option, "the name of a signal behind signal:, such as signal:USR1", text);
}

int lost_signal(const std::string& text) {
  if (text == "term") return SIGTERM;
  if (text == "kill") return SIGKILL;
  if (text == "ignore") return 0;
  if (!text.starts_with(kSignal)) {
    throw UsageError(not_one_of("--on-lost", text, {"term", "kill", "ignore", "signal:NAME"}));
  }
  return signal_of("--on-lost", text);
}

}  // namespace

UsageError must_be(const std::string& option, const std::string& allowed, const std::string& text) {
  return UsageError(option + " must be " + allowed + " (got " + in_quotes(without_secrets(text)) +
                    ")");
}

std::int64_t duration(const std::string& option, const std::string& text) {
  const std::optional<std::int64_t> ms = parse_duration_ms(text);
  if (ms) return *ms;
  if (is_duration(text)) throw must_be(option, "at most 36500d", text);
  throw must_be(option, "a number with ms, s, m, h or d, such as 500ms, 30s or 2m", text);
}

void RunParser::add_to(CLI::App& run) {
  add_mode_options(run);
  add_waiting_options(run);
  lock_options_.add_acquire_options(run);
  add_min_hold_option(run);
  add_holding_options(run, kWaysOfLoss);
  add_recall_option(run);
  add_preserve_option(run);
  add_child_options(run);
  add_flock_options(run);
}

void RunParser::add_to_once(CLI::App& once) {
  add_waiting_options(once);
  lock_options_.add_mutex_options(once);
  add_holding_options(once, kWaysOfLoss);
  add_recall_option(once);
  add_preserve_option(once);
  add_child_options(once);
}

void RunParser::add_to_elect(CLI::App& elect) {
  lock_options_.add_mutex_options(elect);
  add_holding_options(elect, "term, kill or signal:NAME (term)");
  add_child_options(elect);
}

void RunParser::add_mode_options(CLI::App& run) {
  run.add_flag("-s,--shared", is_shared_, "Hold it to read, together with other readers");
  run.add_flag("-x,-e,--exclusive", is_exclusive_, "Hold it to write, alone (the default)");
  run.add_option("--permits", permits_,
                 "Hold W permits (1) of a semaphore, of which N are out at most; N[:W]")
      ->type_name("N");
  for (auto [flag, names, help] :
       {std::tuple("--also", &also_, "Hold this lock, too: all or none; may be repeated"),
        std::tuple("--also-shared", &also_shared_,
                   "Hold this lock, too, to read; may be repeated")}) {
    run.add_option(flag, *names, help)
        ->type_name("NAME")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

void RunParser::add_waiting_options(CLI::App& run) {
  run.add_flag("-n,--nonblock,--nb", is_nonblock_, "Try once, do not wait");
  run.add_option("-w,--wait,--timeout", wait_, "Wait at most this long (no limit); -n wins")
      ->type_name("DUR");
  auto* code = run.add_option("-E,--conflict-exit-code", conflict_exit_code_,
                              "Exit code when the lock was not acquired (75)");
  code->check(CLI::Range(0, 255))->type_name("N");
  run.add_option("--if-busy", if_busy_,
                 "fail or skip (silent, exit 0): do not wait without --wait; wait (wait)")
      ->type_name("HOW");
  run.add_option("--start-jitter", start_jitter_, "Sleep a random time below this first (0)")
      ->type_name("DUR");
}

void RunParser::add_min_hold_option(CLI::App& run) {
  run.add_option("--min-hold", min_hold_,
                 "Keep the lock this long, even if COMMAND ends sooner (0). Not with --also: a "
                 "signal leaves the lock to its lease, and several cannot be left so")
      ->type_name("DUR");
}

void RunParser::add_holding_options(CLI::App& run, const char* ways_of_loss) {
  run.add_option("--renew", renew_, "Renew this often, at most ttl/3 (ttl/3)")
      ->type_name("DUR")
      ->excludes(run.get_option("--no-renew"));
  run.add_option("--on-lost", on_lost_, ways_of_loss)->type_name("HOW");
  run.add_option("-k,--kill-after", kill_after_,
                 "Time from the loss signal to SIGKILL (5s, at most ttl/3)")
      ->type_name("DUR");
}

void RunParser::add_recall_option(CLI::App& run) {
  run.add_option("--on-recall", on_recall_,
                 "signal:NAME or ignore, when another client asks for the lock (a message)")
      ->type_name("HOW");
}

void RunParser::add_preserve_option(CLI::App& run) {
  run.add_flag("--preserve-status", preserves_status_,
               "Exit with COMMAND's code even after a loss");
}

void RunParser::add_child_options(CLI::App& run) {
  run.add_option("-c,--command", command_, "Run this with $SHELL -c, instead of COMMAND")
      ->type_name("TEXT");
  run.add_flag("--foreground", is_foreground_, "Stay in the process group of redlatch");
  run.add_flag("--no-forward-signals", forwards_no_signals_,
               "Forward no signals to COMMAND; continue until it ends");
  run.add_option("--label", labels_, "KEY=VALUE shown with the lock; may be repeated")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  run.add_flag("--hide-command", hides_command_,
               "Do not show COMMAND with the lock: others may read its words");
  run.add_option("--status-fd", status_fd_, "Write events to this descriptor, as JSON lines")
      ->check(CLI::Range(0, FD_SETSIZE - 1))
      ->type_name("N");
}

// Options of flock(1), so that `redlatch run` can replace it.
void RunParser::add_flock_options(CLI::App& run) {
  constexpr const char* kGroup = "Options of flock(1)";
  run.add_flag("-o,--close", is_closing_, "No effect: COMMAND never inherits the lock")
      ->group(kGroup);
  run.add_flag("-F,--no-fork", is_not_forking_, "Refused: redlatch stays, to renew the lock")
      ->group(kGroup);
}

RunOptions RunParser::checked(const std::vector<std::string>& words) const {
  if (is_not_forking_) {
    throw UsageError("--no-fork: redlatch stays beside the command, because it renews the lock");
  }
  RunOptions options;
  options.words = checked_words(words);
  options.label = checked_label(options);
  options.preserves_status = preserves_status_;
  options.is_foreground = is_foreground_;
  options.forwards_signals = !forwards_no_signals_;
  options.status_fd = status_fd_.value_or(-1);
  if (status_fd_ && fcntl(*status_fd_, F_GETFD) < 0) {
    const std::string number = std::to_string(*status_fd_);
    throw must_be("--status-fd", "an open descriptor; a shell opens it by " + number + ">FILE",
                  number);
  }
  check_mode(options);
  check_waiting(options);
  check_holding(options);
  check_loss(options);
  check_recall(options);
  return options;
}

void RunParser::check_mode(RunOptions& options) const {
  if (is_shared_ && is_exclusive_) {
    throw UsageError("--shared excludes --exclusive: a lock is held to read or to write");
  }
  options.is_shared = is_shared_;
  options.owner = lock_options_.value("owner").value_or("");
  if (!options.owner.empty() && is_shared_) {
    throw UsageError("--owner excludes --shared: a reentrant lock has no readers");
  }
  check_permits(options);
  check_others(options);
}

void RunParser::check_others(RunOptions& options) const {
  for (const std::string& name : also_) options.others.push_back({name, false});
  for (const std::string& name : also_shared_) options.others.push_back({name, true});
  if (options.others.empty()) return;
  constexpr const char* kMinHold =
      "--min-hold: a signal leaves the lock to its lease, and several cannot be left so";
  for (const auto& [is_given, name] :
       {std::pair(permits_.has_value(), "--permits"), std::pair(!options.owner.empty(), "--owner"),
        std::pair(min_hold_.has_value(), kMinHold)}) {
    if (is_given) throw UsageError(std::string("--also and --also-shared exclude ") + name);
  }
}

// "3" or "3:2".
void RunParser::check_permits(RunOptions& options) const {
  if (!permits_) return;
  const char* at = permits_->data();
  const char* const end = at + permits_->size();
  const auto read = [&](std::int64_t& number) {
    const auto parsed = std::from_chars(at, end, number);
    at = parsed.ptr;
    return parsed.ec == std::errc() && number >= 1 && number <= RL_MAX_PERMITS;
  };
  bool is_good = read(options.limit);
  if (is_good && at != end) is_good = *at++ == ':' && read(options.permits);
  if (!is_good || at != end || options.permits > options.limit) {
    throw must_be("--permits",
                  "N or N:W, with W from 1 to N and N from 1 to " + std::to_string(RL_MAX_PERMITS),
                  *permits_);
  }
  for (const auto& [is_given, name] :
       {std::pair(is_shared_, "--shared: a semaphore has no readers"),
        std::pair(is_exclusive_, "--exclusive: a semaphore has several holders"),
        std::pair(!options.owner.empty(), "--owner: a semaphore is not reentrant"),
        std::pair(lock_options_.value("format").has_value(),
                  "--format: a semaphore has a format of its own")}) {
    if (is_given) throw UsageError(std::string("--permits excludes ") + name);
  }
}

void RunParser::check_waiting(RunOptions& options) const {
  if (start_jitter_) options.start_jitter_ms = duration("--start-jitter", *start_jitter_);
  const std::vector<std::string> ways = {"fail", "skip", "wait"};
  if (if_busy_ && std::find(ways.begin(), ways.end(), *if_busy_) == ways.end()) {
    throw UsageError(not_one_of("--if-busy", *if_busy_, ways));
  }
  options.skips_busy = if_busy_ == "skip";
  options.conflict_exit_code =
      conflict_exit_code_.value_or(options.skips_busy ? 0 : kExitNotAcquired);
  if (options.skips_busy && conflict_exit_code_) {
    throw UsageError("--if-busy skip excludes --conflict-exit-code: its exit code is 0");
  }
  if (if_busy_ == "wait" && is_nonblock_) throw UsageError("--if-busy wait excludes --nonblock");
  const bool tries_once = is_nonblock_ || options.skips_busy || if_busy_ == "fail";
  if (tries_once) options.wait_ms = 0;
  if (wait_) options.wait_ms = duration("--wait", *wait_);
  if (is_nonblock_) options.wait_ms = 0;  // as flock has it
}

void RunParser::check_holding(RunOptions& options) const {
  const AcquireOptionsHandle scratch(not_null(rl_acquire_options_new()));
  lock_options_.apply(scratch.get());
  options.lock_options = lock_options_;
  const auto ttl = lock_options_.value("ttl");
  const auto max_hold = lock_options_.value("max_hold");
  if (ttl) options.ttl_ms = parse_duration_ms(*ttl).value_or(0);
  if (max_hold) options.max_hold_ms = parse_duration_ms(*max_hold).value_or(0);
  if (min_hold_) options.min_hold_ms = duration("--min-hold", *min_hold_);
  if (options.min_hold_ms > RL_MAX_TTL_MS) {
    throw must_be("--min-hold", "at most " + std::to_string(RL_MAX_TTL_MS / kDayMs) + "d",
                  *min_hold_);
  }
  if (options.max_hold_ms > 0 && options.min_hold_ms > options.max_hold_ms) {
    throw must_be("--min-hold",
                  "at most the " + seconds_text(options.max_hold_ms) + " of --max-hold",
                  *min_hold_);
  }
  options.is_renewed = !lock_options_.value("renew");
  if (!options.is_renewed && options.min_hold_ms > options.ttl_ms) {
    throw must_be(
        "--min-hold",
        "at most the " + seconds_text(options.ttl_ms) + " of --ttl, which --no-renew makes the end",
        *min_hold_);
  }
  if (!renew_) return;
  // The library's own renewal, at a third of the ttl and repeated, stays on.
  options.renew_every_ms = duration("--renew", *renew_);
  if (options.renew_every_ms < RL_MIN_TTL_MS || options.renew_every_ms > options.ttl_ms / 3) {
    throw must_be("--renew",
                  std::to_string(RL_MIN_TTL_MS) + "ms to a third of the " +
                      seconds_text(options.ttl_ms) + " of --ttl",
                  *renew_);
  }
}

void RunParser::check_recall(RunOptions& options) const {
  if (!on_recall_) return;
  options.on.ignores_recalls = *on_recall_ == "ignore";
  if (options.on.ignores_recalls) return;
  if (!on_recall_->starts_with(kSignal)) {
    throw UsageError(not_one_of("--on-recall", *on_recall_, {"signal:NAME", "ignore"}));
  }
  options.on.recall_signal = signal_of("--on-recall", *on_recall_);
}

void RunParser::check_loss(RunOptions& options) const {
  if (on_lost_) options.on.lost_signal = lost_signal(*on_lost_);
  const std::int64_t longest_ms = options.longest_ttl_ms() / 3;
  options.kill_after_ms = std::min(kDefaultKillAfterMs, longest_ms);
  if (kill_after_) options.kill_after_ms = duration("--kill-after", *kill_after_);
  if (options.kill_after_ms > longest_ms) {
    throw must_be("--kill-after",
                  "at most a third of the " + seconds_text(options.longest_ttl_ms()) + " of " +
                      (options.longest_ttl_ms() < options.ttl_ms ? "--max-hold" : "--ttl"),
                  *kill_after_);
  }
  if (options.on.lost_signal == SIGKILL) options.kill_after_ms = 0;
}

std::vector<std::string> RunParser::checked_words(const std::vector<std::string>& words) const {
  if (!command_) return words;
  if (!words.empty()) {
    throw UsageError("--command excludes COMMAND, which it replaces");
  }
  const char* shell = std::getenv("SHELL");
  return {shell != nullptr && *shell != '\0' ? shell : "/bin/sh", "-c", *command_};
}

std::string RunParser::checked_label(const RunOptions& options) const {
  for (const std::string& pair : labels_) {
    if (!is_label_pair(pair)) {
      throw must_be("--label",
                    "KEY=VALUE, with a KEY of letters, digits, '_', '.' and '-' that begins with a "
                    "letter",
                    pair);
    }
  }
  const std::string pairs = joined_command(labels_);
  if (pairs.size() > RL_MAX_LABEL_BYTES) {
    throw UsageError("--label must be at most " + std::to_string(RL_MAX_LABEL_BYTES) +
                     " bytes in all (got " + std::to_string(pairs.size()) + " bytes)");
  }
  if (hides_command_) return pairs;
  const std::string text = pairs + (pairs.empty() ? "" : " ") + joined_command(options.words);
  return std::string(cut(text, RL_MAX_LABEL_BYTES));
}

}  // namespace redlatch::cli
