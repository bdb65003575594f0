// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Event and EpollSet: what a sleeping thread polls besides, or instead of, the connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace redlatch::net {

// Wait until `fd` is readable or at its end, until `limit`, or until `wake_fd` turns readable.
// @return whether `fd` is. -1: no descriptor.
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

// An epoll set of one event and a few descriptors, each known by a number, its key. Of a descriptor
// the end is seen always, input and room to send while asked for. To stop asking costs less than
// to wake the thread that sleeps on the set. The set's own descriptor is readable while something
// is to be seen, so that it may be a member of another set. A descriptor must be removed before it
// is closed: if a forked child has it open as well, it would stay.
class EpollSet {
 public:
  EpollSet();
  ~EpollSet();
  EpollSet(const EpollSet &) = delete;
  EpollSet &operator=(const EpollSet &) = delete;

  bool is_open() const { return epoll_ >= 0 && event_.is_open(); }
  int fd() const { return epoll_; }
  const Event &event() const { return event_; }

  enum Interest : uint32_t { kEnd = 0, kInput = 1, kRoom = 2 };
  void add(int fd, uint32_t key, uint32_t interest = kInput) const;
  void set(int fd, uint32_t key, uint32_t interest) const;
  void remove(int fd) const;

  struct Ready {
    uint32_t key = 0;
    bool is_readable = false;
    bool has_room = false;
    bool is_ended = false;  // closed by the server, reset, or shut
  };
  struct Seen {
    bool is_interrupted = false;  // by a signal
    size_t count = 0;
    std::array<Ready, 16> ready;  // what does not fit is seen the next time

    const Ready *begin() const { return ready.data(); }
    const Ready *end() const { return ready.data() + count; }
  };
  // Sleep until there is something to be seen, the event is signalled (it is then cleared), a
  // signal comes, or `limit` has passed.
  Seen wait(Nanos limit) const;

 private:
  void control(int operation, int fd, uint32_t key, uint32_t events) const;

  Event event_;
  int epoll_;
};

}  // namespace redlatch::net
