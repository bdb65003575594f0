// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SideConnection: a connection of a link beside the one of its commands, with output of its own. It
// is opened in a thread of its own. Only the background thread reads it, sends and closes it, so
// that no caller waits for it: by SideConnections.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "base/thread_annotations.h"
#include "driver/authentication.h"
#include "net/connection.h"
#include "resp/command_writer.h"
#include "runtime/runtime_mutex.h"

namespace redlatch::runtime {

class SideConnections;

struct SideConnection {
  // Opens the connection; in the thread of the attempt, without the mutex. `wake_fd` ends it when
  // it turns readable. Throws std::bad_alloc.
  using Open = std::function<Outcome(int wake_fd, std::unique_ptr<net::Connection> &connection)>;

  struct Attempt {
    Attempt(SideConnections &in_, Open open_) : in(in_), open(std::move(open_)) {}

    SideConnections &in;
    const Open open;
    pthread_t thread UNGUARDED("set before it is used"){};
    bool is_over GUARDED_BY(runtime_mutex) = false;
    std::unique_ptr<net::Connection> connection UNGUARDED("of the attempt until is_over");
    Outcome outcome UNGUARDED("of the attempt until is_over");
  };

  // `key_` is its number among what the background thread polls.
  explicit SideConnection(uint32_t key_) : key(key_) {}

  // Neither open nor being opened.
  bool is_idle() const REQUIRES(runtime_mutex) { return !connection && !attempt; }
  // It is of no use any more: end its reads and sends. Any thread.
  void drop() REQUIRES(runtime_mutex) {
    if (!connection) return;
    is_broken = true;
    connection->shut();
  }
  // Wake the background thread after the last one.
  void append(std::span<const std::string_view> argv) REQUIRES(runtime_mutex) {
    resp::append_command(out, argv);
    auth.on_append();
  }

  const uint32_t key;
  std::unique_ptr<net::Connection> connection UNGUARDED("reset by the background thread only");
  bool is_broken GUARDED_BY(runtime_mutex) = false;  // the background thread has to close it
  std::string out GUARDED_BY(runtime_mutex);         // to be sent
  driver::Authentication auth GUARDED_BY(runtime_mutex);
  std::unique_ptr<Attempt> attempt GUARDED_BY(runtime_mutex);
};

}  // namespace redlatch::runtime
