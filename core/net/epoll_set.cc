// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/epoll_set.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <limits>
#include <tuple>
#include <utility>

#include "host/clock.h"

namespace redlatch::net {

namespace {

constexpr uint32_t kEventKey = UINT32_MAX;
constexpr uint32_t kTimerKey = UINT32_MAX - 1;

uint32_t events_of(uint32_t interest) {
  uint32_t events = EPOLLRDHUP;
  if ((interest & EpollSet::kInput) != 0) events |= EPOLLIN;
  if ((interest & EpollSet::kRoom) != 0) events |= EPOLLOUT;
  return events;
}

// Rounded up: a thread that wakes before the limit would only sleep again.
int milliseconds_until(Nanos limit) {
  if (limit == kNever) return -1;
  const Nanos left = (limit - boot_now() + kMs - 1) / kMs;
  return static_cast<int>(std::clamp<Nanos>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

Event::Event() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Event::~Event() { close(); }

void Event::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Event::signal() const { eventfd_write(fd_, 1); }

void Event::clear() const {
  eventfd_t value = 0;
  eventfd_read(fd_, &value);
}

BootTimer::BootTimer() : fd_(timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {}

BootTimer::~BootTimer() {
  if (fd_ >= 0) close(fd_);
}

void BootTimer::set(Nanos limit) {
  if (limit >= at_) return;
  constexpr Nanos kSecond = 1000 * kMs;
  const Nanos at = std::max<Nanos>(limit, 1);  // 0 would disarm it
  itimerspec time{};
  time.it_value = {at / kSecond, at % kSecond};
  if (timerfd_settime(fd_, TFD_TIMER_ABSTIME, &time, nullptr) == 0) at_ = limit;
}

void BootTimer::clear() {
  uint64_t count = 0;
  if (read(fd_, &count, sizeof count) == sizeof count) at_ = kNever;
}

EpollSet::EpollSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0 || !event_.is_open()) {
    error_ = errno;  // of the last of the two, which fail for the same reasons
    return;
  }
  fcntl(epoll_, F_SETFL, O_NONBLOCK);  // never read, but some event loops require the flag
  error_ = control(EPOLL_CTL_ADD, event_.fd(), kEventKey, EPOLLIN);
}

EpollSet::~EpollSet() { close(); }

void EpollSet::close() {
  timer_.reset();
  event_.close();
  if (epoll_ >= 0) ::close(std::exchange(epoll_, -1));
  error_ = EBADF;
}

int EpollSet::control(int operation, int fd, uint32_t key, uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.u32 = key;
  return epoll_ctl(epoll_, operation, fd, &event) == 0 ? 0 : errno;
}

int EpollSet::add(int fd, uint32_t key, uint32_t interest) const {
  assert(key < kTimerKey);
  const int error = control(EPOLL_CTL_ADD, fd, key, events_of(interest));
  return error == EEXIST ? 0 : error;
}

int EpollSet::set(int fd, uint32_t key, uint32_t interest) const {
  const int error = control(EPOLL_CTL_MOD, fd, key, events_of(interest));
  return error == ENOENT ? 0 : error;
}

void EpollSet::remove(int fd) const { (void)control(EPOLL_CTL_DEL, fd, 0, 0); }

int EpollSet::use_boot_timer() {
  if (!is_open()) return error_;
  timer_.emplace();
  const int error =
      timer_->fd() < 0 ? errno : control(EPOLL_CTL_ADD, timer_->fd(), kTimerKey, EPOLLIN);
  if (error != 0) timer_.reset();
  return error;
}

EpollSet::Seen EpollSet::wait(Nanos limit) {
  Seen seen;
  if (timer_) timer_->set(limit);
  std::array<epoll_event, std::tuple_size_v<decltype(Seen::ready)>> events;
  const int count = epoll_wait(epoll_, events.data(), events.size(), milliseconds_until(limit));
  seen.is_interrupted = count < 0 && errno == EINTR;
  for (int i = 0; i < count; i++) {
    const epoll_event &event = events[static_cast<size_t>(i)];
    if (event.data.u32 == kEventKey) {
      event_.clear();
      continue;
    }
    if (event.data.u32 == kTimerKey) {
      timer_->clear();
      continue;
    }
    Ready &ready = seen.ready[seen.count++];
    ready.key = event.data.u32;
    ready.is_readable = (event.events & EPOLLIN) != 0;
    ready.has_room = (event.events & EPOLLOUT) != 0;
    ready.is_ended = (event.events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0;
  }
  return seen;
}

}  // namespace redlatch::net
