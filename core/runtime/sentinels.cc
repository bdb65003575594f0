// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/sentinels.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "driver/sentinel_survey.h"
#include "host/clock.h"
#include "runtime/dialogue_host.h"
#include "runtime/password_files.h"

namespace redlatch::runtime {

Sentinels::Sentinels(const Parts &parts)
    : wakeup_(parts.wakeup),
      log_(parts.wakeup.log()),
      links_(parts.links),
      shutdown_(parts.shutdown),
      sides_(parts.sides) {}

// ---- the watch ---------------------------------------------------------------------------------

void Sentinels::tend(Lock &lock, Link &link) {
  SentinelLink &mine = *link.sentinel;
  for (size_t i = 0; i < mine.sides.size(); i++) {
    if (!mine.sides[i].connection.is_idle()) tend(lock, link, i);
  }
  try {
    while (!shutdown_.is_stopping() && link.wants_watch()) {
      const auto number = mine.follower.watch().begin_dial(boot_now());
      if (!number) return;
      dial(link, *number);
    }
  } catch (...) {
    (void)log_.add_caught();  // with the next wake-up
  }
}

void Sentinels::tend(Lock &lock, Link &link, size_t number) {
  sentinel::PrimaryWatch &watch = link.sentinel->follower.watch();
  SentinelLink::Side &mine = link.sentinel->sides[number];
  SideConnection &side = mine.connection;
  try {
    // Called at once, with the mutex held.
    const auto send = [&side](auto argv) NOT_ANALYSED { side.append(argv); };
    const auto ended = sides_.end_attempt(lock, side);
    if (ended && !ended->ok()) return lose(link, number, *ended);
    // With the password that was read meanwhile.
    if (ended) watch.on_dialled(number, *mine.settings, send, boot_now());
    if (!side.connection) return;
    watch.on_timer(number, send, boot_now());
    if (!sides_.send(side)) return lose(link, number, {});
    if (watch.is_over(number)) lose(link, number, watch.outcome(number));
  } catch (...) {
    (void)log_.add_caught();
    lose(link, number, {});
  }
}

void Sentinels::dial(Link &link, size_t number) {
  SentinelLink::Side &mine = link.sentinel->sides[number];
  try {
    const auto sentinel =
        std::make_shared<Settings>(link.sentinel->follower.watch().settings_of(number));
    mine.settings = sentinel;
    const auto outcome = sides_.open(
        mine.connection, [sentinel](int wake_fd, std::unique_ptr<net::Connection> &connection) {
          auto ready = read_passwords_again(*sentinel);
          if (!ready.ok()) return ready;
          connection = std::make_unique<net::Connection>();
          return connection->dial(*sentinel, after(boot_now(), sentinel->connect_timeout), wake_fd);
        });
    if (!outcome.ok()) lose(link, number, outcome);
  } catch (...) {
    (void)log_.add_caught();
    lose(link, number, {});
  }
}

void Sentinels::lose(Link &link, size_t number, const Outcome &why) noexcept {
  sides_.close(link.sentinel->sides[number].connection);
  const Nanos now = boot_now();
  link.sentinel->follower.on_ended(number, why, static_cast<uint64_t>(now) + number,
                                   shutdown_.is_stopping(), now);
}

void Sentinels::read(Lock &lock, Link &link, size_t number) {
  SideConnection &side = link.sentinel->sides[number].connection;
  driver::PrimaryFollower &follower = link.sentinel->follower;
  if (!side.connection) return;
  try {
    std::vector<resp::ReplyPtr> replies;
    const bool is_open = sides_.read(lock, side, replies);
    // Called at once, with the mutex held.
    const auto send = [&side](auto argv) NOT_ANALYSED { side.append(argv); };
    const Nanos now = boot_now();
    for (const resp::ReplyPtr &reply : replies) {
      if (follower.on_reply(number, *reply, send, now)) leave_primary(link);
    }
    if (!is_open) {
      lose(link, number, failure(Status::kUnavailable, "the connection has ended"));
    }
  } catch (...) {
    (void)log_.add_caught();
    leave_primary(link);  // what was lost may be the news of another primary
    lose(link, number, {});
  }
}

void Sentinels::leave_primary(Link &link) {
  link.drop();
  if (link.attempt) link.sentinel->stop.signal();
}

void Sentinels::survey(Lock &lock) noexcept {
  Link &link = links_.front();
  if (!link.sentinel) return;
  try {
    const std::vector<HostPort> others = link.sentinel->follower.watch().known().others;
    const Wakeup::Using used(wakeup_, lock);
    lock.unlock();
    Settings settings = link.settings;
    (void)read_passwords_again(settings);  // with the last password, if that fails
    driver::SentinelSurvey survey(settings, others, boot_now());
    DialogueHost(survey, nullptr, shutdown_.stop_event().fd()).hold();
    auto found = survey.findings();
    lock.lock();
    link.sentinel->findings = std::move(found);
  } catch (...) {
    (void)log_.add_caught();
  }
}

Nanos Sentinels::next_due() const {
  Nanos due = kNever;
  for (const Link &link : links_) {
    if (link.sentinel)
      due = std::min(due, link.sentinel->follower.watch().next_due(link.wants_watch()));
  }
  return due;
}

// ---- the shutdown ------------------------------------------------------------------------------

bool Sentinels::are_open() const {
  return std::all_of(links_.begin(), links_.end(), [](const Link &link) {
    return !link.sentinel || link.sentinel->stop.is_open();
  });
}

// Ends attempts to connect.
void Sentinels::stop() {
  for (const Link &link : links_) {
    if (link.sentinel) link.sentinel->stop.signal();
  }
}

void Sentinels::end(Lock &lock, Link &link) {
  if (!link.sentinel) return;
  for (SentinelLink::Side &one : link.sentinel->sides) sides_.end(lock, one.connection);
}

void Sentinels::close() {
  for (Link &link : links_) {
    if (link.sentinel) link.sentinel->stop.close();
  }
}

}  // namespace redlatch::runtime
