// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/connecting.h"

#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "driver/services.h"
#include "host/clock.h"
#include "host/random.h"
#include "runtime/threads.h"

namespace redlatch::runtime {

Connecting::Connecting(const Parts &parts)
    : wakeup_(parts.wakeup),
      log_(parts.wakeup.log()),
      alarm_(parts.alarm),
      service_(parts.service),
      shutdown_(parts.shutdown),
      polling_(parts.polling),
      logins_(parts.logins),
      transfer_(parts.transfer) {}

void Connecting::tend(Lock &lock, Link &link) {
  if (link.attempt && link.attempt->is_over) finish(lock, link);
  if (link.attempt || shutdown_.is_stopping()) return;
  driver::PrimaryFollower *follower = link.sentinel ? &link.sentinel->follower : nullptr;
  if (link.connection.begin_attempt(*service_, follower, boot_now())) start(link);
}

void Connecting::end(Lock &lock, Link &link) {
  if (!link.attempt) return;
  join(lock, *link.attempt);
  link.attempt.reset();
}

// The mutex is free meanwhile.
void Connecting::join(Lock &lock, const Attempt &attempt) {
  lock.unlock();
  pthread_join(attempt.thread, nullptr);
  lock.lock();
}

void Connecting::start(Link &link) {
  int error = ENOMEM;
  try {
    if (link.sentinel) link.sentinel->stop.clear();
    link.attempt = std::make_unique<Attempt>(*this, link, *service_);
    error = start_thread(link.attempt->thread, attempt_main, link.attempt.get());
  } catch (...) {
    (void)log_.add_caught();
  }
  if (error == 0) return;
  link.attempt.reset();
  try {
    service_->on_connect_failed(link.node, no_thread(error), boot_now());
  } catch (...) {
    (void)log_.add_caught();  // the service has scheduled the next attempt anyway
  }
}

void *Connecting::attempt_main(void *attempt) {
  pthread_setname_np(pthread_self(), "redlatch-dial");
  auto &mine = *static_cast<Attempt *>(attempt);
  mine.in.attempt(mine);
  return nullptr;
}

// In the thread of the attempt. No other thread touches `mine` until is_over.
void Connecting::attempt(Attempt &mine) {
  try {
    logins_.hold(mine.machine.login(), [this, &mine] { dial(mine); });
  } catch (...) {
    mine.machine.fail({log_.add_caught(), {}});
  }
  Lock lock(wakeup_.mutex());
  mine.is_over = true;
  alarm_.wake();
  wakeup_.wake_all(lock);
}

void Connecting::dial(Attempt &mine) const {
  const Link &link = mine.link;
  const net::Event &stop = link.sentinel ? link.sentinel->stop : shutdown_.stop_event();
  DialogueHost host(mine.machine.begin(boot_now()), link.attachment.get(), stop.fd());
  host.hold();
  mine.connections = host.take();
  mine.machine.end(boot_now());
}

void Connecting::finish(Lock &lock, Link &link) {
  join(lock, *link.attempt);
  const auto ended = std::move(link.attempt);
  driver::NodeAttempt &attempt = ended->machine;
  try {
    const auto result = attempt.conclude();
    if (result == driver::NodeAttempt::Result::kCluster && become_cluster(*ended)) return;
    if (result == driver::NodeAttempt::Result::kConnected) open(link, *ended);
    link.connection.on_attempt_over(*service_, attempt, !polling_.has_several(), boot_now());
    for (const resp::ReplyPtr &push : ended->connections.pushes) {
      if (link.is_usable()) link.connection.take_message(*service_, *push, boot_now());
    }
  } catch (...) {
    (void)log_.add_caught();
    link.drop();
  }
  shutdown_.note_progress();
}

// Called before the connection is used: no other thread reads or sends. On failure the attempt has
// failed.
bool Connecting::become_cluster(Attempt &ended) {
  std::array<uint8_t, 16> id{};
  uint64_t seed = 0;
  if (!fill_random(id) || !fill_random(seed)) {
    ended.machine.fail(no_random(errno));
    return false;
  }
  if (const int error = polling_.become_several(); error != 0) {
    polling_.become_one();
    ended.machine.fail(not_watched(ended.link.settings, error));
    return false;
  }
  try {
    service_.become_cluster(id, seed, log_);
  } catch (...) {
    polling_.become_one();
    ended.machine.fail({log_.add_caught(), {}});
    return false;
  }
  polling_.drop_reader();
  return true;
}

// A connection that some set does not poll is closed: its replies would not be read. The attempt
// has failed then.
void Connecting::open(Link &link, Attempt &ended) {
  polling_.unwatch_messages(link);
  link.connect(ended);
  const int error = polling_.watch(link);
  if (error == 0) return transfer_.append_auth(link);
  polling_.unwatch(link);
  polling_.unwatch_messages(link);
  link.disconnect();
  link.messages.reset();
  ended.machine.fail(not_watched(link.settings, error));
}

}  // namespace redlatch::runtime
