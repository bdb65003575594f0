// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/sentinels.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "host/clock.h"
#include "runtime/password_files.h"
#include "timing/clock_offset.h"

namespace redlatch::runtime {

Sentinels::Sentinels(const Parts &parts)
    : wakeup_(parts.wakeup),
      log_(parts.wakeup.log()),
      service_(parts.service),
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
      const auto number = mine.watch.begin_dial(boot_now());
      if (!number) return;
      dial(link, *number);
    }
  } catch (...) {
    (void)log_.add_caught();  // with the next wake-up
  }
}

void Sentinels::tend(Lock &lock, Link &link, size_t number) {
  sentinel::PrimaryWatch &watch = link.sentinel->watch;
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
    const auto sentinel = std::make_shared<Settings>(link.sentinel->watch.settings_of(number));
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

// The link to the primary stays. Logs once that no sentinel can be watched.
void Sentinels::lose(Link &link, size_t number, const Outcome &why) noexcept {
  sides_.close(link.sentinel->sides[number].connection);
  const Nanos now = boot_now();
  const bool is_deaf =
      link.sentinel->watch.on_ended(number, now, static_cast<uint64_t>(now) + number);
  if (!is_deaf || shutdown_.is_stopping()) return;
  try {
    log_.add(LogLevel::kWarning,
             "no sentinel of " + link.settings.address() +
                 " can be watched, so that a failover is noticed late: " + why.message);
  } catch (const std::bad_alloc &) {
    return;
  }
}

void Sentinels::read(Lock &lock, Link &link, size_t number) {
  SideConnection &side = link.sentinel->sides[number].connection;
  sentinel::PrimaryWatch &watch = link.sentinel->watch;
  if (!side.connection) return;
  try {
    std::vector<resp::ReplyPtr> replies;
    const bool is_open = sides_.read(lock, side, replies);
    // Called at once, with the mutex held.
    const auto send = [&side](auto argv) NOT_ANALYSED { side.append(argv); };
    const Nanos now = boot_now();
    for (const resp::ReplyPtr &reply : replies) {
      const std::string from = watch.known().primary.text();
      const auto news = watch.on_reply(number, *reply, send, now);
      if (news) on_news(link, *news, from);
    }
    if (!is_open) {
      lose(link, number, failure(Status::kUnavailable, "the connection has ended"));
    }
  } catch (...) {
    (void)log_.add_caught();
    link.drop();  // what was lost may be the news of another primary
    lose(link, number, {});
  }
}

// The old primary may accept writes for long: nothing more is sent to it.
void Sentinels::on_news(Link &link, const sentinel::Opinion &opinion, const std::string &from) {
  link.drop();
  if (link.attempt) link.sentinel->stop.signal();
  link.sentinel->must_connect_now = true;
  log_.add(LogLevel::kInfo, "the primary of " + link.settings.address() + " has moved from " +
                                from + " to " + opinion.primary.text() + ", says sentinel " +
                                opinion.sentinel.text());
}

void Sentinels::survey(Lock &lock) noexcept {
  Link &link = links_.front();
  if (!link.sentinel) return;
  try {
    const std::vector<HostPort> others = link.sentinel->watch.known().others;
    const Wakeup::Using used(wakeup_, lock);
    lock.unlock();
    Settings settings = link.settings;
    (void)read_passwords_again(settings);  // with the last password, if that fails
    auto found = survey_sentinels(settings, others, shutdown_.stop_event().fd());
    lock.lock();
    link.sentinel->findings = std::move(found);
  } catch (...) {
    (void)log_.add_caught();
  }
}

Nanos Sentinels::next_due() const {
  Nanos due = kNever;
  for (const Link &link : links_) {
    if (link.sentinel) due = std::min(due, link.sentinel->watch.next_due(link.wants_watch()));
  }
  return due;
}

// ---- connecting --------------------------------------------------------------------------------

void Sentinels::connect_now(Link &link, Nanos now) {
  SentinelLink &mine = *link.sentinel;
  if (!mine.must_connect_now || link.is_connected || link.attempt) return;
  mine.must_connect_now = false;
  service_->connect_soon(link.node, now);
}

void Sentinels::note_primary(Link &link, FoundPrimary &found, Outcome &outcome) noexcept {
  SentinelLink &mine = *link.sentinel;
  if (!outcome.ok()) return mine.watch.on_not_found(std::move(found.known));
  if (mine.watch.on_found(std::move(found.known), found.opinion)) return;
  outcome.status = Status::kUnavailable;
  mine.must_connect_now = true;
}

void Sentinels::log_primary(Link &link, const sentinel::Opinion &before, const ServerFacts &facts) {
  SentinelLink &mine = *link.sentinel;
  const ServerAge age_before = mine.age;
  if (facts.age.round_trip > 0) mine.age = facts.age;
  if (before.primary == mine.watch.opinion().primary) return;
  log_.add(LogLevel::kInfo, "connected to " + mine.address() + ", the primary of " +
                                link.settings.address() + " as sentinel " +
                                mine.watch.opinion().sentinel.text() + " says");
  const bool is_measured = age_before.round_trip > 0 && facts.age.round_trip > 0;
  const Nanos behind = age_before.clock - facts.age.clock;
  if (!is_measured || behind <= timing::kClockLimit) return;
  log_.add(LogLevel::kWarning, "the clock of " + mine.address() + " is " +
                                   std::to_string(behind / kMs) +
                                   " ms behind that of the primary before: fences may fall");
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
