// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// BackgroundThread: the library's own thread. It runs the service's timers, connects, and is the
// last resort as follower: it reads for requests that no caller waits for, if there is no reader.
// Before it ends anything as too late, it reads in place of a late reader. It starts with the first
// request and ends with the shutdown.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "runtime/alarm.h"
#include "runtime/confirming.h"
#include "runtime/connecting.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/roles.h"
#include "runtime/runtime_mutex.h"
#include "runtime/sentinels.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/side_connections.h"
#include "runtime/transfer.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class BackgroundThread {
 public:
  explicit BackgroundThread(const Parts &parts);

  bool has_started() const REQUIRES(runtime_mutex) { return has_started_; }
  // Throws NoThread.
  void start() REQUIRES(runtime_mutex);
  // After Shutdown::stop().
  void join(Lock &lock) REQUIRES(runtime_mutex);

 private:
  static void *main(void *thread);
  void run();
  void run_once(Lock &lock) REQUIRES(runtime_mutex);
  void on_ready(Lock &lock, uint32_t number) REQUIRES(runtime_mutex);
  void tick(Lock &lock) REQUIRES(runtime_mutex);
  Nanos next_due(Nanos now) const REQUIRES(runtime_mutex);
  void read_messages(Lock &lock, Link &link) REQUIRES(runtime_mutex);

  Wakeup &wakeup_;
  Alarm &alarm_;
  Service &service_;
  Links &links_;
  Shutdown &shutdown_;
  Polling &polling_;
  Logins &logins_;
  Transfer &transfer_;
  Roles &roles_;
  SideConnections &sides_;
  Confirming &confirming_;
  Sentinels &sentinels_;
  Connecting &connecting_;

  pthread_t thread_ UNGUARDED("set before it is used"){};
  bool has_started_ GUARDED_BY(runtime_mutex) = false;
};

}  // namespace redlatch::runtime
