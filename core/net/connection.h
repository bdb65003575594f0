// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Connection: one socket to one server, and the only place with hiredis and socket calls.
//
// It blocks only as long as it is told to. One thread at a time may receive and one may send;
// shut() may be called by any, and ends both. Time limits are on the clock of base/clock.h.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "net/epoll_set.h"
#include "net/reply_reader.h"
#include "net/tls.h"

namespace redlatch::net {

// Append one command in RESP to `out`. Throws std::bad_alloc and leaves `out` as it was.
void append_command(std::string &out, std::span<const std::string_view> argv);

class Connection {
 public:
  Connection() = default;
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  // Connect, by TLS if the settings say so, at most until `limit`, or until `wake_fd` turns
  // readable.
  Outcome dial(const Settings &settings, Nanos limit, int wake_fd);
  // After a dial() that failed: no server listens there, or there is no such socket.
  bool is_nobody_there() const { return is_nobody_there_; }

  // Send as much of `bytes` as goes without waiting. @return how much; nothing: it has ended.
  [[nodiscard]] std::optional<size_t> send(std::string_view bytes);

  enum class Received : uint8_t {
    kSomething,  // bytes came, maybe whole replies
    kNothing,    // none within the limit
    kEnded,      // closed, reset, or no protocol that we speak
  };
  // Receive once without waiting.
  Received receive(std::vector<ReplyPtr> &replies) { return receive_once(replies, false); }
  // The last receive found all that was there.
  bool is_drained() const { return is_drained_; }
  // Receive once; wait at most the command time limit of the settings.
  Received receive_waiting(std::vector<ReplyPtr> &replies) { return receive_once(replies, true); }

  // Wait until it is readable, `event` is signalled (it is then cleared), or `limit` has passed.
  // @return false after a signal.
  [[nodiscard]] bool wait_readable(const Event &event, Nanos limit);

  // Send `bytes` and wait for `count` replies until `limit`; pushes between them are dropped. Only
  // before the connection is shared.
  Outcome exchange(std::string_view bytes, size_t count, Nanos limit, int wake_fd,
                   std::vector<ReplyPtr> &replies);

  // End sending and receiving, now and for ever. The descriptor stays open.
  void shut();
  int fd() const { return fd_; }

 private:
  using Buffer = std::array<char, size_t{16} * 1024>;

  // What lies between the bytes and the socket. Who sends and who receives share it.
  struct Sealed {
    std::mutex mutex;  // of all below; sending under it never waits
    std::unique_ptr<Tls> tls;
    std::string out;       // not yet taken by the socket
    size_t in_flight = 0;  // how many of the caller's bytes that seals
    std::string held;      // what cannot be sealed before something more has come
  };

  Outcome start_tls(const Settings &settings, Nanos limit, int wake_fd);
  Outcome end_of_connection() const;
  std::optional<size_t> send_plain(std::string_view bytes);
  std::optional<size_t> send_sealed(std::string_view bytes);
  bool seal(std::string_view part);
  bool flush_sealed();
  bool send_all(std::string_view bytes, Nanos limit, int wake_fd);
  Received receive_once(std::vector<ReplyPtr> &replies, bool may_wait);
  Received open_sealed(Buffer &buffer, size_t size, std::vector<ReplyPtr> &replies);

  int fd_ = -1;
  bool is_nobody_there_ = false;
  bool is_drained_ = false;
  std::string address_;
  ReplyReader reader_;
  std::unique_ptr<Sealed> sealed_;  // nullptr: without TLS
};

}  // namespace redlatch::net
