// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "acquire.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "duration.h"
#include "exit_code.h"
#include "lock_report.h"
#include "quorum_report.h"
#include "text.h"
#include "timer.h"
#include "wait_report.h"

namespace redlatch::cli {
namespace {

// A shorter wait soon ends with an error that names the server.
constexpr std::int64_t kTrialConnectMs = 5000;
constexpr std::int64_t kSilentWaitMs = 250;
constexpr std::int64_t kLogLookMs = 1000;

// A thread that takes signals while the main thread is inside the library: it cancels the request,
// or shuts the client down if there is no request.
class Interrupter {
 public:
  Interrupter(const Signals& signals, const CommandClient& client)
      : signals_(signals), client_(client), thread_([this] { watch_signals(); }) {}
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;
  ~Interrupter() { finish(); }

  // From now on a signal cancels `request`; also one that has come already. NULL = no request.
  void aim_at(rl_request* request) {
    const std::lock_guard lock(mutex_);
    request_ = request;
    if (signal_ != 0 && request_ != nullptr) rl_request_cancel(request_);
  }

  // Ends the thread. Returns the signal that came, or 0.
  int finish() {
    if (thread_.joinable()) {
      is_finished_ = true;
      Signals::wake();
      thread_.join();
    }
    return signal_;
  }

 private:
  void watch_signals() {
    // Another wake-up may be one of an earlier term.
    while (!is_finished_) {
      const int signal = signals_.wait().signal;
      if (ends_wait(signal)) interrupt(signal);
    }
  }

  void interrupt(int signal) {
    const std::lock_guard lock(mutex_);
    if (signal_ != 0) return;
    signal_ = signal;
    if (request_ != nullptr) rl_request_cancel(request_);
    client_.shut_down();  // The report of the wait may be asking a server that hangs.
  }

  const Signals& signals_;
  const CommandClient& client_;
  std::mutex mutex_;  // Guards request_ and signal_ while the thread runs.
  rl_request* request_ = nullptr;
  int signal_ = 0;
  std::atomic<bool> is_finished_{false};
  std::thread thread_;
};

// For a bad value of an option the library returns a status alone.
void must(rl_status status) {
  if (status != RL_OK) throw Failure{kExitSoftware, "the library refused an option of the lock"};
}

void set(rl_acquire_options* options, std::string_view name, std::string_view text) {
  must(
      rl_acquire_options_set(options, name.data(), name.size(), text.data(), text.size(), nullptr));
}

AcquireOptionsHandle make_options(const RunOptions& run) {
  AcquireOptionsHandle options(not_null(rl_acquire_options_new()));
  // Confirmed, because the child must start under a full lease: a provisional lease lasts a few
  // seconds, and the child would be stopped before they end.
  must(rl_acquire_options_set_confirm(options.get(), 1));
  must(rl_acquire_options_set_label(options.get(), run.label.data(), run.label.size()));
  must(rl_acquire_options_set_reentrant(options.get(), run.owner.empty() ? 0 : 1));
  run.lock_options.apply(options.get());
  if (run.limit > 0) {
    set(options.get(), "permits", std::to_string(run.permits));
    set(options.get(), "limit", std::to_string(run.limit));
  }
  if (run.elect) set(options.get(), "id", run.elect->id);
  if (run.once) {
    set(options.get(), "format", "string");
    set(options.get(), "max_local_handoffs", "0");
  }
  return options;
}

// `message`: of the library, which says which of several names is busy.
std::string busy_name(const Arguments& arguments, const std::string& message) {
  for (const std::string& name : arguments.run_names()) {
    if (message.find(lock_words(name)) != std::string::npos) return name;
  }
  return arguments.names.front();
}

[[noreturn]] void fail_busy(const CommandClient& client, const Arguments& arguments,
                            const std::string& message, std::int64_t waited_ms,
                            const Reports& reports) {
  const std::string name = busy_name(arguments, message);
  std::string text = lock_words(name) + " is busy";
  if (arguments.verbosity >= (arguments.run.skips_busy ? 1 : 0) || arguments.run.status_fd >= 0) {
    if (client.is_quorum()) {
      text += ": " + quorum_sentence(QuorumView(arguments).report_on(name));
    } else if (const InfoHandle info = client.try_inspect(name)) {
      const LockReport report(info.get());
      text += ": " + report_sentence(report) + (report.is_endless() ? kOtherName : "");
    }
  }
  if (arguments.run.wait_ms > 0) text += "; waited " + seconds_text(waited_ms);
  reports.events.send(reports.events.make("busy").text("message", text));
  if (!arguments.run.skips_busy) throw Failure{arguments.run.conflict_exit_code, text};
  reports.log.detail(text);
  throw Failure{0, ""};
}

// The library continues to clean up, and this process ends.
std::string unknown_words(const RunOptions& run) {
  return "no answer to the acquire came within the wait; if the server grants it, the lock is free "
         "again at most " +
         seconds_text(run.ttl_ms) + " after the grant";
}

void add_name(const CommandClient& client, rl_names* names, const std::string& name,
              bool is_shared) {
  const std::int32_t mode = is_shared ? RL_MODE_READ : RL_MODE_WRITE;
  const rl_status status = rl_names_add(names, name.data(), name.size(), mode, client.error());
  if (status != RL_OK) throw client.failure();
}

RequestHandle start_all(const CommandClient& client, const Arguments& arguments,
                        std::int64_t wait_ms, const rl_acquire_options* options) {
  const NamesHandle names(not_null(rl_names_new()));
  add_name(client, names.get(), arguments.names.front(), arguments.run.is_shared);
  for (const auto& other : arguments.run.others) {
    add_name(client, names.get(), other.name, other.is_shared);
  }
  return RequestHandle(
      not_null(rl_acquire_all_start(client.handle(), names.get(), wait_ms, options)));
}

RequestHandle start(const CommandClient& client, const Arguments& arguments, std::int64_t wait_ms,
                    const rl_acquire_options* options) {
  if (!arguments.run.others.empty()) return start_all(client, arguments, wait_ms, options);
  const std::string& name = arguments.names.front();
  const auto function = arguments.run.is_shared ? rl_rw_acquire_read_start : rl_acquire_start;
  return RequestHandle(
      not_null(function(client.handle(), name.data(), name.size(), wait_ms, options)));
}

rl_status wait_for(rl_request* request, const CommandClient& client, const Arguments& arguments,
                   const Reports& reports) {
  WaitReport report(client, arguments, reports);
  rl_status status = rl_request_wait(request, kSilentWaitMs);
  if (status == RL_PENDING) {
    report.announce();
    report.warn_of_itself();
    status = rl_request_wait(request, kLogLookMs - kSilentWaitMs);
  }
  // RL_INTERRUPTED: a stop and a continuation look like a signal; those that matter are blocked.
  while (status == RL_PENDING || status == RL_INTERRUPTED) {
    report.clear();
    reports.log.say_library_lines(client.handle());
    // A quorum knows the name of its holder some time after the grant. With several names it may
    // be another one now.
    if (client.is_quorum() || !arguments.run.others.empty()) report.warn_of_itself();
    report.show();
    status = rl_request_wait(request, kLogLookMs);
  }
  return status;
}

// A lease with less than half of its ttl left would count as one that cannot be renewed.
void lengthen(const CommandClient& client, rl_lease* lease, const Arguments& arguments) {
  if (rl_lease_remaining_ms(lease) > arguments.run.longest_ttl_ms() / 2) return;
  const rl_status status = rl_extend(lease, arguments.run.ttl_ms, client.error());
  if (status == RL_OK) return;
  if (status != RL_E_LOST) throw client.failure();
  throw lost_before_start(client, arguments);
}

void report_acquired(const CommandClient& client, const Arguments& arguments, const rl_lease* lease,
                     std::int64_t took_us, const Reports& reports) {
  const std::string& name = arguments.names.front();
  std::array<char, 64> took{};
  std::snprintf(took.data(), took.size(), " in %.4f s (", static_cast<double>(took_us) / 1e6);
  const std::int64_t fence = rl_lease_fence(lease);
  std::string text = "acquired " + escaped(name) + took.data();
  text += fence == 0 ? "no fence" : "fence " + std::to_string(fence);
  if (arguments.run.is_shared) text += ", shared";
  if (arguments.run.limit > 0) {
    text += ", permits " + std::to_string(rl_lease_permits(lease)) + " of " +
            std::to_string(arguments.run.limit);
  }
  const std::int64_t hold_count = rl_lease_hold_count(lease);
  if (hold_count > 1) text += ", held " + std::to_string(hold_count) + " times by its owner";
  reports.log.say_library_lines(client.handle());
  reports.log.detail(text + ")" + (client.is_local() ? ", on this host only" : ""));
  JsonObject event = reports.events.make("acquired");
  event.number("fence", fence).text("holder", client.holder());
  event.text("mode", arguments.run.mode());
  if (arguments.run.limit > 0) event.number("permits", rl_lease_permits(lease));
  event.number("waited_ms", took_us / 1000).number("ttl_ms", arguments.run.ttl_ms);
  reports.events.send(event);
}

}  // namespace

LeaseHandle acquire(const CommandClient& client, const Arguments& arguments, const Signals& signals,
                    const Reports& reports) {
  const std::int64_t wait_ms = arguments.run.wait_ms;
  const AcquireOptionsHandle options = make_options(arguments.run);
  const std::int64_t begin_us = now_us();
  const auto elapsed_ms = [&] { return (now_us() - begin_us) / 1000; };

  rl_status status = RL_OK;
  RequestHandle request;
  Interrupter interrupter(signals, client);
  if (wait_ms < 0 || wait_ms >= kTrialConnectMs) status = trial_connect(client, reports.log);
  std::string message = rl_error_message(client.error());
  if (status == RL_OK) {
    const std::int64_t left_ms =
        wait_ms < 0 ? -1 : std::max<std::int64_t>(wait_ms - elapsed_ms(), 0);
    request = start(client, arguments, left_ms, options.get());
    interrupter.aim_at(request.get());
    status = wait_for(request.get(), client, arguments, reports);
    interrupter.aim_at(nullptr);
    message = rl_request_message(request.get());
  }
  if (const int signal = interrupter.finish()) {
    // Freeing the request releases a lock that was granted at the last moment.
    signals.restore();
    throw Failure{kExitSignal + signal, ""};
  }
  if (status == RL_BUSY || status == RL_TIMEOUT) {
    fail_busy(client, arguments, message, elapsed_ms(), reports);
  }
  if (status == RL_E_OUTCOME_UNKNOWN) message = unknown_words(arguments.run);
  if (status != RL_OK) throw client.failure(status, message, elapsed_ms());

  LeaseHandle lease(not_null(rl_request_take_lease(request.get())));
  lengthen(client, lease.get(), arguments);
  report_acquired(client, arguments, lease.get(), now_us() - begin_us, reports);
  return lease;
}

Failure lost_before_start(const CommandClient& client, const Arguments& arguments) {
  return {arguments.run.conflict_exit_code, lock_words(arguments.names.front()) +
                                                " was lost before the command could start: " +
                                                escaped(rl_error_message(client.error()))};
}

rl_status trial_connect(const CommandClient& client, const Log& log) {
  const rl_status status = client.connect(0);
  if (status == RL_OK || rl_status_is(status, RL_RETRYABLE) == 0) return status;
  const std::string message = rl_error_message(client.error());
  log.say(client.failure(status, message, 0).text + "; still trying");
  drop_library_lines(client.handle());
  return RL_OK;
}

void pause(std::int64_t delay_ms, const Signals& signals) {
  const std::int64_t end_us = now_us() + delay_ms * 1000;
  Timer timer;
  for (std::int64_t left_us = delay_ms * 1000; left_us > 0; left_us = end_us - now_us()) {
    timer.arm(left_us / 1000 + 1);
    const int signal = signals.wait().signal;
    if (!ends_wait(signal)) continue;
    signals.restore();
    throw Failure{kExitSignal + signal, ""};
  }
}

void sleep_jitter(const RunOptions& options, const Signals& signals, const Log& log) {
  if (options.start_jitter_ms == 0) return;
  std::random_device random;
  std::uniform_int_distribution<std::int64_t> below(1, options.start_jitter_ms);
  const std::int64_t delay_ms = below(random);
  log.detail("begins in " + seconds_text(delay_ms));
  pause(delay_ms, signals);
}

}  // namespace redlatch::cli
