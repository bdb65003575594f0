// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: receiving and sending over the links.
#include <algorithm>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/token.h"
#include "runtime/runtime.h"

namespace redlatch::runtime {

namespace {

// Waiting for more would leave the server idle.
size_t for_one_write(size_t batch_size) { return std::max<size_t>(4, batch_size / 2); }

}  // namespace

// ---- receiving ---------------------------------------------------------------------------------

// In a handler of all exceptions, where no single link can be said to have caused it.
void Runtime::drop_links_after_exception() noexcept {
  (void)log_.add_caught();
  for (Link &link : links_) link.drop();
}

// Called by the leader. The only link is always tried.
void Runtime::note_ready(const net::EpollSet::Seen &seen) {
  if (!has_several()) only_link().is_ready = only_link().is_connected;
  for (const net::EpollSet::Ready &ready : seen) {
    Link &link = links_[ready.key];
    if (!link.is_connected) continue;
    link.is_ready = ready.is_readable || ready.is_ended;
    if (ready.has_room && link.outbox.is_blocked()) set_write_blocked(link, false);
  }
}

// Mostly one of several links is connected: to ask the set which one is ready would cost a call to
// the kernel in each hand-off. @return false: the set has to be asked.
bool Runtime::note_only_one() {
  Link *only = nullptr;
  for (Link &link : links_) {
    if (!link.is_connected) continue;
    if (only != nullptr || link.outbox.is_blocked()) return false;
    only = &link;
  }
  if (only != nullptr) only->is_ready = true;
  return only != nullptr;
}

void Runtime::receive(Lock &lock) {
  Link *first = nullptr;
  for (Link &link : links_) {
    if (link.is_ready) link.next_ready = std::exchange(first, &link);
  }
  lock.unlock();
  for (Link *link = first; link != nullptr; link = link->next_ready) {
    link->received = link->commands->receive(link->replies);
  }
  lock.lock();
}

// @return whether something arrived, even if only the end of a connection.
bool Runtime::take_in() {
  bool has_come = false;
  // By number, here and where a connection ends, because a cluster may get further links by that.
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    if (!std::exchange(link.is_ready, false)) continue;
    has_come = has_come || link.received != net::Connection::Received::kNothing;
    if (link.received == net::Connection::Received::kEnded) link.is_broken = true;
    try {
      dispatch(link);
    } catch (...) {
      // The service has lost a reply: handle it as a connection that broke here.
      (void)log_.add_caught();
      link.replies.clear();
      link.drop();
    }
  }
  batch_size_ = finished_count_;
  finished_count_ = 0;
  should_yield_ = batch_size_ > 1;
  call_background_in_time();
  if (is_draining_) wake(drain_waiter_);
  return has_come;
}

void Runtime::dispatch(Link &link) {
  if (link.replies.empty()) return;
  const Nanos now = boot_now();
  for (const net::ReplyPtr &reply : link.replies) {
    if (reply->kind == Reply::Kind::kPush) {
      take_message(link, *reply, now);
    } else if (const uint64_t login = link.auths.take(); login != 0) {
      note_auth(link, login, *reply, now);
    } else {
      service_->on_reply(link.node, *reply, now);
    }
  }
  link.replies.clear();
}

void Runtime::take_message(const Link &link, const Reply &reply, Nanos now) {
  const std::string_view kind = reply.at(0).text();
  if (kind == "message" || kind == "smessage") {
    const std::string_view text = reply.at(2).text();
    // No server counts the receivers of the plain channel beside a sharded one: notices only.
    const bool is_beside = kind == "message" && link.facts.is_sharded;
    if (is_beside && !protocol::is_notice(text)) return;
    return service_->on_push(link.node, text, now);
  }
  if (kind == "sunsubscribe") return service_->on_unsubscribed(link.node, now);
  if (kind != "invalidate") return;
  const Reply &keys = reply.at(1);
  if (keys.kind == Reply::Kind::kNil) return service_->on_invalidated(link.node, std::nullopt, now);
  for (size_t i = 0; i < keys.count(); i++) {
    service_->on_invalidated(link.node, keys.at(i).text(), now);
  }
}

// ---- sending -----------------------------------------------------------------------------------

// Send all output. One thread sends at a time, and also sends what others append meanwhile. A full
// socket is not waited for: it is watched until it has room.
void Runtime::flush(Lock &lock) {
  while (is_output_due_ && !is_sending_) {
    is_output_due_ = false;
    Link *first = nullptr;
    for (Link &link : links_) {
      if (link.begin_send()) link.next_sender = std::exchange(first, &link);
    }
    is_sending_ = first != nullptr;
    if (!is_sending_) return;
    lock.unlock();
    for (Link *link = first; link != nullptr; link = link->next_sender)
      link->outbox.send(*link->commands);
    lock.lock();
    is_sending_ = false;
    for (Link &link : links_) {
      if (link.end_send()) set_write_blocked(link, true);
      // begin_send() took what was left over, and not what was appended since.
      is_output_due_ = is_output_due_ || !link.outbox.is_empty();
    }
    sent_.notify_all();
  }
}

// A leader that is about to read sends first, for all callers. A leader that blocks in a read does
// not, and a longer wait with half a batch ready would leave the server idle.
void Runtime::flush_if_no_leader_will(Lock &lock) {
  if (!roles_->sends_for_all() || links_.front().outbox.count() >= for_one_write(batch_size_))
    flush(lock);
}

// For calls that do not wait: several of their commands go in one write. If a command is in flight,
// the thread that reads its reply sends what was appended by then. Not with several links, because
// one of them may be slow.
void Runtime::flush_unless_reader_will(Lock &lock) {
  const size_t count = links_.front().outbox.count();
  const bool is_reader_sure = !has_several() && service_->in_flight_count(0) > count;
  if (!is_reader_sure || count >= for_one_write(batch_size_)) flush(lock);
}

// With several links the leader polls for room; with one, the background thread does.
void Runtime::set_write_blocked(Link &link, bool is_on) {
  link.outbox.set_blocked(is_on);
  is_output_due_ = is_output_due_ || !is_on;
  if (!has_several()) return watch_in_background();
  const auto room = is_on ? net::EpollSet::kRoom : net::EpollSet::kEnd;
  const int error = all_links_->set(link.commands->fd(), static_cast<uint32_t>(link.node),
                                    net::EpollSet::kInput | room);
  if (error != 0) drop_unwatched(link, error);
}

// Poll for input if the background thread is the follower, and for room if the only link is full.
void Runtime::watch_in_background() {
  const bool is_following = roles_->is_armed() && roles_->is_watched_in_background();
  const bool is_blocked = !has_several() && links_.front().outbox.is_blocked();
  const auto input = is_following ? net::EpollSet::kInput : net::EpollSet::kEnd;
  const auto room = is_blocked ? net::EpollSet::kRoom : net::EpollSet::kEnd;
  check_watched(background_set_.set(watched_fd(), 0, input | room));
}

// The kernel does not let a set poll the connection: nothing would read what comes there, or send
// what is left.
void Runtime::drop_unwatched(Link &link, int error) noexcept {
  if (!link.is_usable()) return;
  link.drop();
  try {
    log_.add(LogLevel::kWarning, not_watched(link.settings, error).message);
  } catch (...) {
    log_.add(LogLevel::kWarning, "cannot poll a connection");
  }
  wake(background_);
}

// The same for watched_fd().
void Runtime::check_watched(int error) noexcept {
  if (error == 0) return;
  note_role(roles_.give(&ReadingRoles::disarm));
  for (Link &link : links_) drop_unwatched(link, error);
}

// ---- the end of a connection -------------------------------------------------------------------

// Must precede the close: a socket that a forked child has open would stay in the epoll sets, and
// they would report its end again and again.
void Runtime::unwatch(const Link &link) {
  if (!link.commands) return;
  const int fd = link.commands->fd();
  (all_links_ ? *all_links_ : caller_set_).remove(fd);
  background_set_.remove(fd);
  if (reader_) reader_->remove_socket(fd);
}

void Runtime::unwatch_messages(const Link &link) {
  if (link.messages) background_set_.remove(link.messages->fd());
}

// Close the broken connections. The calling thread is the leader, so no other thread reads.
void Runtime::disconnect_broken(Lock &lock) {
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    if (!link.is_broken) continue;
    link.drop();
    sent_.wait(lock, [this] { return !is_sending_; });
    if (!has_several()) note_role(roles_.give(&ReadingRoles::disarm));
    unwatch(link);
    link.disconnect();
    if (std::exchange(link.is_end_unread, false)) {
      const bool is_due = std::any_of(links_.begin(), links_.end(),
                                      [](const Link &other) { return other.is_end_unread; });
      if (!is_due) note_role(roles_.give(&ReadingRoles::end_due));
    }
    service_->on_disconnected(link.node, boot_now());
    call_background_in_time();
    if (is_draining_) wake(drain_waiter_);
  }
}

// As disconnect_broken(), with `me` as the leader meanwhile.
void Runtime::disconnect_as(Lock &lock, Waiter &me) {
  const Leading leading(*this, lock, me);
  disconnect_broken(lock);
}

// As disconnect_broken(), unless another thread reads or sends.
void Runtime::disconnect_unread(Lock &lock) {
  if (roles_->is_led() || is_sending_ || !is_broken()) return;
  disconnect_as(lock, background_);
}

// The background thread has ended and cannot do it.
void Runtime::disconnect_if_over(Lock &lock) {
  if (is_shut_ && is_stopping_) disconnect_unread(lock);
}

}  // namespace redlatch::runtime
