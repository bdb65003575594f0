// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Connecting: the attempts to connect, each in a thread of its own for as long as it takes, and
// what the background thread does with their results.
#pragma once

#include "base/thread_annotations.h"
#include "lock/service.h"
#include "runtime/alarm.h"
#include "runtime/client_log.h"
#include "runtime/link.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/runtime_mutex.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/transfer.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Connecting {
 public:
  explicit Connecting(const Parts &parts);

  // In the background thread: ends an attempt that is over, and starts one that is due.
  void tend(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  // At its end.
  void end(Lock &lock, Link &link) REQUIRES(runtime_mutex);

 private:
  void start(Link &link) REQUIRES(runtime_mutex);
  static void *attempt_main(void *attempt);
  void attempt(Attempt &mine);
  void dial(Attempt &mine) const;
  void join(Lock &lock, const Attempt &attempt) REQUIRES(runtime_mutex);
  void finish(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  bool become_cluster(Attempt &ended) REQUIRES(runtime_mutex);
  void open(Link &link, Attempt &ended) REQUIRES(runtime_mutex);

  Wakeup &wakeup_;
  ClientLog &log_;
  Alarm &alarm_;
  Service &service_;
  Shutdown &shutdown_;
  Polling &polling_;
  Logins &logins_;
  Transfer &transfer_;
};

}  // namespace redlatch::runtime
