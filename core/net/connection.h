// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Connection: one socket to one server: connecting, TLS, sending and receiving.
//
// Calls block at most until their limit, on the clock of base/clock.h. One thread at a time may
// receive and one may send; any thread may call shut(), which ends both.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/dial_failure.h"
#include "base/mutex.h"
#include "base/password.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "net/epoll_set.h"
#include "net/tls.h"
#include "resp/reply_reader.h"

namespace redlatch::net {

class Connection {
 public:
  Connection() = default;
  ~Connection();
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;

  // Connect, over TLS if the settings say so, at most until `limit`, or until `wake_fd` turns
  // readable.
  Outcome dial(const Settings &settings, Nanos limit, int wake_fd);
  // After a dial() that failed: no server listens at the address, or the socket does not exist.
  bool is_nobody_there() const { return is_nobody_there_; }

  // Send as much of `bytes` as possible without waiting. @return how much; nullopt if the
  // connection has ended.
  [[nodiscard]] std::optional<size_t> send(std::string_view bytes);

  enum class Received : uint8_t {
    kSomething,  // bytes, and replies that they complete
    kNothing,    // no bytes within the limit
    kEnded,      // closed, reset, or a protocol error
  };
  // Receive once without waiting.
  Received receive(std::vector<resp::ReplyPtr> &replies) { return receive_once(replies, false); }
  // The last receive did not fill its buffer, so the socket was empty.
  bool is_drained() const { return is_drained_; }
  // Receive once; wait for at most the command timeout of the settings.
  Received receive_waiting(std::vector<resp::ReplyPtr> &replies) {
    return receive_once(replies, true);
  }

  // Wait until the socket is readable, `event` is signalled (it is then cleared), or `limit` has
  // passed. @return false after a signal.
  [[nodiscard]] bool wait_readable(const Event &event, Nanos limit);

  // ---- for handshakes, before other threads use the connection
  // Send all of `bytes` until `limit`, or until `wake_fd` turns readable. @return false if some are
  // left.
  [[nodiscard]] bool send_all(std::string_view bytes, Nanos limit, int wake_fd);
  // Receive once; wait until `limit`, or until `wake_fd` turns readable.
  Received receive_until(Nanos limit, int wake_fd, std::vector<resp::ReplyPtr> &replies);
  // After a failure: that of TLS, if there was one. It reads what is unread.
  Outcome why_ended(std::vector<resp::ReplyPtr> &replies);
  // Send one command, and wait until `limit` for its reply, which is replies[0].
  Outcome ask(std::string_view bytes, Nanos limit, std::vector<resp::ReplyPtr> &replies);

  // End sending and receiving. The descriptor stays open.
  void shut();
  int fd() const { return fd_; }

 private:
  using Buffer = std::array<char, size_t{16} * 1024>;

  // The TLS session and its output. The thread that sends and the one that receives share it.
  struct Sealed {
    Mutex mutex;  // a send under it never waits
    std::unique_ptr<Tls> tls GUARDED_BY(mutex);
    std::string out GUARDED_BY(mutex);       // encrypted, and not yet taken by the socket
    size_t in_flight GUARDED_BY(mutex) = 0;  // how many of the caller's bytes `out` holds
    Password held GUARDED_BY(mutex);         // plain, until TLS has what it needs to encrypt it
  };

  // One thread has the connection then: no mutex is needed.
  DialFailure start_tls(Nanos limit, int wake_fd) NOT_ANALYSED;
  DialFailure connect(const Settings &settings, Nanos limit, int wake_fd);
  DialFailure why_sealed() const;
  DialFailure end_of_connection() const;
  std::optional<size_t> send_plain(std::string_view bytes);
  std::optional<size_t> send_sealed(std::string_view bytes) REQUIRES(sealed_->mutex);
  bool seal(std::string_view part) REQUIRES(sealed_->mutex);
  bool flush_sealed() REQUIRES(sealed_->mutex);
  Received receive_once(std::vector<resp::ReplyPtr> &replies, bool may_wait);
  Received open_sealed(Buffer &buffer, size_t size, std::vector<resp::ReplyPtr> &replies);

  int fd_ = -1;
  bool is_nobody_there_ = false;
  bool is_drained_ = false;
  Peer peer_;
  resp::ReplyReader reader_;
  std::unique_ptr<Sealed> sealed_;  // nullptr: without TLS
};

}  // namespace redlatch::net
