// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/polling.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>

namespace redlatch::runtime {

Polling::Polling(Wakeup &wakeup, Alarm &alarm, Links &links, bool is_several)
    : wakeup_(wakeup), alarm_(alarm), links_(links), timer_error_(background_.use_boot_timer()) {
  if (is_several) all_.emplace();
}

int Polling::open() {
  const int error = errno != 0 ? errno : ENOMEM;  // of an event
  for (const net::EpollSet *set : {&callers_, &background_}) {
    if (!set->is_open()) return set->error();
  }
  if (!leader_event_.is_open()) return error;
  if (timer_error_ == EMFILE || timer_error_ == ENFILE || timer_error_ == ENOMEM) {
    return timer_error_;
  }
  if (!all_) return 0;
  return all_->is_open() ? watch_all() : all_->error();
}

// The threads that do not lead watch the set of all links.
int Polling::watch_all() const {
  const int error = background_.add(all_->fd(), 0, net::EpollSet::kEnd);
  return error != 0 ? error : callers_.add(all_->fd(), 0, net::EpollSet::kEnd);
}

int Polling::become_several() {
  all_.emplace();
  return all_->is_open() ? watch_all() : all_->error();
}

void Polling::close() {
  if (all_) all_->close();
  callers_.close();
  background_.close();
  leader_event_.close();
}

// ---- the roles ---------------------------------------------------------------------------------

// An event that the state of the roles does not allow is a defect, and they stay as they were.
void Polling::note_change(bool is_allowed) noexcept {
  assert(is_allowed);
  if (is_allowed) return;
  wakeup_.log().add(LogLevel::kError,
                    "defect in redlatch: an event in the wrong state of the roles");
}

void Polling::set_follower(Waiter &waiter) {
  set_armed(false);
  change(&ReadingRoles::follow, waiter);
}

// No need to wake it: it polls background_, and sees the socket once that is armed.
void Polling::follow_in_background() {
  change(&ReadingRoles::follow_in_background, alarm_.waiter());
}

void Polling::stop_following() {
  set_armed(false);
  change(&ReadingRoles::stop_following);
}

void Polling::set_armed(bool is_on) {
  if (roles_->is_armed() == is_on || !roles_->has_follower()) return;
  const int fd = watched_fd();
  if (fd < 0 || (!has_several() && links_.front().connection.is_broken())) return;
  change(is_on ? &ReadingRoles::arm : &ReadingRoles::disarm);
  if (roles_->is_watched_in_background()) return watch_in_background();
  check_watched(callers_.set(fd, 0, is_on ? net::EpollSet::kInput : net::EpollSet::kEnd));
}

// Poll for input if the background thread is the follower, and for room if the only link is full.
void Polling::watch_in_background() {
  const bool is_following = roles_->is_armed() && roles_->is_watched_in_background();
  const bool is_blocked = !has_several() && links_.front().outbox.is_blocked();
  const auto input = is_following ? net::EpollSet::kInput : net::EpollSet::kEnd;
  const auto room = is_blocked ? net::EpollSet::kRoom : net::EpollSet::kEnd;
  check_watched(background_.set(watched_fd(), 0, input | room));
}

// ---- what is polled ----------------------------------------------------------------------------

int Polling::watch(const Link &link) {
  assert(link.commands != nullptr && link.connection.is_made());
  connection_count_++;
  const int fd = link.commands->fd();
  const auto number = static_cast<uint32_t>(link.node);
  std::array<int, 4> errors{};
  if (all_) {
    errors[0] = all_->add(fd, number);
    errors[1] = background_.add(fd, Link::key_of(link.node, Link::kCommands), net::EpollSet::kEnd);
  } else {
    errors[0] = callers_.add(fd, 0, net::EpollSet::kEnd);
    errors[1] = background_.add(fd, 0, net::EpollSet::kEnd);
    if (reader_) errors[2] = reader_->add_socket(fd);
    change(&ReadingRoles::forget_drained);
  }
  if (link.messages) {
    errors[3] = background_.add(link.messages->fd(), Link::key_of(link.node, Link::kMessages));
  }
  const auto failed =
      std::find_if(errors.begin(), errors.end(), [](int error) { return error != 0; });
  return failed == errors.end() ? 0 : *failed;
}

// Must precede the close: a socket that a forked child has open would stay in the epoll sets, and
// they would report its end again and again.
void Polling::unwatch(const Link &link) {
  if (!link.commands) return;
  const int fd = link.commands->fd();
  (all_ ? *all_ : callers_).remove(fd);
  background_.remove(fd);
  if (reader_) reader_->remove_socket(fd);
}

void Polling::unwatch_messages(const Link &link) {
  if (link.messages) background_.remove(link.messages->fd());
}

void Polling::watch_room(Link &link, bool is_on) {
  if (!has_several()) return watch_in_background();
  const auto room = is_on ? net::EpollSet::kRoom : net::EpollSet::kEnd;
  const int error = all_->set(link.commands->fd(), static_cast<uint32_t>(link.node),
                              net::EpollSet::kInput | room);
  if (error != 0) drop_unwatched(link, error);
}

void Polling::unwatch_end() {
  assert(watched_fd() >= 0);
  callers_.remove(watched_fd());
  background_.remove(watched_fd());
}

// It may have come after what the leader read.
void Polling::watch_end_again() {
  check_watched(callers_.add(watched_fd(), 0, net::EpollSet::kEnd));
  check_watched(background_.add(watched_fd(), 0, net::EpollSet::kEnd));
}

// The kernel does not let a set poll the connection: nothing would read what comes there, or send
// what is left.
void Polling::drop_unwatched(Link &link, int error) noexcept {
  if (!link.is_usable()) return;
  link.drop();
  wakeup_.log().add(LogLevel::kWarning, not_watched(link.settings, error).message);
  alarm_.wake();
}

// The same for watched_fd().
void Polling::check_watched(int error) noexcept {
  if (error == 0) return;
  change(&ReadingRoles::disarm);
  for (Link &link : links_) drop_unwatched(link, error);
}

// ---- the queue that reads ----------------------------------------------------------------------

void Polling::set_reader(const std::shared_ptr<Queue> &queue) {
  assert(queue != nullptr && !has_several());
  drop_reader();
  reader_ = queue;
  change(&ReadingRoles::forget_drained);
  if (watched_fd() >= 0 && reader_->add_socket(watched_fd()) != 0) {
    drop_reader();
    throw std::bad_alloc();
  }
}

void Polling::drop_reader() noexcept {
  if (!reader_) return;
  if (watched_fd() >= 0) reader_->remove_socket(watched_fd());
  reader_->drop_source();
  reader_.reset();
}

}  // namespace redlatch::runtime
