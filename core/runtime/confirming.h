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
#include "runtime/alarm.h"
#include "runtime/client_log.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/side_connections.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Confirming {
 public:
  explicit Confirming(const Parts &parts);

  // Any thread.
  void append(size_t node, std::span<const std::string_view> argv);
  void drop(size_t node);

  void tend(Lock &lock, Link &link);
  void read(Lock &lock, Link &link);
  void send(Link &link) noexcept;

 private:
  void start(Link &link);
  void fail(const Link &link, const Outcome &why) noexcept;
  void lose(Link &link) noexcept;

  ClientLog &log_;
  Alarm &alarm_;
  Service &service_;
  Links &links_;
  Shutdown &shutdown_;
  Logins &logins_;
  SideConnections &sides_;
};

}  // namespace redlatch::runtime
