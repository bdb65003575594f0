// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "io/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

namespace redlatch::io {

namespace {

void control(int epoll, int operation, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll, operation, fd, &event);
}

// Rounded up: waking before the limit would only mean to sleep again.
int milliseconds_until(Nanos limit) {
  if (limit == kNever) return -1;
  const Nanos left = (limit - boot_now() + kMs - 1) / kMs;
  return static_cast<int>(std::clamp<Nanos>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

bool await_input(int fd, Nanos limit, int wake_fd) {
  for (;;) {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {wake_fd, POLLIN, 0}}};
    const int n = poll(fds.data(), fds.size(), milliseconds_until(limit));
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) return fds[0].revents != 0;
    if (n == 0 && boot_now() >= limit) return false;
  }
}

Event::Event() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Event::~Event() {
  if (fd_ >= 0) close(fd_);
}

void Event::signal() const { eventfd_write(fd_, 1); }

void Event::clear() const {
  eventfd_t value = 0;
  eventfd_read(fd_, &value);
}

Watch::Watch() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (is_open()) control(epoll_, EPOLL_CTL_ADD, event_.fd(), EPOLLIN);
}

Watch::~Watch() {
  if (epoll_ >= 0) close(epoll_);
}

void Watch::add(int socket) {
  if (second_ == socket) second_ = -1;  // that one was closed, and its number is used again
  is_armed_ = false;
  is_room_awaited_ = false;
  control(epoll_, EPOLL_CTL_ADD, socket, EPOLLRDHUP);
}

void Watch::arm(int socket, bool is_on) {
  is_armed_ = is_on;
  update(socket);
}

void Watch::await_room(int socket, bool is_on) {
  is_room_awaited_ = is_on;
  update(socket);
}

void Watch::update(int socket) const {
  uint32_t events = EPOLLRDHUP;
  if (is_armed_) events |= EPOLLIN;
  if (is_room_awaited_) events |= EPOLLOUT;
  control(epoll_, EPOLL_CTL_MOD, socket, events);
}

void Watch::add_second(int socket) {
  second_ = socket;
  control(epoll_, EPOLL_CTL_ADD, socket, EPOLLIN | EPOLLRDHUP);
}

void Watch::remove(int socket) { control(epoll_, EPOLL_CTL_DEL, socket, 0); }

Watch::Seen Watch::wait(Nanos limit) const {
  Seen seen;
  std::array<epoll_event, 3> events{};
  const int count = epoll_wait(epoll_, events.data(), events.size(), milliseconds_until(limit));
  seen.is_interrupted = count < 0 && errno == EINTR;
  for (int i = 0; i < count; i++) {
    const epoll_event &event = events[static_cast<size_t>(i)];
    if (event.data.fd == event_.fd()) {
      event_.clear();
    } else if (event.data.fd == second_) {
      seen.is_second_ready = true;
    } else {
      seen.is_readable = (event.events & EPOLLIN) != 0;
      seen.has_room = (event.events & EPOLLOUT) != 0;
      seen.is_ended = (event.events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
    }
  }
  return seen;
}

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!is_open()) return;
  fcntl(epoll_, F_SETFL, O_NONBLOCK);  // nothing reads it; some event loops ask for it
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = kEventKey;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, event_.fd(), &event);
}

Poller::~Poller() {
  if (epoll_ >= 0) close(epoll_);
}

void Poller::add(int socket, uint32_t key) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.u32 = key;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
}

void Poller::remove(int socket) const { control(epoll_, EPOLL_CTL_DEL, socket, 0); }

void Poller::await_room(int socket, uint32_t key, bool is_on) const {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP;
  if (is_on) event.events |= EPOLLOUT;
  event.data.u32 = key;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event);
}

bool Poller::wait(Nanos limit, std::vector<Ready> &ready) const {
  ready.clear();
  std::array<epoll_event, 32> events{};
  const int count = epoll_wait(epoll_, events.data(), events.size(), milliseconds_until(limit));
  for (int i = 0; i < count; i++) {
    const epoll_event &event = events[static_cast<size_t>(i)];
    if (event.data.u32 == kEventKey) {
      event_.clear();
    } else {
      ready.push_back(
          {event.data.u32, (event.events & ~EPOLLOUT) != 0, (event.events & EPOLLOUT) != 0});
    }
  }
  return count >= 0 || errno != EINTR;
}

}  // namespace redlatch::io
