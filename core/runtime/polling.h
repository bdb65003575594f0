// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Polling: which thread polls which descriptor. It owns the sets that the threads poll, the queue
// that reads, and the roles; it makes the sets follow the roles.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/checked.h"
#include "base/thread_annotations.h"
#include "net/epoll_set.h"
#include "runtime/alarm.h"
#include "runtime/completion_queue.h"
#include "runtime/links.h"
#include "runtime/reading_roles.h"
#include "runtime/runtime_mutex.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Polling {
 public:
  // `is_several`: there are several links, or may be some day.
  Polling(Wakeup &wakeup, Alarm &alarm, Links &links, bool is_several);

  // Once, before the first connection. @return 0: all descriptors are open, and polled.
  int open() REQUIRES(runtime_mutex);
  // Why the sleeps of the background thread do not count suspended time; 0: they do.
  int timer_error() const { return timer_error_; }
  void close() REQUIRES(runtime_mutex);

  // ---- the roles
  const ReadingRoles *operator->() const REQUIRES(runtime_mutex) { return &roles_.get(); }
  template <class... Given>
  void change(bool (ReadingRoles::*event)(Given...), std::type_identity_t<Given>... given)
      REQUIRES(runtime_mutex) {
    note_change(roles_.give(event, given...));
  }
  void set_follower(Waiter &waiter) REQUIRES(runtime_mutex);
  void follow_in_background() REQUIRES(runtime_mutex);
  void stop_following() REQUIRES(runtime_mutex);
  void set_armed(bool is_on) REQUIRES(runtime_mutex);

  // ---- what is polled
  bool has_several() const REQUIRES(runtime_mutex) { return all_.has_value(); }
  // The server is one of several after all. @return 0, or errno: become_one() is to follow.
  [[nodiscard]] int become_several() REQUIRES(runtime_mutex);
  void become_one() REQUIRES(runtime_mutex) { all_.reset(); }
  // Exists if there are several links: their commands. Polled by the leader.
  net::EpollSet &all() REQUIRES(runtime_mutex) {
    assert(has_several());
    return *all_;
  }
  net::EpollSet &callers() { return callers_; }        // polled by the follower
  net::EpollSet &background() { return background_; }  // polled by the background thread
  // Wakes the leader.
  const net::Event &leader_event() const REQUIRES(runtime_mutex) {
    return all_ ? all_->event() : leader_event_;
  }
  // The descriptor that is readable when the leader has something to read; -1: not connected.
  int watched_fd() const REQUIRES(runtime_mutex) {
    if (all_) return all_->fd();
    return links_.front().connection.is_made() ? links_.front().commands->fd() : -1;
  }
  // How many connections were made so far.
  uint64_t connection_count() const REQUIRES(runtime_mutex) { return connection_count_; }

  // @return 0, or why some set does not poll it.
  [[nodiscard]] int watch(const Link &link) REQUIRES(runtime_mutex);
  void unwatch(const Link &link) REQUIRES(runtime_mutex);
  void unwatch_messages(const Link &link) REQUIRES(runtime_mutex);
  // With several links the leader polls for room; with one, the background thread does.
  void watch_room(Link &link, bool is_on) REQUIRES(runtime_mutex);
  // An end was seen, and would be seen again and again. It is watched again once it was read.
  void unwatch_end() REQUIRES(runtime_mutex);
  void watch_end_again() REQUIRES(runtime_mutex);

  // ---- the queue that reads; only with one link
  Queue *reader() const REQUIRES(runtime_mutex) { return reader_.get(); }
  // Throws std::bad_alloc, and then there is no reader.
  void set_reader(const std::shared_ptr<Queue> &queue) REQUIRES(runtime_mutex);
  void drop_reader() noexcept REQUIRES(runtime_mutex);

 private:
  void note_change(bool is_allowed) noexcept;
  [[nodiscard]] int watch_all() const REQUIRES(runtime_mutex);
  void watch_in_background() REQUIRES(runtime_mutex);
  void check_watched(int error) noexcept REQUIRES(runtime_mutex);
  void drop_unwatched(Link &link, int error) noexcept REQUIRES(runtime_mutex);

  Wakeup &wakeup_;
  Alarm &alarm_;
  Links &links_;
  Checked<ReadingRoles> roles_ GUARDED_BY(runtime_mutex);
  std::shared_ptr<Queue> reader_ GUARDED_BY(runtime_mutex);
  std::optional<net::EpollSet> all_ GUARDED_BY(runtime_mutex);
  net::EpollSet callers_ UNGUARDED("the kernel guards it");
  net::EpollSet background_ UNGUARDED("the kernel guards it");
  // Wakes the leader of one link if it has a limit of its own.
  net::Event leader_event_ UNGUARDED("the kernel guards it");
  const int timer_error_;
  uint64_t connection_count_ GUARDED_BY(runtime_mutex) = 0;
};

}  // namespace redlatch::runtime
