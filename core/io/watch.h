// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Event and Watch: what a sleeping thread polls besides, or instead of, the connection.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace redlatch::io {

// Wait until `fd` is readable or at its end, until `limit`, or until `wake_fd` turns readable.
// @return whether `fd` is. A descriptor of -1 is none.
bool await_input(int fd, Nanos limit, int wake_fd);

// An event descriptor. Any thread.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void signal() const;
  void clear() const;

 private:
  int fd_;
};

// An epoll set of one event and one socket, of which it sees the end always, data while armed, and
// room to send while asked to; and maybe a second one, always armed. Disarming a socket on which
// another thread sleeps costs less than waking that thread.
class Watch {
 public:
  Watch();
  ~Watch();
  Watch(const Watch &) = delete;
  Watch &operator=(const Watch &) = delete;

  bool is_open() const { return epoll_ >= 0 && event_.is_open(); }
  const Event &event() const { return event_; }
  // A closed socket leaves by itself.
  void add(int socket);
  void arm(int socket, bool is_on);
  void await_room(int socket, bool is_on);
  void add_second(int socket);
  // One that has ended would wake its sleeper for ever.
  void remove(int socket);

  struct Seen {
    bool is_readable = false;
    bool has_room = false;
    bool is_ended = false;         // closed by the server, reset, or shut
    bool is_second_ready = false;  // data, or the end
    bool is_interrupted = false;
  };
  // Sleep until the socket, if armed, is readable, or, if asked for, writable; the event is
  // signalled (it is then cleared); a signal comes; or `limit` has passed.
  Seen wait(Nanos limit) const;

 private:
  void update(int socket) const;

  Event event_;
  int epoll_;
  int second_ = -1;
  bool is_armed_ = false;
  bool is_room_awaited_ = false;
};

// An epoll set of one event and any number of sockets, each known by a number. Its own descriptor
// is readable while one of them is, so that it may stand in another set.
class Poller {
 public:
  Poller();
  ~Poller();
  Poller(const Poller &) = delete;
  Poller &operator=(const Poller &) = delete;

  bool is_open() const { return epoll_ >= 0 && event_.is_open(); }
  int fd() const { return epoll_; }
  const Event &event() const { return event_; }
  // A closed socket leaves by itself.
  void add(int socket, uint32_t key) const;
  void remove(int socket) const;
  void await_room(int socket, uint32_t key, bool is_on) const;

  struct Ready {
    uint32_t key;
    bool is_readable;  // or at its end
    bool has_room;
  };
  // Sleep until some are ready, the event is signalled (it is then cleared), `limit` has passed, or
  // a signal comes: then false.
  [[nodiscard]] bool wait(Nanos limit, std::vector<Ready> &ready) const;

 private:
  static constexpr uint32_t kEventKey = UINT32_MAX;

  Event event_;
  int epoll_;
};

}  // namespace redlatch::io
