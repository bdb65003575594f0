// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the side connections of links. All of it runs in the background thread.
#include "runtime/side_connection.h"

#include <new>
#include <utility>

#include "base/password.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"

namespace redlatch::runtime {

namespace {

// Also without memory for the text.
Outcome not_polled(int error) noexcept {
  try {
    return failure(Status::kUnavailable,
                   "cannot poll a connection beside that of the commands: " + reason_of(error));
  } catch (const std::bad_alloc &) {
    return Outcome{Status::kUnavailable, {}};
  }
}

}  // namespace

// Throws std::bad_alloc. @return a failure if no thread can be started.
Outcome Runtime::open_side(SideConnection &side, SideConnection::Open open) {
  side.attempt = std::make_unique<SideConnection::Attempt>(*this, std::move(open));
  const int error = start_thread(side.attempt->thread, side_main, side.attempt.get());
  if (error == 0) return {};
  side.attempt.reset();
  return no_thread(error);
}

void *Runtime::side_main(void *attempt) {
  pthread_setname_np(pthread_self(), "redlatch-side");
  auto &mine = *static_cast<SideConnection::Attempt *>(attempt);
  mine.runtime.attempt_side(mine);
  return nullptr;
}

// In the thread of the attempt. No other thread touches `mine` until is_over.
void Runtime::attempt_side(SideConnection::Attempt &mine) {
  try {
    mine.outcome = mine.open(stop_event_.fd(), mine.connection);
  } catch (...) {
    mine.outcome.status = log_.add_caught();
  }
  Lock lock(mutex_);
  mine.is_over = true;
  wake(background_);
  wake_all(lock);
}

// @return the result of the attempt, once it is over: the connection is open, or why not.
std::optional<Outcome> Runtime::end_side_attempt(Lock &lock, SideConnection &side) {
  if (!side.attempt || !(side.attempt->is_over || is_stopping_)) return std::nullopt;
  lock.unlock();
  pthread_join(side.attempt->thread, nullptr);
  lock.lock();
  const auto ended = std::move(side.attempt);
  side.out.clear();
  side.auths.clear();
  if (ended->outcome.ok()) {
    side.connection = std::move(ended->connection);
    const int error = background_set_.add(side.connection->fd(), side.key);
    if (error != 0) {
      side.connection.reset();
      return not_polled(error);
    }
  }
  return std::move(ended->outcome);
}

// @return false if the connection has ended. Replies and pushes may have come before.
bool Runtime::read_side(Lock &lock, SideConnection &side, std::vector<net::ReplyPtr> &replies) {
  lock.unlock();
  const auto received = side.connection->receive(replies);
  lock.lock();
  return received != net::Connection::Received::kEnded;
}

// Sends what the socket takes; the rest follows when it has room. @return false if the connection
// has ended.
bool Runtime::send_side(SideConnection &side) const {
  if (!side.connection || side.out.empty()) return true;
  const auto sent = side.connection->send(side.out);
  const size_t count = sent.value_or(side.out.size());
  drop_front(side.out, count);  // it may hold a password
  const auto room = side.out.empty() ? net::EpollSet::kEnd : net::EpollSet::kRoom;
  const int error =
      background_set_.set(side.connection->fd(), side.key, net::EpollSet::kInput | room);
  return sent.has_value() && error == 0;
}

void Runtime::close_side(SideConnection &side) const noexcept {
  if (side.connection) background_set_.remove(side.connection->fd());
  side.connection.reset();
  side.is_broken = false;
  wipe(side.out);  // it may hold a password
  side.auths.clear();
}

}  // namespace redlatch::runtime
