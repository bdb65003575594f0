// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/connection.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "host/clock.h"
#include "host/poll.h"
#include "net/resolve.h"

namespace redlatch::net {

namespace {

using Kind = DialFailure::Kind;

// Wait for `events` on fd. @return 1: they came; 0: the limit passed, or `wake_fd` turned readable;
// -1: errno.
int wait_for(int fd, short events, Nanos limit, int wake_fd) {
  std::array<pollfd, 2> fds{{{fd, events, 0}, {wake_fd, POLLIN, 0}}};
  if (poll_until(fds, limit) < 0) return -1;
  if (fds[1].revents != 0 || boot_now() >= limit) return 0;
  return fds[0].revents != 0 ? 1 : 0;
}

// @return 0, or errno.
int connect_within(int fd, const sockaddr *address, socklen_t size, Nanos limit, int wake_fd) {
  if (connect(fd, address, size) == 0) return 0;
  // EAGAIN: the backlog of a unix socket is full, because the server does not accept.
  if (errno != EINPROGRESS) return errno == EAGAIN ? ETIMEDOUT : errno;
  const int ready = wait_for(fd, POLLOUT, limit, wake_fd);
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t error_size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) return errno;
  return error;
}

// The kernel ends a connection whose peer acknowledges nothing, and asks one that is idle for an
// acknowledgement. Commands have a limit of their own, command_timeout. This one is for connections
// without a command under way, and for what a dead peer leaves in the kernel: four times as long,
// so that it never comes first; 10 s at least, for networks that are busy, and a minute at most.
// Without it an idle connection would last for two hours. A kernel that refuses loses only that.
void set_patience(int fd, Nanos timeout) {
  const auto ms = static_cast<int>(std::clamp<Nanos>(4 * (timeout / kMs), 10'000, 60'000));
  const int idle_s = ms / 2'000;
  const int pause_s = std::max(ms / 10'000, 1);
  const int probe_count = (ms / 1'000 - idle_s) / pause_s;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probe_count, sizeof probe_count);
}

// From here on receiving may block, for at most one command timeout; sending never does.
bool prepare(int fd, bool is_tcp, Nanos timeout) {
  const int on = 1;
  const timeval limit{timeout / 1'000'000'000, timeout % 1'000'000'000 / 1000};
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return false;
  if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) return false;
  if (!is_tcp) return true;
  set_patience(fd, timeout);
  return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
         setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == 0;
}

}  // namespace

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

Outcome Connection::dial(const Settings &settings, Nanos limit, int wake_fd) {
  assert(fd_ < 0 && "a connection that was made is not dialled again");
  peer_ = Peer(settings);
  const DialFailure seen = connect(settings, limit, wake_fd);
  is_nobody_there_ = seen.is_nobody_there();
  return verdict_of(seen, peer_);
}

DialFailure Connection::connect(const Settings &settings, Nanos limit, int wake_fd) {
  AddressList list;
  addrinfo one{};
  sockaddr_un local{};
  const bool is_tcp = settings.socket_path.empty();
  if (is_tcp) {
    auto why = resolve(settings.host, settings.port, limit, wake_fd, list);
    if (!why.ok()) return why;
  } else {
    local.sun_family = AF_UNIX;
    settings.socket_path.copy(local.sun_path, sizeof local.sun_path - 1);
    one.ai_family = AF_UNIX;
    one.ai_addr = reinterpret_cast<sockaddr *>(&local);
    one.ai_addrlen = sizeof local;
  }
  int error = ENOENT;
  for (const addrinfo *at = is_tcp ? list.get() : &one; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      error = errno;
      continue;
    }
    error = connect_within(fd, at->ai_addr, at->ai_addrlen, limit, wake_fd);
    if (error == 0 && prepare(fd, is_tcp, settings.command_timeout)) {
      fd_ = fd;
      return settings.tls.is_on ? start_tls(limit, wake_fd) : DialFailure{};
    }
    if (error == 0) error = errno;
    close(fd);
  }
  return {Kind::kSystem, error, {}};
}

std::optional<size_t> Connection::send(std::string_view bytes) {
  if (!sealed_) return send_plain(bytes);
  const MutexLock lock(sealed_->mutex);
  try {
    return send_sealed(bytes);
  } catch (...) {
    shut();  // encrypted bytes may be lost, and TLS cannot skip any
    return std::nullopt;
  }
}

std::optional<size_t> Connection::send_plain(std::string_view bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const std::string_view rest = bytes.substr(sent);
    const ssize_t n = ::send(fd_, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      shut();
      return std::nullopt;
    }
  }
  return sent;
}

bool Connection::send_all(std::string_view bytes, Nanos limit, int wake_fd) {
  for (;;) {
    const auto sent = send(bytes);
    if (!sent) return false;
    bytes.remove_prefix(*sent);
    if (bytes.empty()) return true;
    if (wait_for(fd_, POLLOUT, limit, wake_fd) != 1) return false;
  }
}

Connection::Received Connection::receive_once(std::vector<resp::ReplyPtr> &replies, bool may_wait) {
  Buffer buffer;
  const ssize_t n = recv(fd_, buffer.data(), buffer.size(), may_wait ? 0 : MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return Received::kNothing;
  if (n <= 0) return Received::kEnded;
  is_drained_ = static_cast<size_t>(n) < buffer.size();
  const std::span<const char> bytes(buffer.data(), static_cast<size_t>(n));
  try {
    if (sealed_) return open_sealed(buffer, bytes.size(), replies);
    return reader_.feed(bytes, replies) ? Received::kSomething : Received::kEnded;
  } catch (...) {
    return Received::kEnded;  // a reply is lost, so later ones would answer the wrong commands
  }
}

bool Connection::wait_readable(const Event &event, Nanos limit) {
  std::array<pollfd, 2> fds{{{fd_, POLLIN, 0}, {event.fd(), POLLIN, 0}}};
  timespec left{};
  const int n = ppoll(fds.data(), fds.size(), remaining_time(limit, left), nullptr);
  if (n > 0 && fds[1].revents != 0) event.clear();
  return n >= 0 || errno != EINTR;
}

Connection::Received Connection::receive_until(Nanos limit, int wake_fd,
                                               std::vector<resp::ReplyPtr> &replies) {
  if (sealed_) {
    // The server may have sent something together with the end of the TLS handshake.
    Buffer buffer;
    const size_t count = replies.size();
    if (open_sealed(buffer, 0, replies) == Received::kEnded) return Received::kEnded;
    if (replies.size() > count) return Received::kSomething;
  }
  for (;;) {
    if (wait_for(fd_, POLLIN, limit, wake_fd) == 0) return Received::kNothing;
    const auto received = receive(replies);
    if (received != Received::kNothing) return received;
  }
}

// A TLS alert with the reason may still be unread.
Outcome Connection::why_ended(std::vector<resp::ReplyPtr> &replies) {
  if (!sealed_) return {};
  if (why_sealed().ok()) (void)receive(replies);
  return verdict_of(why_sealed(), peer_);
}

Outcome Connection::ask(std::string_view bytes, Nanos limit, std::vector<resp::ReplyPtr> &replies) {
  replies.clear();
  bool is_open = send_all(bytes, limit, -1);
  while (is_open && replies.empty()) {
    const auto received = receive_until(limit, -1, replies);
    if (received == Received::kNothing) return verdict_of({Kind::kLate, 0, {}}, peer_);
    is_open = received != Received::kEnded;
  }
  return replies.empty() ? verdict_of(end_of_connection(), peer_) : Outcome{};
}

// The failure of TLS, if there was one.
DialFailure Connection::why_sealed() const {
  const MutexLock lock(sealed_->mutex);
  return sealed_->tls->why();
}

DialFailure Connection::end_of_connection() const {
  if (sealed_) {
    if (auto why = why_sealed(); !why.ok()) return why;
  }
  return {Kind::kClosed, 0, {}};
}

void Connection::shut() {
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

// ---- TLS ---------------------------------------------------------------------------------------

DialFailure Connection::start_tls(Nanos limit, int wake_fd) {
  auto sealed = std::make_unique<Sealed>();
  if (auto why = Tls::make(peer_, sealed->tls); !why.ok()) return why;
  sealed_ = std::move(sealed);
  Tls &tls = *sealed_->tls;
  const DialFailure late{Kind::kTlsLate, 0, {}};
  Buffer buffer;
  for (;;) {
    const Tls::Step step = tls.shake_hands();
    tls.take(sealed_->out);
    bool is_sent = flush_sealed();
    while (is_sent && !sealed_->out.empty()) {
      if (wait_for(fd_, POLLOUT, limit, wake_fd) == 0) return late;
      is_sent = flush_sealed();
    }
    if (step == Tls::Step::kFailed) return tls.why();  // after the alert was sent
    if (is_sent && step == Tls::Step::kDone) return {};
    // If the send failed, an alert with the reason may still be unread.
    if (is_sent && wait_for(fd_, POLLIN, limit, wake_fd) == 0) return late;
    const ssize_t n = recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && is_sent && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) return end_of_connection();
    tls.put({buffer.data(), static_cast<size_t>(n)});
  }
}

// Earlier encrypted bytes go first. A caller repeats bytes that are not reported as sent, so a part
// counts as sent only once the socket has taken all of its encrypted bytes.
std::optional<size_t> Connection::send_sealed(std::string_view bytes) {
  constexpr size_t kPart = size_t{16} * 1024;  // one record of TLS
  for (size_t sent = 0;;) {
    if (!flush_sealed()) return std::nullopt;
    if (!sealed_->out.empty()) return sent;
    sent += std::exchange(sealed_->in_flight, 0);
    if (sent >= bytes.size()) return sent;
    const std::string_view part = bytes.substr(sent, kPart);
    if (!sealed_->held.empty()) {
      sealed_->held.append(part);
      sent += part.size();
    } else if (seal(part)) {
      sealed_->in_flight = part.size();
    } else {
      shut();
      return std::nullopt;
    }
  }
}

// A part that has to be held counts as sent: the thread that receives encrypts and sends it.
bool Connection::seal(std::string_view part) {
  const Tls::Step step = sealed_->tls->write(part);
  if (step == Tls::Step::kNeedsMore) sealed_->held = part;
  sealed_->tls->take(sealed_->out);
  return step != Tls::Step::kFailed;
}

bool Connection::flush_sealed() {
  const auto sent = send_plain(sealed_->out);
  sealed_->out.erase(0, sent.value_or(0));
  return sent.has_value();
}

// `buffer` holds `size` bytes that were received, and is used for their plain text afterwards.
Connection::Received Connection::open_sealed(Buffer &buffer, size_t size,
                                             std::vector<resp::ReplyPtr> &replies) {
  for (;; size = 0) {
    std::optional<size_t> n;
    {
      const MutexLock lock(sealed_->mutex);
      if (size > 0) sealed_->tls->put({buffer.data(), size});
      n = sealed_->tls->read(buffer);
      // TLS itself may have to reply, for example with new keys. After a failure the next receive
      // finds the end of the socket, after what has already arrived.
      const Password held = std::exchange(sealed_->held, {});
      if (n && !held.empty() && !seal(held)) shut();
      sealed_->tls->take(sealed_->out);
      (void)flush_sealed();
    }
    if (!n) return Received::kEnded;
    if (*n == 0) return Received::kSomething;
    if (!reader_.feed({buffer.data(), *n}, replies)) return Received::kEnded;
  }
}

}  // namespace redlatch::net
