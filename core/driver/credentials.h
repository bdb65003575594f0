// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Credentials: user and password that the application gives, and gives again before they end. They
// replace those of the URL and the options. It decides when the application is asked for others: a
// connection needs some and none are valid, they end soon, or the server has refused them; and what
// a connection gets that waits for them. Events in, values out; no mutex, no queue, no clock.
//
//   nothing --> asked --> given        asks(): the host puts the question, on_asked()
//                 '-----> failed       set() and fail() answer it; it is put again after a pause
//
// A watch is there while the application can be asked.
#pragma once

#include <cassert>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "driver/login.h"

namespace redlatch::driver {

class Credentials {
 public:
  // ---- the application
  // `valid_for` may be kNever. The first call, or a watch, makes them those of the client.
  void set(std::string_view user, std::string_view password, Nanos valid_for, Nanos now);
  // It has none now. @return true if that is the first such answer since set().
  bool fail(std::string_view why, Nanos now);
  // From now on it can be asked. A question that was put to the watch before is put again.
  void begin_watch() noexcept;
  void end_watch() noexcept { is_watched_ = is_asked_ = false; }

  // ---- questions
  // True if it is to be asked now: once, until set() or fail().
  bool asks(Nanos now) const { return is_watched_ && !is_asked_ && would_ask(now); }
  // .. if a watch begins now.
  bool would_ask(Nanos now) const { return is_wanted(now) && now >= may_ask_at(now); }
  void on_asked() noexcept;
  // There was no memory for the question: it is repeated when next_due() says so.
  void on_not_asked(Nanos now) noexcept;
  // When asks() may turn true by the time alone.
  Nanos next_due() const;

  // ---- connections
  void begin_wait() noexcept { waiting_count_++; }
  void end_wait() noexcept {
    assert(waiting_count_ > 0);
    waiting_count_--;
  }
  struct Given {
    enum class What : uint8_t { kLogin, kFailure, kWait };
    What what;
    Outcome why{};    // with kFailure
    Nanos until = 0;  // with kWait: to be called again then, and after each event above
  };
  // To a connection that waits until `limit` for valid credentials with a number above `than`:
  // login(), which has the number 0 if there was neither set() nor a watch. The host puts the
  // question afterwards if asks().
  Given give(uint64_t than, Nanos limit, Nanos now) const;
  const Login &login() const { return login_; }
  // The server has refused those with `number`. The host puts the question then if asks().
  void on_refused(uint64_t number) noexcept;
  // @return true if others than those with `number`, which were refused, are worth waiting for; if
  // they are new, the application is asked after a pause.
  bool is_worth_waiting(uint64_t number, Nanos now) const;

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  // Those that wait have not seen yet what was given meanwhile.
  bool is_needed() const { return is_refused_ || (waiting_count_ > 0 && login_.number == 0); }
  bool is_wanted(Nanos now) const { return is_needed() || now >= refresh_at_; }
  bool is_urgent(Nanos now) const { return is_needed() || now >= ends_at_; }
  Nanos may_ask_at(Nanos now) const { return is_urgent(now) ? urgent_at_ : patient_at_; }
  Outcome missing(Nanos now) const;

  bool is_used_ = false;  // they replace those of the settings
  bool is_watched_ = false;
  bool is_asked_ = false;  // the question was put, and there was no answer yet
  bool is_refused_ = false;
  int failure_count_ = 0;
  int waiting_count_ = 0;
  Login login_;
  Nanos given_at_ = 0;
  Nanos ends_at_ = kNever;
  Nanos refresh_at_ = kNever;
  std::string failure_;  // the last answer of the application, if it was fail()
  // The next question is not before: with valid credentials, and for a connection without any.
  Nanos patient_at_ = 0;
  Nanos urgent_at_ = 0;
};

}  // namespace redlatch::driver
