// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Sentinels: the connections to the sentinels of links whose server they name; a PrimaryFollower
// says what follows from their news. All but the survey runs in the background thread.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "runtime/client_log.h"
#include "runtime/links.h"
#include "runtime/parts.h"
#include "runtime/runtime_mutex.h"
#include "runtime/sentinel_link.h"
#include "runtime/shutdown.h"
#include "runtime/side_connections.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Sentinels {
 public:
  explicit Sentinels(const Parts &parts);

  // ---- connections to the sentinels of `link`
  void tend(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  void read(Lock &lock, Link &link, size_t number) REQUIRES(runtime_mutex);
  Nanos next_due() const REQUIRES(runtime_mutex);
  // In the thread of the caller, the only one that waits for it. Without memory nothing is known.
  void survey(Lock &lock) noexcept REQUIRES(runtime_mutex);

  // ---- the shutdown
  bool are_open() const;
  void stop() REQUIRES(runtime_mutex);
  void end(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  void close() REQUIRES(runtime_mutex);

 private:
  void tend(Lock &lock, Link &link, size_t number) REQUIRES(runtime_mutex);
  void dial(Link &link, size_t number) REQUIRES(runtime_mutex);
  void lose(Link &link, size_t number, const Outcome &why) noexcept REQUIRES(runtime_mutex);
  void leave_primary(Link &link) REQUIRES(runtime_mutex);

  Wakeup &wakeup_;
  ClientLog &log_;
  Links &links_;
  Shutdown &shutdown_;
  SideConnections &sides_;
};

}  // namespace redlatch::runtime
