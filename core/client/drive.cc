// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client, part 2 of 3: who reads, who writes, who watches.
#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>

#include "client/client.h"

namespace redlatch::client {

namespace {

bool is_queued(const Waiter &waiter) { return engine::Engine::is_queued(*waiter.request); }

// Whether it should hear first of what comes from the server. One whose lock is here waits for a
// thread of this process, which wakes it faster where it does nothing else.
bool should_watch(const Waiter &waiter) {
  return is_queued(waiter) && !engine::Engine::is_held_here(*waiter.request);
}

}  // namespace

// Wait until the request of `me`, who is enlisted, is finished, `limit` has passed, or, if it may,
// a signal came.
void Client::wait_driving(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  const Request &request = *me.request;
  while (!request.is_finished()) {
    // The keeper runs the engine's timers; whoever waits for a request keeps its own limit without
    // waiting for that.
    const Nanos until = std::min(limit, request.due);
    if (until != kNever) {
      const Nanos now = boot_now();
      if (now >= request.due) run_timers(now);
      if (now >= limit || request.is_finished()) break;
    }
    const bool can_read = is_connected_ && !is_broken_;
    if (driver_ == &me || (driver_ == nullptr && can_read && !is_queued(me))) {
      drive(lock, me, until, patience);
    } else if (sentinel_ == &me ||
               (can_read && should_watch(me) && (sentinel_ == nullptr || sentinel_ == &keeper_))) {
      stand_sentinel(lock, me, until);
    } else {
      if (me.list == nullptr) (can_read && !is_queued(me) ? short_ : long_).push(me);
      sleep(lock, me, until);
    }
    if (patience == Patience::kUninterrupted) me.is_interrupted = false;
    if (me.is_interrupted) break;
  }
  flush(lock);
}

void Client::leave(Waiter &waiter) {
  if (waiter.list != nullptr) waiter.list->remove(waiter);
  if (driver_ == &waiter) driver_ = nullptr;
  if (sentinel_ == &waiter) set_sentinel(nullptr);
  settle();
}

// Read until the answer for `me` is there or does not depend on a reply any more.
void Client::drive(Lock &lock, Waiter &me, Nanos limit, Patience patience) {
  driver_ = &me;
  if (me.list != nullptr) me.list->remove(me);
  set_armed(false);
  while (!me.request->is_finished() && !is_queued(me) && !me.is_interrupted) {
    if (should_yield_) {
      // Those that were just answered likely send again: one write for all.
      should_yield_ = false;
      lock.unlock();
      sched_yield();
      lock.lock();
    }
    flush(lock);
    if (!is_connected_ || is_broken_) {
      disconnect(lock);
      break;
    }
    io::Connection &connection = *connection_;
    is_reading_ = true;
    // A receive that waits ends by itself after one command time limit.
    const bool is_far = limit == kNever || limit > boot_now() + settings_.timeout;
    const bool may_block = patience == Patience::kUninterrupted && is_far;
    if (!may_block) {
      poll_as(lock, me,
              [&] { me.is_interrupted = !connection.wait_readable(driver_event_, limit); });
    }
    lock.unlock();
    const auto received =
        may_block ? connection.receive_waiting(replies_) : connection.receive(replies_);
    lock.lock();
    is_reading_ = false;
    take_in(received);
    wake_all(lock);
    if (limit != kNever && boot_now() >= limit) break;
  }
  // Others count on a reader to send for them.
  flush(lock);
  if (driver_ == &me) driver_ = nullptr;
  settle();
}

// Watch the socket without the role of driver, so that callers with a short command may have it.
void Client::stand_sentinel(Lock &lock, Waiter &me, Nanos limit) {
  if (sentinel_ != &me) set_sentinel(&me);
  if (me.list != nullptr) me.list->remove(me);
  settle();
  flush_if_nobody_will(lock);
  wake_all(lock);
  if (sentinel_ != &me || driver_ == &me || me.request->is_finished()) return;
  io::Watch::Seen seen;
  const uint64_t watched = connection_count_;
  poll_as(lock, me, [&] { seen = watch_.wait(limit); });
  me.is_interrupted = seen.is_interrupted;
  act_on(lock, me, seen, watched);
}

// What the sentinel, or the keeper, saw of connection number `watched`.
void Client::act_on(Lock &lock, Waiter &me, const io::Watch::Seen &seen, uint64_t watched) {
  if (!is_connected_ || watched != connection_count_) return;
  if (seen.has_room && is_clogged_) {
    set_clogged(false);
    flush(lock);
    if (!is_connected_ || watched != connection_count_) return;
  }
  const bool is_mine = sentinel_ == &me && is_armed_ && (seen.is_readable || seen.is_ended);
  const bool is_last = reader_ && &me == &keeper_ && seen.is_ended;
  if (driver_ == nullptr && (is_mine || is_last)) {
    read_once(lock, me);
    return;
  }
  if (seen.is_ended) {
    // The driver, or the reader after it, finds the end by reading.
    watch_.remove(connection_->fd());
    keeper_watch_.remove(connection_->fd());
    if (driver_ != nullptr) {
      is_read_due_ = true;
      return;
    }
    is_broken_ = true;
    wake(keeper_);
  } else if (seen.is_readable && sentinel_ == &me) {
    set_armed(false);
  }
}

// @return whether something came, even if only the end of the connection.
bool Client::read_once(Lock &lock, Waiter &me) {
  driver_ = &me;
  if (is_broken_) {
    disconnect(lock);
    driver_ = nullptr;
    return true;
  }
  is_reading_ = true;
  io::Connection &connection = *connection_;
  lock.unlock();
  const auto received = connection.receive(replies_);
  lock.lock();
  is_reading_ = false;
  take_in(received);
  wake_all(lock);  // the next thing that this thread does may take a round trip
  if (is_broken_) disconnect(lock);
  flush(lock);
  driver_ = nullptr;
  settle();
  return received != io::Connection::Received::kNothing;
}

// ---- the reader --------------------------------------------------------------------------------

// The descriptor may be watched for changes only, so data that is there must be read now, or be
// signalled again. A read that took less than it could has left nothing: later data is a change.
bool Client::read() noexcept {
  Lock lock(mutex_);
  if (!is_connected_) return false;
  if (driver_ != nullptr) {
    is_read_due_ = true;
    return false;
  }
  if (std::exchange(is_drained_, false)) return false;
  Waiter me;
  const bool has_read = read_once(lock, me);
  is_drained_ = has_read && is_connected_ && connection_->is_drained();
  wake_all(lock);
  return has_read;
}

bool Client::begin_reading_by(const std::shared_ptr<Queue> &queue) {
  Lock lock(mutex_);
  if (is_shut_ || reader_ == queue) return true;
  if (!queue->set_source(weak_from_this())) return false;
  drop_reader();
  reader_ = queue;
  is_drained_ = false;
  if (is_connected_) reader_->add_socket(connection_->fd());
  end_turn(lock);
  return true;
}

void Client::end_reading_by(const Queue &queue) noexcept {
  Lock lock(mutex_);
  if (reader_.get() != &queue) return;
  drop_reader();
  end_turn(lock);
}

void Client::drop_reader() noexcept {
  if (!reader_) return;
  if (is_connected_) reader_->remove_socket(connection_->fd());
  reader_->drop_source();
  reader_.reset();
}

// ---- the connection ----------------------------------------------------------------------------

void Client::take_in(io::Connection::Received received) {
  if (received == io::Connection::Received::kEnded) is_broken_ = true;
  try {
    dispatch();
  } catch (const std::bad_alloc &) {
    // The engine lost an answer: as if the connection had broken here.
    replies_.clear();
    drop_link(0);
  }
  batch_size_ = finished_count_;
  finished_count_ = 0;
  should_yield_ = batch_size_ > 1;
  call_keeper_in_time();
  if (drain_waiter_ != nullptr && engine_->is_drained()) wake(*drain_waiter_);
}

void Client::dispatch() {
  if (replies_.empty()) return;
  const Nanos now = boot_now();
  for (const io::ReplyPtr &reply : replies_) {
    if (reply->kind != Reply::Kind::kPush) {
      engine_->on_reply(0, *reply, now);
      continue;
    }
    take_message(*reply, now);
  }
  replies_.clear();
}

void Client::take_message(const Reply &reply, Nanos now) {
  const std::string_view kind = reply.at(0).text();
  if (kind == "message" || kind == "smessage") return engine_->on_push(0, reply.at(2).text(), now);
  if (kind != "invalidate") return;
  const Reply &keys = reply.at(1);
  if (keys.kind == Reply::Kind::kNil) return engine_->on_all_invalidated(0, now);
  for (size_t i = 0; i < keys.count(); i++) engine_->on_invalidated(0, keys.at(i).text(), now);
}

// Send what is there. Only one thread sends at a time; what others append meanwhile goes along.
// Nobody waits for a socket that takes no more: the keeper sees when it does again.
void Client::flush(Lock &lock) {
  while (!is_sending_ && !(out_.empty() && sending_.empty()) && !is_clogged_ && is_connected_ &&
         !is_broken_) {
    is_sending_ = true;
    if (sending_.empty()) {
      sending_.swap(out_);
      out_count_ = 0;
    }
    io::Connection &connection = *connection_;
    lock.unlock();
    const auto sent = connection.send(sending_);
    sending_.erase(0, sent.value_or(sending_.size()));
    lock.lock();
    is_sending_ = false;
    if (!sent) is_broken_ = true;
    if (!sending_.empty()) set_clogged(true);
    sent_.notify_all();
  }
}

void Client::set_clogged(bool is_on) {
  is_clogged_ = is_on;
  keeper_watch_.await_room(connection_->fd(), is_on);
}

// A driver that is about to read sends for everybody first. One that sits in a read does not; and
// when half a batch is ready, waiting longer would leave the server idle.
void Client::flush_if_nobody_will(Lock &lock) {
  const bool is_driven = driver_ != nullptr && !is_reading_;
  if (!is_driven || out_count_ >= batch_size_for_one_write()) flush(lock);
}

// For those who do not wait themselves: several of their commands go in one write. When something
// is in flight already, somebody will read the answer to it, and send what has gathered by then.
void Client::flush_unless_reader_will(Lock &lock) {
  const bool is_reader_sure = engine_->in_flight_count(0) > out_count_;
  if (!is_reader_sure || out_count_ >= batch_size_for_one_write()) flush(lock);
}

// Whatever is outstanding has somebody who will see it. Called whenever a role may have become
// free.
void Client::settle() {
  if (driver_ != nullptr || !is_connected_) return;
  if (is_broken_) return wake(keeper_);
  while (Waiter *waiter = short_.front()) {
    short_.remove(*waiter);
    if (is_queued(*waiter)) {
      long_.push(*waiter);
      continue;
    }
    driver_ = waiter;
    set_armed(false);
    return wake(*waiter);
  }
  if (std::exchange(is_read_due_, false) && reader_) {
    is_drained_ = false;
    reader_->nudge();
  }
  // Callers that sleep do not depend on the reader, which may be polled late.
  const bool is_for_reader = reader_ && long_.front() == nullptr;
  const bool is_outstanding = engine_->in_flight_count(0) > 0 || engine_->expects_push();
  if (sentinel_ == nullptr || sentinel_ == &keeper_) {
    // Only the first is asked: to look for another one would cost time with each turn.
    if (Waiter *waiter = long_.front(); waiter != nullptr && should_watch(*waiter)) {
      long_.remove(*waiter);
      set_sentinel(waiter);
      wake(*waiter);
    } else if (sentinel_ == nullptr && is_outstanding && !is_for_reader) {
      // It need not be woken: it sleeps on this very set, and sees the socket once that is armed.
      set_sentinel(&keeper_);
    } else if (sentinel_ == &keeper_ && (!is_outstanding || is_for_reader)) {
      set_sentinel(nullptr);
    }
  }
  set_armed(sentinel_ != nullptr);
}

void Client::set_sentinel(Waiter *waiter) {
  set_armed(false);
  sentinel_ = waiter;
}

void Client::set_armed(bool is_on) {
  if (is_armed_ == is_on || sentinel_ == nullptr || !is_connected_ || is_broken_) return;
  watch_of_sentinel().arm(connection_->fd(), is_on);
  is_armed_ = is_on;
}

// Give the connection up. The caller has the role of driver: nobody else may read meanwhile.
void Client::disconnect(Lock &lock) {
  if (!is_connected_) return;
  is_broken_ = true;
  connection_->shut();
  sent_.wait(lock, [this] { return !is_sending_; });
  is_connected_ = false;
  is_broken_ = false;
  is_armed_ = false;
  is_clogged_ = false;
  sending_.clear();
  out_.clear();
  out_count_ = 0;
  replies_.clear();
  connection_.reset();
  if (messages_) messages_->shut();
  engine_->on_disconnected(0, boot_now());
  call_keeper_in_time();
}

}  // namespace redlatch::client
