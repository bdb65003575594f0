// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Link: the connections to one server, their output, and the attempt to connect.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/node_status.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread_annotations.h"
#include "driver/log.h"
#include "driver/node_attempt.h"
#include "driver/node_connection.h"
#include "embedded/server_attachment.h"
#include "net/connection.h"
#include "runtime/dialogue_host.h"
#include "runtime/outbox.h"
#include "runtime/runtime_mutex.h"
#include "runtime/sentinel_link.h"

namespace redlatch::runtime {

class Connecting;
struct Link;

// Why a connection is closed that the kernel does not let a set poll.
inline Outcome not_watched(const Settings &settings, int error) noexcept {
  return failure_if_memory(Status::kUnavailable, [&] {
    return "cannot poll the connection to " + settings.address() + ": " + reason_of(error);
  });
}

// An attempt to connect, in a thread of its own. Other threads read the result once is_over.
struct Attempt {
  // Throws std::bad_alloc.
  Attempt(Connecting &in_, Link &link_, const lock::LockService &service);

  Connecting &in;
  Link &link;
  pthread_t thread UNGUARDED("set before it is used"){};
  bool is_over GUARDED_BY(runtime_mutex) = false;
  driver::NodeAttempt machine UNGUARDED("of the attempt until is_over");
  Connections connections UNGUARDED("of the attempt until is_over");
};

struct Link {
  // The descriptors of a link that the background thread polls: each has a key of its own, and each
  // sentinel one from kWatch on. The commands only of one of several, and only for their end.
  enum Polled : uint32_t {
    kMessages,
    kConfirming,
    kCommands,
    kWatch,
    kPolledCount = kWatch + kMaxSentinels,
  };
  // 0 is what the leader would read: the commands of the only link, or the set of all.
  static uint32_t key_of(size_t node, Polled what) {
    return 1 + static_cast<uint32_t>(node) * kPolledCount + what;
  }

  Link(const Settings &settings_, size_t node_, driver::Log &log);
  // True if it reads the slots of a cluster, and has no connection of its own.
  bool reads_slots() const { return settings.is_cluster(); }

  bool is_usable() const REQUIRES(runtime_mutex) { return connection.is_usable(); }
  // Sentinels are watched for it.
  bool wants_watch() const REQUIRES(runtime_mutex) { return connection.is_made() || attempt; }
  void connect(Attempt &ended) REQUIRES(runtime_mutex);
  // Mark the link broken, and end reads and sends there.
  void drop() REQUIRES(runtime_mutex);
  // Close the connections. The caller has the role of leader, and no thread is sending.
  void disconnect() REQUIRES(runtime_mutex);

  // The state as the connection knows it. Throws std::bad_alloc.
  NodeStatus status() const REQUIRES(runtime_mutex);
  void append(std::span<const std::string_view> argv) REQUIRES(runtime_mutex) {
    outbox.append(argv);
    connection.on_append();
  }
  bool begin_send() REQUIRES(runtime_mutex) { return is_usable() && outbox.begin(); }
  // @return true if output is left because the socket is full.
  bool end_send() REQUIRES(runtime_mutex) {
    const auto result = outbox.end();
    if (result == Outbox::Result::kFailed) connection.drop();
    return result == Outbox::Result::kFull;
  }

  const Settings &settings;
  const size_t node;
  // For an embedded server, otherwise nullptr.
  std::unique_ptr<embedded::ServerAttachment> attachment
      UNGUARDED("used by the attempt, then by shut_down()");
  std::unique_ptr<Attempt> attempt GUARDED_BY(runtime_mutex);
  // If sentinels name the server, otherwise nullptr.
  std::unique_ptr<SentinelLink> sentinel UNGUARDED("constant");

  std::unique_ptr<net::Connection> commands UNGUARDED("reset by the leader only");
  // With RESP2.
  std::unique_ptr<net::Connection> messages UNGUARDED("reset by the background thread only");
  SideConnection confirming GUARDED_BY(runtime_mutex);  // on which replicas confirm
  // If it is broken, the leader or the background thread has to disconnect.
  driver::NodeConnection connection GUARDED_BY(runtime_mutex);
  // An end was seen, and is left to the leader.
  bool is_end_unread GUARDED_BY(runtime_mutex) = false;

  Outbox outbox UNGUARDED("one thread sends at a time");

  // The other links that the leader is about to read, or the sending thread to send on. Noted under
  // the mutex, and followed without it: the number of links may grow meanwhile.
  Link *next_ready UNGUARDED("used by the leader") = nullptr;
  Link *next_sender UNGUARDED("used by the sending thread") = nullptr;

  bool is_ready GUARDED_BY(runtime_mutex) = false;  // there is something to receive
  std::vector<resp::ReplyPtr> replies UNGUARDED("used by the leader");
  net::Connection::Received received UNGUARDED("used by the leader"){};
};

}  // namespace redlatch::runtime
