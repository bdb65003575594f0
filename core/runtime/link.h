// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Link: the connections to one server, their output, and the attempt to connect. Guarded by the
// mutex of the runtime, except where a comment says otherwise.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/limits.h"
#include "base/node_status.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/text.h"
#include "embedded/server_attachment.h"
#include "net/connection.h"
#include "runtime/connections.h"
#include "runtime/credentials.h"
#include "runtime/outbox.h"
#include "runtime/sentinel_link.h"

namespace redlatch::runtime {

class Connecting;
struct Link;

// Why a connection is closed that the kernel does not let a set poll. Throws std::bad_alloc.
inline Outcome not_watched(const Settings &settings, int error) {
  return failure(Status::kUnavailable,
                 "cannot poll the connection to " + settings.address() + ": " + reason_of(error));
}

// An attempt to connect, in a thread of its own. Other threads read the result once is_over.
struct Attempt {
  Attempt(Connecting &in_, Link &link_) : in(in_), link(link_) {}

  Connecting &in;
  Link &link;
  pthread_t thread{};
  bool is_over = false;
  std::string channel;
  bool needs_identity = false;
  Connections connections;
  FoundPrimary found;  // of a link with sentinels
  FoundSlots slots;    // of the link that reads the slots of a cluster
  Login login;         // of the application; number 0: there is none
  Outcome outcome;
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

  Link(const Settings &settings_, size_t node_);
  // True if it reads the slots of a cluster, and has no connection of its own.
  bool reads_slots() const { return settings.is_cluster(); }

  bool is_usable() const { return is_connected && !is_broken; }
  // Sentinels are watched for it.
  bool wants_watch() const { return is_connected || attempt; }
  void connect(Connections &&opened);
  // Mark the link broken, and end reads and sends there.
  void drop();
  // Close the connections. The caller has the role of leader, and no thread is sending.
  void disconnect();

  // The state as the connection knows it.
  NodeStatus status() const;
  void append(std::span<const std::string_view> argv) {
    outbox.append(argv);
    auths.on_append();
  }
  bool begin_send() { return is_usable() && outbox.begin(); }
  // @return true if output is left because the socket is full.
  bool end_send() {
    const auto result = outbox.end();
    if (result == Outbox::Result::kFailed) is_broken = true;
    return result == Outbox::Result::kFull;
  }

  const Settings &settings;
  const size_t node;
  // For an embedded server, otherwise nullptr. Used by the attempt, then by shut_down().
  std::unique_ptr<embedded::ServerAttachment> attachment;
  std::optional<Attempt> attempt;
  std::unique_ptr<SentinelLink> sentinel;  // if sentinels name the server, otherwise nullptr

  std::unique_ptr<net::Connection> commands;  // reset by the leader only
  std::unique_ptr<net::Connection> messages;  // with RESP2; reset by the background thread only
  SideConnection confirming;                  // on which replicas confirm
  bool is_connected = false;
  bool was_connected = false;     // at some time
  bool is_broken = false;         // the leader or the background thread has to disconnect
  bool is_end_unread = false;     // an end was seen, and is left to the leader
  bool is_away = false;           // the last attempt to connect failed, and was logged
  ServerFacts facts;              // of the last connection
  std::vector<Finding> findings;  // of the last check of its health
  Outcome failure;                // why it is not connected; ok: it is, or was not tried

  Outbox outbox;
  uint64_t login = 0;  // the number of the last one that the server got on this connection
  bool is_login_refused = false;
  AuthReplies auths;

  // The other links that the leader is about to read, or the sending thread to send on. Noted under
  // the mutex, and followed without it: the number of links may grow meanwhile.
  Link *next_ready = nullptr, *next_sender = nullptr;

  // Used by the leader.
  std::vector<net::ReplyPtr> replies;
  bool is_ready = false;  // there is something to receive
  net::Connection::Received received = net::Connection::Received::kNothing;
};

}  // namespace redlatch::runtime
