// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SideConnections: opens, reads, sends and closes side connections. All of it runs in the
// background thread, except the attempts.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/thread_annotations.h"
#include "net/connection.h"
#include "runtime/alarm.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/runtime_mutex.h"
#include "runtime/shutdown.h"
#include "runtime/side_connection.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class SideConnections {
 public:
  explicit SideConnections(const Parts &parts);

  // Throws std::bad_alloc. @return a failure if no thread can be started.
  Outcome open(SideConnection &side, SideConnection::Open open) REQUIRES(runtime_mutex);
  // @return the result of the attempt, once it is over: the connection is open, or why not.
  std::optional<Outcome> end_attempt(Lock &lock, SideConnection &side) REQUIRES(runtime_mutex);
  // @return false if the connection has ended. Replies and pushes may have come before.
  bool read(Lock &lock, SideConnection &side, std::vector<resp::ReplyPtr> &replies)
      REQUIRES(runtime_mutex);
  // Sends what the socket takes; the rest follows when it has room. @return false if the connection
  // has ended.
  bool send(SideConnection &side) REQUIRES(runtime_mutex);
  void close(SideConnection &side) noexcept REQUIRES(runtime_mutex);
  // At the end of the background thread.
  void end(Lock &lock, SideConnection &side) REQUIRES(runtime_mutex);

 private:
  static void *attempt_main(void *attempt);
  void attempt(SideConnection::Attempt &mine);

  Wakeup &wakeup_;
  Alarm &alarm_;
  Shutdown &shutdown_;
  Polling &polling_;
};

}  // namespace redlatch::runtime
