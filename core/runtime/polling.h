// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Polling: which thread polls which descriptor. It owns the sets that the threads poll, the queue
// that reads, and the roles; it makes the sets follow the roles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/checked.h"
#include "net/epoll_set.h"
#include "runtime/alarm.h"
#include "runtime/completion_queue.h"
#include "runtime/links.h"
#include "runtime/reading_roles.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Polling {
 public:
  // `is_several`: there are several links, or may be some day.
  Polling(Wakeup &wakeup, Alarm &alarm, Links &links, bool is_several);

  // Once, before the first connection. @return 0: all descriptors are open, and polled.
  int open();
  // Why the sleeps of the background thread do not count suspended time; 0: they do.
  int timer_error() const { return timer_error_; }
  void close();

  // ---- the roles
  const ReadingRoles *operator->() const { return &roles_.get(); }
  template <class... Given>
  void change(bool (ReadingRoles::*event)(Given...), std::type_identity_t<Given>... given) {
    note_change(roles_.give(event, given...));
  }
  void set_follower(Waiter &waiter);
  void follow_in_background();
  void stop_following();
  void set_armed(bool is_on);

  // ---- what is polled
  bool has_several() const { return all_.has_value(); }
  // The server is one of several after all. Throws std::bad_alloc.
  void become_several();
  void become_one() { all_.reset(); }
  // Exists if there are several links: their commands. Polled by the leader.
  net::EpollSet &all() { return *all_; }
  net::EpollSet &callers() { return callers_; }        // polled by the follower
  net::EpollSet &background() { return background_; }  // polled by the background thread
  // Wakes the leader.
  const net::Event &leader_event() const { return all_ ? all_->event() : leader_event_; }
  // The descriptor that is readable when the leader has something to read; -1: not connected.
  int watched_fd() const {
    if (all_) return all_->fd();
    return links_.front().is_connected ? links_.front().commands->fd() : -1;
  }
  // How many connections were made so far.
  uint64_t connection_count() const { return connection_count_; }

  // @return 0, or why some set does not poll it.
  [[nodiscard]] int watch(const Link &link);
  void unwatch(const Link &link);
  void unwatch_messages(const Link &link);
  // With several links the leader polls for room; with one, the background thread does.
  void watch_room(Link &link, bool is_on);
  // An end was seen, and would be seen again and again. It is watched again once it was read.
  void unwatch_end();
  void watch_end_again();

  // ---- the queue that reads; only with one link
  Queue *reader() const { return reader_.get(); }
  // Throws std::bad_alloc, and then there is no reader.
  void set_reader(const std::shared_ptr<Queue> &queue);
  void drop_reader() noexcept;

 private:
  void note_change(bool is_allowed) noexcept;
  [[nodiscard]] int watch_all() const;
  void watch_in_background();
  void check_watched(int error) noexcept;
  void drop_unwatched(Link &link, int error) noexcept;

  Wakeup &wakeup_;
  Alarm &alarm_;
  Links &links_;
  Checked<ReadingRoles> roles_;
  std::shared_ptr<Queue> reader_;
  std::optional<net::EpollSet> all_;
  net::EpollSet callers_;
  net::EpollSet background_;
  net::Event leader_event_;  // wakes the leader of one link if it has a limit of its own
  const int timer_error_;
  uint64_t connection_count_ = 0;
};

}  // namespace redlatch::runtime
