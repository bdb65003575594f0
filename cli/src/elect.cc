// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "acquire.h"
#include "child.h"
#include "command_client.h"
#include "commands.h"
#include "duration.h"
#include "exit_code.h"
#include "held_lock.h"
#include "http_server.h"
#include "leader_observer.h"
#include "leader_state.h"
#include "line_writer.h"
#include "reports.h"
#include "signals.h"
#include "supervisor.h"
#include "terminal.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// The pause between a short term and the next campaign.
class BackOff {
 public:
  // A term that lasted longer than the last pause was not short.
  [[nodiscard]] bool is_short(std::int64_t term_ms) const {
    return term_ms <= std::max(pause_ms_, kFirstMs);
  }
  void reset() { pause_ms_ = 0; }
  std::int64_t next_ms() { return pause_ms_ = std::clamp(2 * pause_ms_, kFirstMs, kLongestMs); }

 private:
  static constexpr std::int64_t kFirstMs = 1000;
  static constexpr std::int64_t kLongestMs = 30'000;

  std::int64_t pause_ms_ = 0;  // The last one.
};

HttpAnswer http_answer(const LeaderState& state, std::string_view path) {
  if (path == "/") {
    return {200, "application/json", JsonObject().text("name", state.id()).done()};
  }
  if (path == "/healthz") {
    return state.is_healthy() ? plain_answer(200, "ok")
                              : plain_answer(503, "the leader cannot renew its lease");
  }
  return plain_answer(404, "the path must be / or /healthz");
}

class Candidate {
 public:
  Candidate(const Arguments& arguments, const Reports& reports)
      : arguments_(arguments),
        options_(*arguments.run.elect),
        name_(arguments.names.front()),
        reports_(reports),
        client_(CommandClient::of_one(arguments, "elect")),
        state_(arguments.run) {}

  // Returns the exit code.
  int run() {
    serve_http();
    const bool is_observed = server_ || arguments_.run.status_fd >= 0 || arguments_.verbosity > 0;
    if (is_observed) {
      observer_.emplace(client_.handle(), name_,
                        [this](const Leader& leader) { on_leader(leader); });
    }
    while (true) {
      const Term term = lead_once();
      if (term.exit_code) return *term.exit_code;
      const bool is_short = back_off_.is_short(term.length_ms);
      if (!is_short) back_off_.reset();
      if (is_short || !term.is_lost) pause(back_off_.next_ms(), signals_);
    }
  }

 private:
  struct Term {
    std::int64_t length_ms;
    bool is_lost;
    std::optional<int> exit_code;  // Empty: the next campaign follows.
  };

  void serve_http() {
    if (options_.http.empty()) return;
    const HttpAddress address = *parse_http_address(options_.http);
    server_.emplace(address, options_.is_http_public,
                    [this](std::string_view path) { return http_answer(state_, path); });
    const std::string text = "answers on http://" + server_->address() + "/";
    const bool is_port_chosen = address.socket.sin6_port == 0;
    is_port_chosen ? reports_.log.say(text) : reports_.log.detail(text);
  }

  // By the thread of the observer.
  void on_leader(const Leader& leader) {
    state_.set_seen(leader);
    JsonObject event = reports_.events.make("leader");
    event.text("id", leader.id);
    if (!leader.id.empty()) event.number("term", leader.term);
    reports_.events.send(event);
    reports_.log.detail(leader.id.empty() ? in_quotes(name_) + " has no leader"
                                          : in_quotes(leader.id) + " leads " + in_quotes(name_) +
                                                " (term " + std::to_string(leader.term) + ")");
  }

  LeaseHandle campaign() {
    while (true) {
      try {
        LeaseHandle lease = acquire(client_, arguments_, signals_, reports_);
        has_led_ = true;
        return lease;
      } catch (const Failure& failure) {
        const bool is_lost = failure.exit_code == kExitNotAcquired;
        // The first campaign fails as `run` does, because a wrong call may be the cause.
        const bool is_passing = is_lost || (has_led_ && failure.exit_code == kExitUnavailable);
        if (!is_passing) throw;
        reports_.log.say(failure.text + "; campaigning again");
      }
      pause(back_off_.next_ms(), signals_);
    }
  }

  Term lead_once() {
    const LeaseHandle lease = campaign();
    const std::int64_t begin_us = now_us();
    signals_.begin_child();
    Term term = lead(lease.get(), begin_us);
    signals_.end_child();
    term.length_ms = (now_us() - begin_us) / 1000;
    return term;
  }

  Term lead(rl_lease* lease, std::int64_t begin_us) {
    Terminal terminal;
    Supervisor supervisor(arguments_, client_.handle(), lease, signals_, terminal, reports_);
    begin_term(lease);
    const TermEnd end{state_};
    flush_line_writers(kPatienceMs);
    Child child = start_child(arguments_, client_, lease, signals_, terminal, reports_);
    const Supervisor::Outcome outcome = supervisor.watch(child);
    Term term = {0, outcome.is_lost, std::nullopt};
    const bool must_end = outcome.ending_signal != 0;
    if (outcome.is_lost) {
      if (must_end) term.exit_code = kExitSignal + outcome.ending_signal;
      report_revoked(lease, "lost");
      if (must_end) client_.close_within(kCloseMs);
      return term;
    }
    state_.end_term();
    const Released released =
        release(client_, arguments_, lease, begin_us, outcome.exit_code == 0, reports_);
    const char* reason = outcome.is_recalled ? "recalled" : "released";
    report_revoked(lease, released.failure_code == kExitLost ? "lost" : reason);
    if ((options_.restarts || outcome.is_recalled) && !must_end) return term;
    if (!released.is_acknowledged) client_.close_within(kCloseMs);
    term.exit_code = released.failure_code != 0 ? released.failure_code : outcome.exit_code;
    return term;
  }

  // The lease ends with the block, and the state must not use it afterwards.
  struct TermEnd {
    LeaderState& state;
    ~TermEnd() { state.end_term(); }
  };

  void begin_term(rl_lease* lease) {
    state_.begin_term(lease);
    const std::int64_t term = rl_lease_fence(lease);
    reports_.log.detail("leads " + in_quotes(name_) + " as " + in_quotes(options_.id) + " (term " +
                        std::to_string(term) + ")");
    JsonObject event = reports_.events.make("elected");
    reports_.events.send(event.text("id", options_.id).number("term", term));
  }

  void report_revoked(const rl_lease* lease, const char* reason) const {
    JsonObject event = reports_.events.make("revoked");
    reports_.events.send(event.number("term", rl_lease_fence(lease)).text("reason", reason));
  }

  const Arguments& arguments_;
  const RunOptions::Elect& options_;
  const std::string& name_;
  const Reports& reports_;
  Signals signals_;  // Before any thread.
  CommandClient client_;
  LeaderState state_;
  BackOff back_off_;
  bool has_led_ = false;
  std::optional<HttpServer> server_;
  std::optional<LeaderObserver> observer_;  // It uses what is above.
};

}  // namespace

int elect(const Arguments& arguments, const Log& log) {
  return with_reports(arguments, log, [&](const Reports& reports) {
    warn_of_short_times(arguments.run, log);
    return Candidate(arguments, reports).run();
  });
}

}  // namespace redlatch::cli
