// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/background_thread.h"

#include <algorithm>
#include <vector>

#include "host/clock.h"
#include "runtime/threads.h"

namespace redlatch::runtime {

namespace {

// A time before `due`, for an answer that a late reader leaves unread: at `due` itself the lease
// that it renews has ended.
Nanos before_too_late(Nanos due, Nanos now) {
  constexpr Nanos kShortest = 5 * kMs;
  return std::min(due, now + std::max((due - now) / 2, kShortest));
}

}  // namespace

BackgroundThread::BackgroundThread(const Parts &parts)
    : wakeup_(parts.wakeup),
      alarm_(parts.alarm),
      service_(parts.service),
      links_(parts.links),
      shutdown_(parts.shutdown),
      polling_(parts.polling),
      logins_(parts.logins),
      transfer_(parts.transfer),
      roles_(parts.roles),
      sides_(parts.sides),
      confirming_(parts.confirming),
      sentinels_(parts.sentinels),
      connecting_(parts.connecting) {}

void BackgroundThread::start() {
  const int error = start_thread(thread_, main, this);
  if (error != 0) throw NoThread(error);
  has_started_ = true;
}

void BackgroundThread::join(Lock &lock) {
  wakeup_.wake_all(lock);
  lock.unlock();
  pthread_join(thread_, nullptr);
  lock.lock();
}

void *BackgroundThread::main(void *thread) {
  pthread_setname_np(pthread_self(), "redlatch");
  static_cast<BackgroundThread *>(thread)->run();
  return nullptr;
}

void BackgroundThread::run() {
  Lock lock(wakeup_.mutex());
  while (!shutdown_.is_stopping()) {
    try {
      run_once(lock);
    } catch (...) {
      lock.regain();
      transfer_.drop_all_after_exception();
    }
  }
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    sentinels_.end(lock, link);
    sides_.end(lock, link.confirming);
    connecting_.end(lock, link);
  }
}

// Does all that is due now, and sleeps until more is.
void BackgroundThread::run_once(Lock &lock) {
  roles_.disconnect_unled(lock);
  // By number, because a cluster may get further links meanwhile.
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    connecting_.tend(lock, link);
    if (link.sentinel) sentinels_.tend(lock, link);
  }
  for (size_t i = 0; i < links_.size(); i++) confirming_.tend(lock, links_[i]);
  tick(lock);
  for (Link &link : links_) confirming_.send(link);
  net::EpollSet::Seen seen;
  net::EpollSet &polled = polling_.background();
  const uint64_t watched = polling_.connection_count();
  const Nanos due = alarm_.due();
  wakeup_.poll_as(lock, alarm_.waiter(), polled.event(), [&] { seen = polled.wait(due); });
  roles_.act_on(lock, alarm_.waiter(), seen, watched);
  for (const net::EpollSet::Ready &ready : seen) {
    if (ready.key > 0) on_ready(lock, ready.key - 1);
  }
  wakeup_.wake_all(lock);
}

// A connection that only this thread reads, by its key: see Link::key_of().
void BackgroundThread::on_ready(Lock &lock, uint32_t number) {
  Link &link = links_[number / Link::kPolledCount];
  const uint32_t polled = number % Link::kPolledCount;
  if (polled >= Link::kWatch) return sentinels_.read(lock, link, polled - Link::kWatch);
  switch (polled) {
    case Link::kMessages:
      return read_messages(lock, link);
    case Link::kCommands:
      return roles_.on_end(lock, link);
    default:
      return confirming_.read(lock, link);
  }
}

// ---- time --------------------------------------------------------------------------------------

// Run the timers that are due, and compute the next wake-up.
void BackgroundThread::tick(Lock &lock) {
  roles_.read_remaining(lock);
  const Nanos now = boot_now();
  const bool has_run = transfer_.run_timers(now);
  logins_.credentials().on_timer(now);
  if (alarm_.take_passed(now)) {
    wakeup_.wake_lease_waiters();
    roles_.wake_sleepers();
  }
  shutdown_.note_progress();
  if (polling_.reader() != nullptr) transfer_.flush(lock);
  roles_.end_turn(lock);
  Nanos due = next_due(now);
  if (!has_run) due = std::max(due, now + kPauseAfterException);
  alarm_.set(due, now);
}

Nanos BackgroundThread::next_due(Nanos now) const {
  const Nanos due = std::min({service_->next_due(), logins_.credentials().next_due(),
                              alarm_.next_due(now, service_.timeout()), sentinels_.next_due()});
  const bool is_for_reader = polling_.reader() != nullptr && service_->in_flight_count(0) > 0;
  return is_for_reader ? before_too_late(due, now) : due;
}

// The message connection of RESP2. Only the background thread reads and replaces it, so no role is
// needed. A thread that disconnects shuts it, and it is closed here.
void BackgroundThread::read_messages(Lock &lock, Link &link) {
  if (!link.messages) return;
  std::vector<resp::ReplyPtr> replies;
  lock.unlock();
  const auto received = link.messages->receive(replies);
  lock.lock();
  try {
    const Nanos now = boot_now();
    for (const resp::ReplyPtr &reply : replies) {
      link.connection.take_message(*service_, *reply, now);
    }
    if (!replies.empty()) service_->on_messages_heard(link.node, now);
  } catch (...) {
    (void)wakeup_.log().add_caught();
    link.drop();
  }
  if (received != net::Connection::Received::kEnded) return;
  // Without messages this client would wait slowly: drop the command connection, too.
  polling_.unwatch_messages(link);
  link.messages.reset();
  link.drop();
}

}  // namespace redlatch::runtime
