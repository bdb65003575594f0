// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "acquire.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "duration.h"
#include "exit_code.h"
#include "lock_report.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// A shorter wait ends soon enough to say by itself that the server is away.
constexpr std::int64_t kTrialConnectMs = 5000;
constexpr std::int64_t kSilentWaitMs = 250;

// A thread that sees signals while the main thread is inside the library: it cancels the request,
// or shuts the client down while there is none.
class Interrupter {
 public:
  Interrupter(const Signals& signals, rl_client* client)
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
      Signals::wake();
      thread_.join();
    }
    return signal_;
  }

 private:
  void watch_signals() {
    while (const int signal = signals_.wait()) {
      if (ends_wait(signal)) interrupt(signal);
    }
  }

  void interrupt(int signal) {
    const std::lock_guard lock(mutex_);
    if (signal_ != 0) return;
    signal_ = signal;
    if (request_ != nullptr) {
      rl_request_cancel(request_);
    } else {
      rl_client_shutdown(client_);
    }
  }

  const Signals& signals_;
  rl_client* client_;
  std::mutex mutex_;  // Guards request_ and signal_ while the thread runs.
  rl_request* request_ = nullptr;
  int signal_ = 0;
  std::thread thread_;
};

AcquireOptionsHandle make_options(const Arguments& arguments) {
  AcquireOptionsHandle options(not_null(rl_acquire_options_new()));
  const std::string command = joined_command(arguments.child_words);
  const std::string_view label = cut(command, RL_MAX_LABEL_BYTES);
  // Confirmed, because the child starts under a full lease or not at all: a grant that was only
  // pushed is good for a few seconds, and we would stop the child before they are over.
  const bool is_set =
      rl_acquire_options_set_lease_ms(options.get(), arguments.lease_ms) == RL_OK &&
      rl_acquire_options_set_confirm(options.get(), 1) == RL_OK &&
      rl_acquire_options_set_label(options.get(), label.data(), label.size()) == RL_OK;
  if (!is_set) throw Failure{kExitSoftware, "the library refused the options of the lock"};
  return options;
}

// Says early that the server is away, where one would otherwise wait in silence for ever. Returns
// RL_OK also when it is worth waiting on.
rl_status trial_connect(const Session& session, const Log& log) {
  const rl_status status = rl_client_connect(session.client(), 0, session.error());
  if (status == RL_OK || rl_status_is(status, RL_RETRYABLE) == 0) return status;
  const std::string message = rl_error_message(session.error());
  log.say(session.failure(status, message, 0).text + "; still trying");
  return RL_OK;
}

[[noreturn]] void fail_busy(const Session& session, const Arguments& arguments,
                            std::int64_t waited_ms) {
  std::string text = "lock " + in_quotes(arguments.names.front()) + " is busy";
  if (!arguments.is_quiet) {
    if (const InfoHandle info = session.inspect(arguments.names.front())) {
      text += ": " + report_sentence(LockReport(info.get()));
    }
  }
  if (arguments.wait_ms > 0) text += "; waited " + seconds_text(waited_ms);
  throw Failure{arguments.conflict_exit_code, text};
}

[[noreturn]] void fail(const Session& session, const Arguments& arguments, rl_status status,
                       const std::string& message, std::int64_t tried_ms) {
  if (status == RL_BUSY || status == RL_TIMEOUT) fail_busy(session, arguments, tried_ms);
  throw session.failure(status, message, tried_ms);
}

rl_status wait_for(rl_request* request, const std::string& name, const Log& log) {
  rl_status status = rl_request_wait(request, kSilentWaitMs);
  if (status == RL_PENDING) log.detail("waiting for lock " + in_quotes(name));
  // RL_INTERRUPTED: a stop and a continuation look like a signal; those that matter are blocked.
  while (status == RL_PENDING || status == RL_INTERRUPTED) status = rl_request_wait(request, -1);
  return status;
}

// A lease that is short of half its length would be taken for one that cannot be renewed.
void lengthen(const Session& session, rl_lease* lease, const Arguments& arguments) {
  if (rl_lease_remaining_ms(lease) > arguments.lease_ms / 2) return;
  const rl_status status = rl_extend(lease, arguments.lease_ms, session.error());
  if (status == RL_OK) return;
  const std::string message = rl_error_message(session.error());
  if (status != RL_E_LOST) throw session.failure(status, message, 0);
  throw Failure{arguments.conflict_exit_code,
                "lock " + in_quotes(arguments.names.front()) +
                    " was lost before the command could start: " + escaped(message)};
}

}  // namespace

LeaseHandle acquire(const Session& session, const Arguments& arguments, const Signals& signals,
                    const Log& log) {
  const std::string& name = arguments.names.front();
  const AcquireOptionsHandle options = make_options(arguments);
  const std::int64_t begin_us = now_us();
  const auto elapsed_ms = [&] { return (now_us() - begin_us) / 1000; };

  rl_status status = RL_OK;
  RequestHandle request;
  Interrupter interrupter(signals, session.client());
  if (arguments.wait_ms < 0 || arguments.wait_ms >= kTrialConnectMs) {
    status = trial_connect(session, log);
  }
  std::string message = rl_error_message(session.error());
  if (status == RL_OK) {
    const std::int64_t left_ms =
        arguments.wait_ms < 0 ? -1 : std::max<std::int64_t>(arguments.wait_ms - elapsed_ms(), 0);
    request.reset(not_null(
        rl_acquire_start(session.client(), name.data(), name.size(), left_ms, options.get())));
    interrupter.aim_at(request.get());
    status = wait_for(request.get(), name, log);
    interrupter.aim_at(nullptr);
    message = rl_request_message(request.get());
  }
  if (const int signal = interrupter.finish()) {
    // A lock that was granted at the last moment goes back with its request.
    signals.restore();
    throw Failure{kExitSignal + signal, ""};
  }
  if (status != RL_OK) fail(session, arguments, status, message, elapsed_ms());

  LeaseHandle lease(not_null(rl_request_take_lease(request.get())));
  lengthen(session, lease.get(), arguments);
  std::array<char, 64> took{};
  std::snprintf(took.data(), took.size(), " in %.4f s (fence %lld)",
                static_cast<double>(now_us() - begin_us) / 1e6,
                static_cast<long long>(rl_lease_fence(lease.get())));
  log.detail("acquired " + escaped(name) + took.data() +
             (session.is_local() ? ", on this host only" : ""));
  return lease;
}

}  // namespace redlatch::cli
