// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Confirming: the side connection of each link on which replicas confirm. It is opened when the
// service wants it. Other threads append to it and drop it; the rest runs in the background thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/thread_annotations.h"
#include "runtime/alarm.h"
#include "runtime/client_log.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/runtime_mutex.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/side_connections.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Confirming {
 public:
  explicit Confirming(const Parts &parts);

  // Any thread.
  void append(size_t node, std::span<const std::string_view> argv) REQUIRES(runtime_mutex);
  void drop(size_t node) REQUIRES(runtime_mutex);

  void tend(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  void read(Lock &lock, Link &link) REQUIRES(runtime_mutex);
  void send(Link &link) noexcept REQUIRES(runtime_mutex);

 private:
  void start(Link &link) REQUIRES(runtime_mutex);
  Outcome connect(const Settings &settings, int wake_fd,
                  std::unique_ptr<net::Connection> &connection);
  void fail(const Link &link, const Outcome &why) noexcept REQUIRES(runtime_mutex);
  void lose(Link &link) noexcept REQUIRES(runtime_mutex);

  ClientLog &log_;
  Alarm &alarm_;
  Service &service_;
  Links &links_;
  Shutdown &shutdown_;
  Logins &logins_;
  SideConnections &sides_;
};

}  // namespace redlatch::runtime
