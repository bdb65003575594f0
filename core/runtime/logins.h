// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Logins: passwords that change. A connection is made with those of that moment, and AUTH is sent
// on the connections that are there when the application gives new ones.
#pragma once

#include <cstdint>
#include <functional>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "driver/login_attempt.h"
#include "runtime/alarm.h"
#include "runtime/client_log.h"
#include "runtime/credentials.h"
#include "runtime/link.h"
#include "runtime/runtime_mutex.h"
#include "runtime/side_connection.h"

namespace redlatch::runtime {

class Logins {
 public:
  Logins(ClientLog &log, Alarm &alarm) : log_(log), alarm_(alarm) {}

  // Those that the application has given.
  Credentials &credentials() { return credentials_; }
  const Credentials &credentials() const { return credentials_; }

  // Runs the attempt until it is over. In a thread that may block, without the mutex. `dial`: calls
  // on_dialled(). Throws std::bad_alloc.
  void hold(driver::LoginAttempt &attempt, const std::function<void()> &dial);

  // Appends AUTH, if the application has given credentials that the server did not get. Without
  // memory the connection is made again. @return whether there is something to send.
  bool authenticate(Link &link) noexcept REQUIRES(runtime_mutex);
  void authenticate(SideConnection &side) noexcept REQUIRES(runtime_mutex);
  // A server has refused this login.
  void note_refused(uint64_t login, Nanos now) REQUIRES(runtime_mutex);

 private:
  ClientLog &log_;
  Alarm &alarm_;
  Credentials credentials_;
};

}  // namespace redlatch::runtime
