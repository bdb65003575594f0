// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/transfer.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <string>
#include <utility>

#include "host/clock.h"
#include "resp/command_writer.h"

namespace redlatch::runtime {

namespace {

// Waiting for more would leave the server idle.
size_t for_one_write(size_t batch_size) { return std::max<size_t>(4, batch_size / 2); }

}  // namespace

Transfer::Transfer(const Parts &parts)
    : wakeup_(parts.wakeup),
      alarm_(parts.alarm),
      service_(parts.service),
      links_(parts.links),
      shutdown_(parts.shutdown),
      polling_(parts.polling),
      logins_(parts.logins) {}

// ---- receiving ---------------------------------------------------------------------------------

// Called by the leader. The only link is always tried.
void Transfer::note_ready(const net::EpollSet::Seen &seen) {
  if (!polling_.has_several()) links_.front().is_ready = links_.front().connection.is_made();
  for (const net::EpollSet::Ready &ready : seen) {
    assert(ready.key < links_.size());
    Link &link = links_[ready.key];
    if (!link.connection.is_made()) continue;
    link.is_ready = ready.is_readable || ready.is_ended;
    if (ready.has_room && link.outbox.is_blocked()) set_write_blocked(link, false);
  }
}

// Mostly one of several links is connected: to ask the set which one is ready would cost a call to
// the kernel in each hand-off. @return false: the set has to be asked.
bool Transfer::note_only_one() {
  Link *only = nullptr;
  for (Link &link : links_) {
    if (!link.connection.is_made()) continue;
    if (only != nullptr || link.outbox.is_blocked()) return false;
    only = &link;
  }
  if (only != nullptr) only->is_ready = true;
  return only != nullptr;
}

void Transfer::receive(Lock &lock) {
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
bool Transfer::take_in() {
  bool has_come = false;
  // By number, here and where a connection ends, because a cluster may get further links by that.
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    if (!std::exchange(link.is_ready, false)) continue;
    has_come = has_come || link.received != net::Connection::Received::kNothing;
    if (link.received == net::Connection::Received::kEnded) link.connection.drop();
    try {
      dispatch(link);
    } catch (...) {
      // The service has lost a reply: handle it as a connection that broke here.
      (void)wakeup_.log().add_caught();
      link.replies.clear();
      link.drop();
    }
  }
  batch_size_ = finished_count_;
  finished_count_ = 0;
  should_yield_ = batch_size_ > 1;
  wake_background_in_time();
  shutdown_.note_progress();
  return has_come;
}

void Transfer::dispatch(Link &link) {
  if (link.replies.empty()) return;
  const Nanos now = boot_now();
  for (const resp::ReplyPtr &reply : link.replies) {
    const auto refused = link.connection.take(*service_, *reply, now);
    if (refused != 0) logins_.note_refused(refused, now);
  }
  link.replies.clear();
}

// ---- sending -----------------------------------------------------------------------------------

// Send all output. One thread sends at a time, and also sends what others append meanwhile. A full
// socket is not waited for: it is watched until it has room.
void Transfer::flush(Lock &lock) {
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
    assert(is_sending_ && "no other thread sends");
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
void Transfer::flush_if_no_leader_will(Lock &lock) {
  if (!polling_->sends_for_all() || links_.front().outbox.count() >= for_one_write(batch_size_))
    flush(lock);
}

// For calls that do not wait: several of their commands go in one write. If a command is in flight,
// the thread that reads its reply sends what was appended by then. Not with several links, because
// one of them may be slow.
void Transfer::flush_unless_reader_will(Lock &lock) {
  const size_t count = links_.front().outbox.count();
  const bool is_reader_sure = !polling_.has_several() && service_->in_flight_count(0) > count;
  if (!is_reader_sure || count >= for_one_write(batch_size_)) flush(lock);
}

// Some bytes, and rarely: if there is no room for them the peer has acknowledged nothing for long.
void Transfer::send_on_messages(size_t node, std::span<const std::string_view> argv) {
  Link &link = links_[node];
  if (!link.messages || !link.is_usable()) return;
  std::string bytes;
  resp::append_command(bytes, argv);
  if (link.messages->send(bytes) != bytes.size()) link.drop();
}

void Transfer::set_write_blocked(Link &link, bool is_on) {
  link.outbox.set_blocked(is_on);
  is_output_due_ = is_output_due_ || !is_on;
  polling_.watch_room(link, is_on);
}

// ---- time --------------------------------------------------------------------------------------

// @return false after an exception: reconnecting repeats what was due.
bool Transfer::run_timers(Nanos now) {
  try {
    service_->on_timer(now);
    return true;
  } catch (...) {
    drop_all_after_exception();
    return false;
  }
}

// ---- the end of a connection -------------------------------------------------------------------

// Close the broken connections. The calling thread is the leader, so no other thread reads.
void Transfer::disconnect_broken(Lock &lock) {
  assert(polling_->is_led());
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    if (!link.connection.is_broken()) continue;
    link.drop();
    while (is_sending_) lock.wait(sent_);
    assert(link.commands != nullptr && "the leader alone closes it");
    if (!polling_.has_several()) polling_.change(&ReadingRoles::disarm);
    polling_.unwatch(link);
    link.disconnect();
    const bool was_unread = std::exchange(link.is_end_unread, false);
    if (was_unread && !links_.has_unread_end()) polling_.change(&ReadingRoles::end_due);
    service_->on_disconnected(link.node, boot_now());
    wake_background_in_time();
    shutdown_.note_progress();
  }
}

}  // namespace redlatch::runtime
