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

Connecting::Connecting(const Parts &parts, lock::Output &output)
    : wakeup_(parts.wakeup),
      log_(parts.wakeup.log()),
      alarm_(parts.alarm),
      service_(parts.service),
      shutdown_(parts.shutdown),
      polling_(parts.polling),
      logins_(parts.logins),
      transfer_(parts.transfer),
      output_(output) {}

void Connecting::tend(Lock &lock, Link &link) {
  if (link.attempt && link.attempt->is_over) finish(lock, link);
  // The primary has moved: the next attempt does not wait for its time.
  const bool has_none = !link.connection.is_made() && !link.attempt;
  if (link.sentinel && has_none && link.sentinel->follower.take_hurry()) {
    service_->connect_soon(link.node, boot_now());
  }
  const bool is_free = !link.attempt && !shutdown_.is_stopping();
  if (is_free && service_->begin_connect(link.node, boot_now())) start(link);
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
  link.attempt.emplace(*this, link);
  int error = ENOMEM;
  try {
    if (link.sentinel) link.attempt->found.known = link.sentinel->begin_attempt();
    if (link.reads_slots()) link.attempt->slots.servers = service_->known_servers();
    link.attempt->channel = service_->channel(link.node);
    link.attempt->needs_identity = service_->needs_identity();
    error = start_thread(link.attempt->thread, attempt_main, &*link.attempt);
  } catch (...) {
    (void)log_.add_caught();
    error = ENOMEM;
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
    mine.outcome = logins_.connect(
        mine.link.settings, mine.login,
        [this, &mine](const Settings &settings) { return connect(mine, settings); });
  } catch (...) {
    mine.outcome.status = log_.add_caught();
  }
  Lock lock(wakeup_.mutex());
  mine.is_over = true;
  alarm_.wake();
  wakeup_.wake_all(lock);
}

Outcome Connecting::connect(Attempt &mine, const Settings &settings) const {
  const Link &link = mine.link;
  mine.connections = {};
  if (link.reads_slots()) return read_slots(settings, shutdown_.stop_event().fd(), mine.slots);
  if (link.sentinel) {
    return open_primary(settings, mine.channel, link.sentinel->stop.fd(), mine.found,
                        mine.connections);
  }
  return open_connections(settings, mine.channel, link.attachment.get(), mine.needs_identity,
                          shutdown_.stop_event().fd(), mine.connections);
}

void Connecting::finish(Lock &lock, Link &link) {
  join(lock, *link.attempt);
  Attempt ended = std::move(*link.attempt);
  link.attempt.reset();
  if (link.reads_slots()) return end_reading_slots(link, ended);
  const ServerFacts &facts = ended.connections.facts;
  try {
    const bool is_cluster =
        driver::is_found_cluster(service_.settings(), service_.is_quorum(), facts);
    if (ended.outcome.ok() && is_cluster) return become_cluster(link);
    if (link.sentinel) {
      FoundPrimary &found = ended.found;
      link.sentinel->follower.on_attempt_over(std::move(found.known), std::move(found.opinion),
                                              ended.outcome);
    }
    if (ended.outcome.ok()) open(link, ended);
    if (ended.outcome.ok()) transfer_.append_auth(link);
    link.connection.on_attempt_over(*service_, ended.outcome, facts, !polling_.has_several(),
                                    boot_now());
    if (link.sentinel && ended.outcome.ok()) link.sentinel->follower.note_success(facts);
    for (const resp::ReplyPtr &push : ended.connections.pushes) {
      if (link.is_usable()) link.connection.take_message(*service_, *push, boot_now());
    }
  } catch (...) {
    (void)log_.add_caught();
    link.drop();
  }
  shutdown_.note_progress();
}

// Called before the connection is used: no other thread reads or sends. Throws std::bad_alloc, and
// then the attempt has failed.
void Connecting::become_cluster(Link &link) {
  std::array<uint8_t, 16> random{};
  std::array<uint8_t, 8> seed{};
  if (!fill_random(random) || !fill_random(seed)) {
    return service_->on_connect_failed(
        link.node,
        failure(Status::kInternal, "cannot get random bytes from the kernel: " + reason_of(errno)),
        boot_now());
  }
  const std::string text = link.settings.address() +
                           " is a node of a cluster: locks are on all its nodes, as with " +
                           "redis+cluster://";
  uint64_t number = 0;
  for (const uint8_t byte : seed) number = number << 8 | byte;
  try {
    polling_.become_several();
    service_.become_cluster(random, number, output_);
  } catch (...) {
    polling_.become_one();
    service_->on_connect_failed(link.node, {Status::kNoMemory, {}}, boot_now());
    throw;
  }
  polling_.drop_reader();
  log_.add(LogLevel::kInfo, text);
}

void Connecting::end_reading_slots(Link &link, Attempt &ended) {
  const Nanos now = boot_now();
  try {
    link.connection.on_slots_over(*service_, ended.outcome, ended.slots.facts, ended.slots.ranges,
                                  now);
  } catch (...) {
    return (void)log_.add_caught();  // what was planned is done with the next event, or read again
  }
  shutdown_.note_progress();
}

// A connection that some set does not poll is closed: its replies would not be read. The attempt
// has failed then.
void Connecting::open(Link &link, Attempt &ended) {
  polling_.unwatch_messages(link);
  link.connect(std::move(ended.connections), ended.login.number);
  const int error = polling_.watch(link);
  if (error == 0) return;
  polling_.unwatch(link);
  polling_.unwatch_messages(link);
  link.disconnect();
  link.messages.reset();
  // Also without memory for the text: the service has to hear of the end of the attempt.
  ended.outcome = {Status::kUnavailable, {}};
  try {
    ended.outcome = not_watched(link.settings, error);
  } catch (const std::bad_alloc &) {
    return;
  }
}

}  // namespace redlatch::runtime
