// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: links whose server is named by sentinels. All but the
// survey runs in the background thread.
#include "runtime/sentinel_link.h"

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "net/secret_line.h"
#include "runtime/runtime.h"
#include "timing/clock_offset.h"

namespace redlatch::runtime {

SentinelLink::SentinelLink(const Settings &settings_, uint32_t first_key)
    : settings(settings_), watch(settings_) {
  sides.reserve(watch.size());
  for (size_t i = 0; i < watch.size(); i++) sides.emplace_back(first_key + i);
}

// ---- the watch ---------------------------------------------------------------------------------

void Runtime::tend_watch(Lock &lock, Link &link) {
  SentinelLink &mine = *link.sentinel;
  for (size_t i = 0; i < mine.sides.size(); i++) {
    if (!mine.sides[i].connection.is_idle()) tend_sentinel(lock, link, i);
  }
  try {
    while (!is_stopping_ && link.wants_watch()) {
      const auto number = mine.watch.begin_dial(boot_now());
      if (!number) return;
      dial_sentinel(link, *number);
    }
  } catch (...) {
    (void)log_.add_caught();  // with the next wake-up
  }
}

void Runtime::tend_sentinel(Lock &lock, Link &link, size_t number) {
  sentinel::PrimaryWatch &watch = link.sentinel->watch;
  SentinelLink::Side &mine = link.sentinel->sides[number];
  SideConnection &side = mine.connection;
  try {
    const auto send = [&side](auto argv) { side.append(argv); };
    const auto ended = end_side_attempt(lock, side);
    if (ended && !ended->ok()) return lose_sentinel(link, number, *ended);
    // With the password that was read meanwhile.
    if (ended) watch.on_dialled(number, *mine.settings, send, boot_now());
    if (!side.connection) return;
    watch.on_timer(number, send, boot_now());
    if (!send_side(side)) return lose_sentinel(link, number, {});
    if (watch.is_over(number)) lose_sentinel(link, number, watch.outcome(number));
  } catch (...) {
    (void)log_.add_caught();
    lose_sentinel(link, number, {});
  }
}

void Runtime::dial_sentinel(Link &link, size_t number) {
  SentinelLink::Side &mine = link.sentinel->sides[number];
  try {
    const auto sentinel = std::make_shared<Settings>(link.sentinel->watch.settings_of(number));
    mine.settings = sentinel;
    const auto outcome = open_side(
        mine.connection, [sentinel](int wake_fd, std::unique_ptr<net::Connection> &connection) {
          auto ready = net::read_passwords_again(*sentinel);
          if (!ready.ok()) return ready;
          connection = std::make_unique<net::Connection>();
          return connection->dial(*sentinel, after(boot_now(), sentinel->connect_timeout), wake_fd);
        });
    if (!outcome.ok()) lose_sentinel(link, number, outcome);
  } catch (...) {
    (void)log_.add_caught();
    lose_sentinel(link, number, {});
  }
}

// The link to the primary stays. Logs once that no sentinel can be watched.
void Runtime::lose_sentinel(Link &link, size_t number, const Outcome &why) noexcept {
  close_side(link.sentinel->sides[number].connection);
  const Nanos now = boot_now();
  const bool is_deaf =
      link.sentinel->watch.on_ended(number, now, static_cast<uint64_t>(now) + number);
  if (!is_deaf || is_stopping_) return;
  try {
    log_.add(LogLevel::kWarning,
             "no sentinel of " + link.settings.address() +
                 " can be watched, so that a failover is noticed late: " + why.message);
  } catch (const std::bad_alloc &) {
    return;
  }
}

void Runtime::read_watch(Lock &lock, Link &link, size_t number) {
  SideConnection &side = link.sentinel->sides[number].connection;
  sentinel::PrimaryWatch &watch = link.sentinel->watch;
  if (!side.connection) return;
  try {
    std::vector<net::ReplyPtr> replies;
    const bool is_open = read_side(lock, side, replies);
    const auto send = [&side](auto argv) { side.append(argv); };
    const Nanos now = boot_now();
    for (const net::ReplyPtr &reply : replies) {
      const std::string from = watch.known().primary.text();
      const auto news = watch.on_reply(number, *reply, send, now);
      if (news) on_news(link, *news, from);
    }
    if (!is_open) {
      lose_sentinel(link, number, failure(Status::kUnavailable, "the connection has ended"));
    }
  } catch (...) {
    (void)log_.add_caught();
    link.drop();  // what was lost may be the news of another primary
    lose_sentinel(link, number, {});
  }
}

// The old primary may accept writes for long: nothing more is sent to it.
void Runtime::on_news(Link &link, const sentinel::Opinion &opinion, const std::string &from) {
  link.drop();
  if (link.attempt) link.sentinel->stop.signal();
  link.sentinel->must_connect_now = true;
  log_.add(LogLevel::kInfo, "the primary of " + link.settings.address() + " has moved from " +
                                from + " to " + opinion.primary.text() + ", says sentinel " +
                                opinion.sentinel.text());
}

// In the thread of the caller, the only one that waits for it. Without memory nothing is known.
void Runtime::survey_sentinels() noexcept {
  Link &link = links_.front();
  if (!link.sentinel) return;
  try {
    Lock lock(mutex_);
    if (is_shut_) return;
    const std::vector<HostPort> others = link.sentinel->watch.known().others;
    const Using used(*this, lock);
    lock.unlock();
    Settings settings = link.settings;
    (void)net::read_passwords_again(settings);  // with the last password, if that fails
    auto found = runtime::survey_sentinels(settings, others, stop_event_.fd());
    lock.lock();
    link.sentinel->findings = std::move(found);
  } catch (...) {
    (void)log_.add_caught();
  }
}

// ---- connecting --------------------------------------------------------------------------------

void Runtime::connect_now(Link &link, Nanos now) {
  SentinelLink &mine = *link.sentinel;
  if (!mine.must_connect_now || link.is_connected || link.attempt) return;
  mine.must_connect_now = false;
  service_->connect_soon(link.node, now);
}

// After an attempt of the link. News that came meanwhile count more than what it found.
void Runtime::note_primary(Link &link, FoundPrimary &found, Outcome &outcome) noexcept {
  SentinelLink &mine = *link.sentinel;
  if (!outcome.ok()) return mine.watch.on_not_found(std::move(found.known));
  if (mine.watch.on_found(std::move(found.known), found.opinion)) return;
  outcome.status = Status::kUnavailable;
  mine.must_connect_now = true;
}

void Runtime::log_primary(Link &link, const sentinel::Opinion &before, const ServerFacts &facts) {
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

}  // namespace redlatch::runtime
