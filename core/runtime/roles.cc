// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/roles.h"

#include <sched.h>

#include <algorithm>
#include <cassert>

#include "host/clock.h"

namespace redlatch::runtime {

namespace {

bool is_queued(const Waiter &waiter) REQUIRES(runtime_mutex) {
  assert(waiter.request != nullptr);
  return waiter.request->is_queued();
}

}  // namespace

Roles::Roles(const Parts &parts)
    : wakeup_(parts.wakeup),
      alarm_(parts.alarm),
      service_(parts.service),
      links_(parts.links),
      shutdown_(parts.shutdown),
      polling_(parts.polling),
      transfer_(parts.transfer) {}

class Roles::Leading {
 public:
  Leading(Roles &in, Lock &lock, Waiter &me) REQUIRES(runtime_mutex)
      : in_(in), lock_(lock), me_(me) {
    in_.polling_.change(&ReadingRoles::lead, me);
  }
  ~Leading() {
    lock_.regain();
    in_.polling_.change(&ReadingRoles::stop_leading, me_);
    in_.settle();
  }
  Leading(const Leading &) = delete;
  Leading &operator=(const Leading &) = delete;

 private:
  Roles &in_;
  Lock &lock_;
  Waiter &me_;
};

class Roles::Leaving {
 public:
  Leaving(Roles &in, Lock &lock, Waiter &me) : in_(in), lock_(lock), me_(me) {}
  ~Leaving() {
    lock_.regain();
    in_.leave(lock_, me_);
  }
  Leaving(const Leaving &) = delete;
  Leaving &operator=(const Leaving &) = delete;

 private:
  Roles &in_;
  Lock &lock_;
  Waiter &me_;
};

// True if this waiter should be the follower. If a thread of this process holds the lock, that
// thread hands it off, and wakes a plain sleeper faster.
bool Roles::should_follow(const Waiter &waiter) const {
  return !service_.is_quorum() && is_queued(waiter) && !waiter.request->is_held_here();
}

void Roles::wait(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  assert(me.request != nullptr && me.list == nullptr);
  const Leaving leaving(*this, lock, me);
  const Request &request = *me.request;
  while (!request.is_finished()) {
    // The background thread runs the timers, but a caller does not depend on it for the limit of
    // its own request.
    Nanos until = std::min(limit, request.limit());
    if (until != kNever) {
      const Nanos now = boot_now();
      if (now >= request.due && !transfer_.run_timers(now)) until = now + kPauseAfterException;
      if (now >= limit || request.is_finished()) break;
      alarm_.note_limit(limit);
    }
    const bool can_read = links_.is_usable();
    if (polling_->is_leader(me) || (!polling_->is_led() && can_read && !is_queued(me))) {
      lead(lock, me, until, patience);
    } else if (polling_->is_follower(me) ||
               (can_read && should_follow(me) && !polling_->is_watched_by_caller())) {
      follow(lock, me, until);
    } else {
      if (me.list == nullptr) (can_read && !is_queued(me) ? short_ : long_).push(me);
      wakeup_.sleep(lock, me, until);
    }
    if (patience == Patience::kUninterrupted) me.is_interrupted = false;
    if (me.is_interrupted) break;
  }
  transfer_.flush(lock);
}

// ---- the leader --------------------------------------------------------------------------------

// Read until the request of `me` is finished or queued: a queued request expects no reply.
void Roles::lead(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  const Leading leading(*this, lock, me);
  if (me.list != nullptr) me.list->remove(me);
  polling_.set_armed(false);
  read_as_leader(lock, me, limit, patience);
  // Other threads have left their commands to the leader.
  transfer_.flush(lock);
}

void Roles::read_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  while (!me.request->is_finished() && !is_queued(me) && !me.is_interrupted) {
    if (transfer_.should_yield()) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    transfer_.flush(lock);
    if (links_.is_broken()) {
      // Completions and commands of the disconnect must not wait for the next read.
      transfer_.disconnect_broken(lock);
      wakeup_.wake_all(lock);
      continue;
    }
    if (!links_.is_usable()) break;
    alarm_.note_limit(limit);
    receive_as_leader(lock, me, limit, patience);
    (void)transfer_.take_in();
    wakeup_.wake_all(lock);
    if (limit != kNever && boot_now() >= limit) break;
  }
}

void Roles::receive_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  assert(polling_->is_leader(me));
  polling_.change(&ReadingRoles::wait);
  // A receive that waits ends by itself after one command timeout.
  const bool is_far = limit == kNever || limit > boot_now() + service_.timeout();
  // Timers finish requests of a quorum, even of one node, and must be able to wake the leader.
  const bool may_block = patience == Patience::kUninterrupted && is_far && !service_.is_quorum() &&
                         !polling_.has_several();
  if (may_block) {
    Link &link = links_.front();
    link.is_ready = true;
    lock.unlock();
    link.received = link.commands->receive_waiting(link.replies);
    lock.lock();
  } else {
    net::EpollSet::Seen seen;
    const net::Event &event = polling_.leader_event();
    net::EpollSet *all = polling_.has_several() ? &polling_.all() : nullptr;
    wakeup_.poll_as(lock, me, event, [&] {
      if (all != nullptr) {
        seen = all->wait(limit);
      } else {
        seen.is_interrupted = !links_.front().commands->wait_readable(event, limit);
      }
    });
    me.is_interrupted = seen.is_interrupted;
    transfer_.note_ready(seen);
    transfer_.receive(lock);
  }
  polling_.change(&ReadingRoles::end_read);
}

// Watch without the role of leader, so that callers with a command in flight may take it.
void Roles::follow(Lock &lock, Waiter &me, Nanos limit) {
  if (!polling_->is_follower(me)) polling_.set_follower(me);
  if (me.list != nullptr) me.list->remove(me);
  settle();
  transfer_.flush_if_no_leader_will(lock);
  wakeup_.wake_all(lock);
  if (!polling_->is_follower(me) || polling_->is_leader(me) || me.request->is_finished()) return;
  net::EpollSet::Seen seen;
  const uint64_t watched = polling_.connection_count();
  wakeup_.poll_as(lock, me, polling_.callers().event(),
                  [&] { seen = polling_.callers().wait(limit); });
  me.is_interrupted = seen.is_interrupted;
  act_on(lock, me, seen, watched);
}

void Roles::act_on(Lock &lock, Waiter &me, const net::EpollSet::Seen &seen, uint64_t watched) {
  const auto found = std::find_if(seen.begin(), seen.end(),
                                  [](const net::EpollSet::Ready &ready) { return ready.key == 0; });
  if (found == seen.end() || polling_.watched_fd() < 0 || watched != polling_.connection_count())
    return;
  if (found->has_room && links_.front().outbox.is_blocked()) {
    transfer_.set_write_blocked(links_.front(), false);
    transfer_.flush(lock);
    if (polling_.watched_fd() < 0 || watched != polling_.connection_count()) return;
  }
  const bool has_come = found->is_readable || found->is_ended;
  const bool is_mine = polling_->is_follower(me) && polling_->is_armed() && has_come;
  const bool is_last = polling_.reader() != nullptr && alarm_.is_waiter(me) && found->is_ended;
  if (!polling_->is_led() && (is_mine || is_last)) {
    read_once(lock, me);
    return;
  }
  if (found->is_ended) {
    // The end would be reported again and again. The leader, or the reader after it, finds it by
    // reading.
    polling_.unwatch_end();
    if (polling_->is_led()) return polling_.change(&ReadingRoles::leave_unread);
    links_.front().connection.drop();
    alarm_.wake();
  } else if (found->is_readable && polling_->is_follower(me)) {
    polling_.set_armed(false);
  }
}

// The background thread saw the end of one of several connections. It would be reported again and
// again; a leader finds it by reading, or the follower after it.
void Roles::on_end(Lock &lock, Link &link) {
  if (!link.commands) return;  // it was closed since
  if (!polling_->is_led()) return (void)read_once(lock, alarm_.waiter());
  polling_.background().remove(link.commands->fd());
  link.is_end_unread = true;
  polling_.change(&ReadingRoles::leave_unread);
}

// @return whether something arrived, even if only the end of a connection.
bool Roles::read_once(Lock &lock, Waiter &me) {
  assert(!polling_->is_led());
  if (links_.is_broken()) {
    disconnect_as(lock, me);
    return true;
  }
  const Leading leading(*this, lock, me);
  polling_.change(&ReadingRoles::read);
  if (!polling_.has_several()) {
    transfer_.note_ready({});
  } else if (!transfer_.note_only_one()) {
    transfer_.note_ready(polling_.all().wait(0));
  }
  transfer_.receive(lock);
  polling_.change(&ReadingRoles::end_read);
  const bool has_come = transfer_.take_in();
  wakeup_.wake_all(lock);  // now, because this thread may next wait for a round trip
  transfer_.disconnect_broken(lock);
  transfer_.flush(lock);
  return has_come;
}

// ---- the reader --------------------------------------------------------------------------------

// A caller may poll the descriptor edge-triggered, so data that has arrived must be read now or be
// signalled again. A read that did not fill its buffer has left nothing: later data is a new edge.
bool Roles::read_for_queue(Lock &lock) {
  Link &link = links_.front();
  if (!link.connection.is_made()) return false;
  if (polling_->is_led()) return polling_.change(&ReadingRoles::leave_unread), false;
  const bool is_drained = polling_->is_drained();
  polling_.change(&ReadingRoles::forget_drained);
  if (is_drained) return false;
  Waiter me;
  const bool has_read = read_once(lock, me);
  if (has_read && link.connection.is_made() && link.commands->is_drained()) {
    polling_.change(&ReadingRoles::drain);
  }
  disconnect_if_over(lock);
  wakeup_.wake_all(lock);
  return has_read;
}

bool Roles::begin_reading_by(Lock &lock, const std::shared_ptr<Queue> &queue,
                             const std::weak_ptr<Source> &source) {
  if (shutdown_.has_begun() || polling_.reader() == queue.get()) return true;
  if (polling_.has_several() || !queue->set_source(source)) return false;
  polling_.set_reader(queue);
  end_turn(lock);
  return true;
}

void Roles::end_reading_by(Lock &lock, const Queue &queue) noexcept {
  if (polling_.reader() != &queue) return;
  polling_.drop_reader();
  end_turn(lock);
}

void Roles::read_remaining(Lock &lock) {
  while (polling_.reader() != nullptr && !polling_->is_led() && links_.is_usable()) {
    if (!read_once(lock, alarm_.waiter())) return;
  }
}

// ---- roles -------------------------------------------------------------------------------------

// The first waiter that expects a reply. The others have been queued since.
Waiter *Roles::next_leader() {
  while (Waiter *waiter = short_.front()) {
    short_.remove(*waiter);
    if (!is_queued(*waiter)) return waiter;
    long_.push(*waiter);
  }
  return nullptr;
}

void Roles::settle() {
  if (polling_->is_led() || polling_.watched_fd() < 0) return;
  if (links_.is_broken()) return alarm_.wake();
  if (Waiter *waiter = next_leader()) {
    polling_.change(&ReadingRoles::lead, *waiter);
    polling_.set_armed(false);
    return wakeup_.wake(*waiter);
  }
  // With several links a follower reads the end.
  const bool is_end_unread = polling_.has_several() && polling_->is_due();
  if (!is_end_unread && polling_->is_due()) read_due();
  if (!polling_->is_watched_by_caller()) {
    // Only the first is considered: a search for another one would cost time in each turn.
    Waiter *waiter = long_.front();
    const bool is_ready = waiter != nullptr && should_follow(*waiter);
    // Callers that sleep do not depend on the reader, which may be polled late.
    const bool is_for_reader = polling_.reader() != nullptr && waiter == nullptr;
    const bool is_outstanding =
        service_->is_outstanding() || links_.awaits_auth() || wakeup_.awaits_recall();
    choose_follower(is_ready ? waiter : nullptr,
                    is_end_unread || (is_outstanding && !is_for_reader));
  }
  polling_.set_armed(polling_->has_follower());
}

void Roles::choose_follower(Waiter *waiter, bool is_background_needed) {
  switch (polling_->next_follower(waiter != nullptr, is_background_needed)) {
    case ReadingRoles::Choice::kCaller:
      assert(waiter != nullptr && waiter->list == &long_);
      long_.remove(*waiter);
      polling_.set_follower(*waiter);
      return wakeup_.wake(*waiter);
    case ReadingRoles::Choice::kBackground:
      return polling_.follow_in_background();
    case ReadingRoles::Choice::kNone:
      return polling_.stop_following();
    case ReadingRoles::Choice::kAsBefore:
      return;
  }
}

// Input or an end was left to the leader, and no thread leads any more.
void Roles::read_due() {
  polling_.change(&ReadingRoles::end_due);
  if (Queue *reader = polling_.reader(); reader != nullptr) return reader->nudge();
  polling_.watch_end_again();
}

void Roles::leave(Lock &lock, Waiter &waiter) {
  if (waiter.list != nullptr) waiter.list->remove(waiter);
  polling_.change(&ReadingRoles::stop_leading, waiter);
  if (polling_->is_follower(waiter)) polling_.stop_following();
  assert(!polling_->is_leader(waiter) && !polling_->is_follower(waiter));
  settle();
  disconnect_if_over(lock);
}

void Roles::end_turn(Lock &lock) {
  transfer_.flush_unless_reader_will(lock);
  settle();
  disconnect_if_over(lock);
  wakeup_.wake_all(lock);
}

void Roles::wake_sleepers() {
  for (const WaiterList *list : {&short_, &long_}) {
    for (Waiter *waiter = list->front(); waiter != nullptr; waiter = waiter->next) {
      wakeup_.wake(*waiter);
    }
  }
  for (Waiter *waiter : {polling_->leader(), polling_->follower()}) {
    if (waiter != nullptr && !alarm_.is_waiter(*waiter)) wakeup_.wake(*waiter);
  }
}

// ---- the end of a connection -------------------------------------------------------------------

// With `me` as the leader meanwhile.
void Roles::disconnect_as(Lock &lock, Waiter &me) {
  const Leading leading(*this, lock, me);
  transfer_.disconnect_broken(lock);
}

void Roles::disconnect_unled(Lock &lock) {
  if (!polling_->is_led() && links_.is_broken()) disconnect_as(lock, alarm_.waiter());
}

void Roles::disconnect_unread(Lock &lock) {
  if (!transfer_.is_sending()) disconnect_unled(lock);
}

// The background thread has ended and cannot do it.
void Roles::disconnect_if_over(Lock &lock) {
  if (shutdown_.is_stopping()) disconnect_unread(lock);
}

}  // namespace redlatch::runtime
