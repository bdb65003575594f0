// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/side_connections.h"

#include <cassert>
#include <new>
#include <utility>

#include "base/password.h"
#include "runtime/threads.h"

namespace redlatch::runtime {

namespace {

Outcome not_polled(int error) noexcept {
  return failure_if_memory(Status::kUnavailable, [error] {
    return "cannot poll a connection beside that of the commands: " + reason_of(error);
  });
}

}  // namespace

SideConnections::SideConnections(const Parts &parts)
    : wakeup_(parts.wakeup),
      alarm_(parts.alarm),
      shutdown_(parts.shutdown),
      polling_(parts.polling) {}

Outcome SideConnections::open(SideConnection &side, SideConnection::Open open) {
  assert(side.is_idle());
  side.attempt = std::make_unique<SideConnection::Attempt>(*this, std::move(open));
  const int error = start_thread(side.attempt->thread, attempt_main, side.attempt.get());
  if (error == 0) return {};
  side.attempt.reset();
  return no_thread(error);
}

void *SideConnections::attempt_main(void *attempt) {
  pthread_setname_np(pthread_self(), "redlatch-side");
  auto &mine = *static_cast<SideConnection::Attempt *>(attempt);
  mine.in.attempt(mine);
  return nullptr;
}

// In the thread of the attempt. No other thread touches `mine` until is_over.
void SideConnections::attempt(SideConnection::Attempt &mine) {
  try {
    mine.outcome = mine.open(shutdown_.stop_event().fd(), mine.connection);
  } catch (...) {
    mine.outcome.status = wakeup_.log().add_caught();
  }
  Lock lock(wakeup_.mutex());
  mine.is_over = true;
  alarm_.wake();
  wakeup_.wake_all(lock);
}

std::optional<Outcome> SideConnections::end_attempt(Lock &lock, SideConnection &side) {
  if (!side.attempt || !(side.attempt->is_over || shutdown_.is_stopping())) return std::nullopt;
  const pthread_t thread = side.attempt->thread;
  lock.unlock();
  pthread_join(thread, nullptr);
  lock.lock();
  assert(side.attempt && !side.connection);
  const auto ended = std::move(side.attempt);
  side.out.clear();
  side.auth.clear();
  if (ended->outcome.ok()) {
    side.connection = std::move(ended->connection);
    const int error = polling_.background().add(side.connection->fd(), side.key);
    if (error != 0) {
      side.connection.reset();
      return not_polled(error);
    }
  }
  return std::move(ended->outcome);
}

bool SideConnections::read(Lock &lock, SideConnection &side, std::vector<resp::ReplyPtr> &replies) {
  lock.unlock();
  const auto received = side.connection->receive(replies);
  lock.lock();
  return received != net::Connection::Received::kEnded;
}

bool SideConnections::send(SideConnection &side) {
  if (!side.connection || side.out.empty()) return true;
  const auto sent = side.connection->send(side.out);
  const size_t count = sent.value_or(side.out.size());
  drop_front(side.out, count);  // it may hold a password
  const auto room = side.out.empty() ? net::EpollSet::kEnd : net::EpollSet::kRoom;
  const int error =
      polling_.background().set(side.connection->fd(), side.key, net::EpollSet::kInput | room);
  return sent.has_value() && error == 0;
}

void SideConnections::close(SideConnection &side) noexcept {
  if (side.connection) polling_.background().remove(side.connection->fd());
  side.connection.reset();
  side.is_broken = false;
  wipe(side.out);  // it may hold a password
  side.auth.clear();
}

void SideConnections::end(Lock &lock, SideConnection &side) {
  (void)end_attempt(lock, side);
  close(side);
}

}  // namespace redlatch::runtime
