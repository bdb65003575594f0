// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Event and EpollSet: the descriptors that a thread polls in place of a connection, or beside it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace redlatch::net {

// An eventfd. Any thread.
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
  // Once no other thread uses it. From then on signal() and clear() do nothing.
  void close();

 private:
  int fd_;
};

// A timer of CLOCK_BOOTTIME: it counts suspended time, which the timeouts of polls do not. One
// thread.
class BootTimer {
 public:
  BootTimer();
  ~BootTimer();
  BootTimer(const BootTimer &) = delete;
  BootTimer &operator=(const BootTimer &) = delete;

  int fd() const { return fd_; }
  // Turn readable at `limit`, or before. A timer that is set to an earlier time stays as it is: to
  // wake once too often costs less than to set it for each sleep.
  void set(Nanos limit);
  // It was readable.
  void clear();

 private:
  int fd_;
  Nanos at_ = kNever;
};

// An epoll set of one event and a few descriptors, each with a number, its key. The end of a
// descriptor is always reported; input and room to send only while that interest is set. To change
// the interest costs less than to wake the thread that sleeps on the set. The set's own descriptor
// is readable while the set has something to report, so it may be a member of another set. A
// descriptor must be removed before it is closed: otherwise it would stay while a forked child has
// it open.
class EpollSet {
 public:
  EpollSet();
  ~EpollSet();
  EpollSet(const EpollSet &) = delete;
  EpollSet &operator=(const EpollSet &) = delete;

  bool is_open() const { return error_ == 0; }
  // Why it is not open; 0: it is.
  int error() const { return error_; }
  int fd() const { return epoll_; }
  const Event &event() const { return event_; }

  enum Interest : uint32_t { kEnd = 0, kInput = 1, kRoom = 2 };
  // @return 0, or why the descriptor is not polled, or not for this: the kernel may refuse to add
  // one, as when the user has fs.epoll.max_user_watches of them. A descriptor that is there already
  // stays as it is, and one that is not there has no interest to change.
  [[nodiscard]] int add(int fd, uint32_t key, uint32_t interest = kInput) const;
  [[nodiscard]] int set(int fd, uint32_t key, uint32_t interest) const;
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
    std::array<Ready, 16> ready;  // what does not fit is reported by the next call

    const Ready *begin() const { return ready.data(); }
    const Ready *end() const { return ready.data() + count; }
  };
  // Let wait() count suspended time. Only for a set on which one thread waits. @return 0, or why it
  // does not.
  [[nodiscard]] int use_boot_timer();
  // Sleep until a descriptor is ready, the event is signalled (it is then cleared), a signal comes,
  // or `limit` has passed.
  Seen wait(Nanos limit);
  // Once no other thread uses it. From then on nothing is polled.
  void close();

 private:
  int control(int operation, int fd, uint32_t key, uint32_t events) const;

  Event event_;
  int epoll_;
  int error_ = 0;
  std::optional<BootTimer> timer_;
};

}  // namespace redlatch::net
