// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the roles of leader, follower and reader.
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

#include "lock/lock_client.h"
#include "runtime/runtime.h"

namespace redlatch::runtime {

namespace {

bool is_queued(const Waiter &waiter) { return waiter.request->is_queued(); }

}  // namespace

Runtime::Leading::~Leading() {
  if (!lock_.owns_lock()) lock_.lock();
  in_.note_role(in_.roles_.give(&ReadingRoles::stop_leading, me_));
  in_.settle();
}

// Gives up every role of a waiter at its end.
class Runtime::Leaving {
 public:
  Leaving(Runtime &in, Lock &lock, Waiter &me) : in_(in), lock_(lock), me_(me) {}
  ~Leaving() {
    if (!lock_.owns_lock()) lock_.lock();
    in_.leave(lock_, me_);
  }
  Leaving(const Leaving &) = delete;
  Leaving &operator=(const Leaving &) = delete;

 private:
  Runtime &in_;
  Lock &lock_;
  Waiter &me_;
};

// True if this waiter should be the follower. If a thread of this process holds the lock, that
// thread hands it off, and wakes a plain sleeper faster.
bool Runtime::should_follow(const Waiter &waiter) const {
  return !is_quorum() && is_queued(waiter) && !waiter.request->is_held_here();
}

// Wait until the request of `me`, which is enlisted, is finished, `limit` has passed, or a signal
// came and `patience` allows it to end the wait. Then `me` has no role.
void Runtime::wait_in_role(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  const Leaving leaving(*this, lock, me);
  const Request &request = *me.request;
  while (!request.is_finished()) {
    // The background thread runs the timers, but a caller does not depend on it for the limit of
    // its own request.
    Nanos until = std::min(limit, request.limit());
    if (until != kNever) {
      const Nanos now = boot_now();
      if (now >= request.due && !run_timers(now)) until = now + kPauseAfterException;
      if (now >= limit || request.is_finished()) break;
      wake_by(limit);
    }
    const bool can_read = is_usable();
    if (roles_->is_leader(me) || (!roles_->is_led() && can_read && !is_queued(me))) {
      lead(lock, me, until, patience);
    } else if (roles_->is_follower(me) ||
               (can_read && should_follow(me) && !roles_->is_watched_by_caller())) {
      follow(lock, me, until);
    } else {
      if (me.list == nullptr) (can_read && !is_queued(me) ? short_ : long_).push(me);
      sleep(lock, me, until);
    }
    if (patience == Patience::kUninterrupted) me.is_interrupted = false;
    if (me.is_interrupted) break;
  }
  flush(lock);
}

void Runtime::leave(Lock &lock, Waiter &waiter) {
  if (waiter.list != nullptr) waiter.list->remove(waiter);
  note_role(roles_.give(&ReadingRoles::stop_leading, waiter));
  if (roles_->is_follower(waiter)) stop_following();
  settle();
  disconnect_if_over(lock);
}

// ---- the leader --------------------------------------------------------------------------------

// Read until the request of `me` is finished or queued: a queued request expects no reply.
void Runtime::lead(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  const Leading leading(*this, lock, me);
  if (me.list != nullptr) me.list->remove(me);
  set_armed(false);
  read_as_leader(lock, me, limit, patience);
  // Other threads have left their commands to the leader.
  flush(lock);
}

void Runtime::read_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  while (!me.request->is_finished() && !is_queued(me) && !me.is_interrupted) {
    if (should_yield_) {
      // Callers that just got replies likely send again: let them append, for one write.
      should_yield_ = false;
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    flush(lock);
    if (is_broken()) {
      // Completions and commands of the disconnect must not wait for the next read.
      disconnect_broken(lock);
      wake_all(lock);
      continue;
    }
    if (!is_usable()) break;
    wake_by(limit);
    receive_as_leader(lock, me, limit, patience);
    (void)take_in();
    wake_all(lock);
    if (limit != kNever && boot_now() >= limit) break;
  }
}

void Runtime::receive_as_leader(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  note_role(roles_.give(&ReadingRoles::wait));
  // A receive that waits ends by itself after one command timeout.
  const bool is_far = limit == kNever || limit > boot_now() + timeout_;
  // Timers finish requests of a quorum, even of one node, and must be able to wake the leader.
  const bool may_block =
      patience == Patience::kUninterrupted && is_far && !quorum_ && !has_several();
  if (may_block) {
    Link &link = only_link();
    link.is_ready = true;
    lock.unlock();
    link.received = link.commands->receive_waiting(link.replies);
    lock.lock();
  } else {
    net::EpollSet::Seen seen;
    const net::Event &event = leader_event();
    poll_as(lock, me, event, [&] {
      if (all_links_) {
        seen = all_links_->wait(limit);
      } else {
        seen.is_interrupted = !only_link().commands->wait_readable(event, limit);
      }
    });
    me.is_interrupted = seen.is_interrupted;
    note_ready(seen);
    receive(lock);
  }
  note_role(roles_.give(&ReadingRoles::end_read));
}

// Watch without the role of leader, so that callers with a command in flight may take it.
void Runtime::follow(Lock &lock, Waiter &me, Nanos limit) {
  if (!roles_->is_follower(me)) set_follower(me);
  if (me.list != nullptr) me.list->remove(me);
  settle();
  flush_if_no_leader_will(lock);
  wake_all(lock);
  if (!roles_->is_follower(me) || roles_->is_leader(me) || me.request->is_finished()) return;
  net::EpollSet::Seen seen;
  const uint64_t watched = connection_count_;
  poll_as(lock, me, caller_set_.event(), [&] { seen = caller_set_.wait(limit); });
  me.is_interrupted = seen.is_interrupted;
  act_on(lock, me, seen, watched);
}

// Handle what the follower, or the background thread, saw. `watched` is connection_count_ before
// it polled: what it saw of an older connection is ignored.
void Runtime::act_on(Lock &lock, Waiter &me, const net::EpollSet::Seen &seen, uint64_t watched) {
  const auto found = std::find_if(seen.begin(), seen.end(),
                                  [](const net::EpollSet::Ready &ready) { return ready.key == 0; });
  if (found == seen.end() || watched_fd() < 0 || watched != connection_count_) return;
  if (found->has_room && only_link().outbox.is_blocked()) {
    set_write_blocked(only_link(), false);
    flush(lock);
    if (watched_fd() < 0 || watched != connection_count_) return;
  }
  const bool is_mine =
      roles_->is_follower(me) && roles_->is_armed() && (found->is_readable || found->is_ended);
  const bool is_last = reader_ && &me == &background_ && found->is_ended;
  if (!roles_->is_led() && (is_mine || is_last)) {
    read_once(lock, me);
    return;
  }
  if (found->is_ended) {
    // The end would be reported again and again. The leader, or the reader after it, finds it by
    // reading.
    caller_set_.remove(watched_fd());
    background_set_.remove(watched_fd());
    if (roles_->is_led()) return note_role(roles_.give(&ReadingRoles::leave_unread));
    only_link().is_broken = true;
    wake(background_);
  } else if (found->is_readable && roles_->is_follower(me)) {
    set_armed(false);
  }
}

// The background thread saw the end of one of several connections. It would be reported again and
// again; a leader finds it by reading, or the follower after it.
void Runtime::on_end(Lock &lock, Link &link) {
  if (!link.commands) return;  // it was closed since
  if (!roles_->is_led()) return (void)read_once(lock, background_);
  background_set_.remove(link.commands->fd());
  link.is_end_unread = true;
  note_role(roles_.give(&ReadingRoles::leave_unread));
}

// @return whether something arrived, even if only the end of a connection.
bool Runtime::read_once(Lock &lock, Waiter &me) {
  if (is_broken()) {
    disconnect_as(lock, me);
    return true;
  }
  const Leading leading(*this, lock, me);
  note_role(roles_.give(&ReadingRoles::read));
  if (!has_several()) {
    note_ready({});
  } else if (!note_only_one()) {
    note_ready(all_links_->wait(0));
  }
  receive(lock);
  note_role(roles_.give(&ReadingRoles::end_read));
  const bool has_come = take_in();
  wake_all(lock);  // now, because this thread may next wait for a round trip
  disconnect_broken(lock);
  flush(lock);
  return has_come;
}

// ---- the reader --------------------------------------------------------------------------------

// A caller may poll the descriptor edge-triggered, so data that has arrived must be read now or be
// signalled again. A read that did not fill its buffer has left nothing: later data is a new edge.
bool Runtime::read() noexcept {
  Lock lock(mutex_);
  if (!only_link().is_connected) return false;
  if (roles_->is_led()) {
    note_role(roles_.give(&ReadingRoles::leave_unread));
    return false;
  }
  const bool is_drained = roles_->is_drained();
  note_role(roles_.give(&ReadingRoles::forget_drained));
  if (is_drained) return false;
  Waiter me;
  const bool has_read = read_once(lock, me);
  if (has_read && only_link().is_connected && only_link().commands->is_drained()) {
    note_role(roles_.give(&ReadingRoles::drain));
  }
  disconnect_if_over(lock);
  wake_all(lock);
  return has_read;
}

bool Runtime::begin_reading_by(const std::shared_ptr<Queue> &queue) {
  Lock lock(mutex_);
  if (is_shut_ || reader_ == queue) return true;
  if (has_several() || !queue->set_source(weak_from_this())) return false;
  drop_reader();
  reader_ = queue;
  note_role(roles_.give(&ReadingRoles::forget_drained));
  if (watched_fd() >= 0 && reader_->add_socket(watched_fd()) != 0) {
    drop_reader();
    throw std::bad_alloc();
  }
  end_turn(lock);
  return true;
}

void Runtime::end_reading_by(const Queue &queue) noexcept {
  Lock lock(mutex_);
  if (reader_.get() != &queue) return;
  drop_reader();
  end_turn(lock);
}

void Runtime::drop_reader() noexcept {
  if (!reader_) return;
  if (watched_fd() >= 0) reader_->remove_socket(watched_fd());
  reader_->drop_source();
  reader_.reset();
}

// ---- roles -------------------------------------------------------------------------------------

// The first waiter that expects a reply. The others have been queued since.
Waiter *Runtime::next_leader() {
  while (Waiter *waiter = short_.front()) {
    short_.remove(*waiter);
    if (!is_queued(*waiter)) return waiter;
    long_.push(*waiter);
  }
  return nullptr;
}

// Give free roles to threads, so that each expected reply or message has a thread that reads it.
// Called whenever a role may have become free.
void Runtime::settle() {
  if (roles_->is_led() || watched_fd() < 0) return;
  if (is_broken()) return wake(background_);
  if (Waiter *waiter = next_leader()) {
    note_role(roles_.give(&ReadingRoles::lead, *waiter));
    set_armed(false);
    return wake(*waiter);
  }
  // With several links a follower reads the end.
  const bool is_end_unread = has_several() && roles_->is_due();
  if (!is_end_unread && roles_->is_due()) read_due();
  if (!roles_->is_watched_by_caller()) {
    // Only the first is considered: a search for another one would cost time in each turn.
    Waiter *waiter = long_.front();
    const bool is_ready = waiter != nullptr && should_follow(*waiter);
    // Callers that sleep do not depend on the reader, which may be polled late.
    const bool is_for_reader = reader_ && waiter == nullptr;
    const bool is_outstanding = service_->is_outstanding() || awaits_auth();
    choose_follower(is_ready ? waiter : nullptr,
                    is_end_unread || (is_outstanding && !is_for_reader));
  }
  set_armed(roles_->has_follower());
}

void Runtime::choose_follower(Waiter *waiter, bool is_background_needed) {
  switch (roles_->next_follower(waiter != nullptr, is_background_needed)) {
    case ReadingRoles::Choice::kCaller:
      long_.remove(*waiter);
      set_follower(*waiter);
      return wake(*waiter);
    case ReadingRoles::Choice::kBackground:
      // No need to wake it: it polls background_set_, and sees the socket once that is armed.
      return note_role(roles_.give(&ReadingRoles::follow_in_background, background_));
    case ReadingRoles::Choice::kNone:
      return stop_following();
    case ReadingRoles::Choice::kAsBefore:
      return;
  }
}

// Input or an end was left to the leader, and there is none any more.
void Runtime::read_due() {
  note_role(roles_.give(&ReadingRoles::end_due));
  if (reader_) return reader_->nudge();
  // The end was seen while a leader read, and may have come after what it read: watch again.
  check_watched(caller_set_.add(watched_fd(), 0, net::EpollSet::kEnd));
  check_watched(background_set_.add(watched_fd(), 0, net::EpollSet::kEnd));
}

void Runtime::set_follower(Waiter &waiter) {
  set_armed(false);
  note_role(roles_.give(&ReadingRoles::follow, waiter));
}

void Runtime::stop_following() {
  set_armed(false);
  note_role(roles_.give(&ReadingRoles::stop_following));
}

void Runtime::set_armed(bool is_on) {
  if (roles_->is_armed() == is_on || !roles_->has_follower()) return;
  const int fd = watched_fd();
  if (fd < 0 || (!has_several() && only_link().is_broken)) return;
  note_role(roles_.give(is_on ? &ReadingRoles::arm : &ReadingRoles::disarm));
  if (roles_->is_watched_in_background()) return watch_in_background();
  check_watched(caller_set_.set(fd, 0, is_on ? net::EpollSet::kInput : net::EpollSet::kEnd));
}

// A role that its state does not allow to give is a defect: the roles stay as they were.
void Runtime::note_role(bool is_allowed) noexcept {
  assert(is_allowed);
  if (!is_allowed) defect_found("defect in redlatch: an event in the wrong state of the roles");
}

}  // namespace redlatch::runtime
