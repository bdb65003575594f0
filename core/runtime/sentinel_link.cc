// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: links whose server is named by sentinels. All but the
// survey runs in the background thread.
#include "runtime/sentinel_link.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "net/secret_line.h"
#include "runtime/runtime.h"
#include "timing/clock_offset.h"

namespace redlatch::runtime {

Settings SentinelLink::next_sentinel() const {
  std::vector<HostPort> all = settings.sentinel.addresses;
  all.insert(all.end(), known.others.begin(), known.others.end());
  const auto found = std::find(all.begin(), all.end(), opinion.sentinel);
  const size_t after_it = found == all.end() ? 0 : static_cast<size_t>(found - all.begin()) + 1;
  return settings.of_sentinel(all[(after_it + turn) % all.size()]);
}

void SentinelLink::lose_watch(Nanos now, uint64_t entropy) noexcept {
  watch.reset();
  turn++;
  failure_count++;
  watch_at = after(now, backoff.next(entropy));
}

Nanos SentinelLink::next_due(bool is_wanted) const {
  if (watch) return watch->next_due();
  return is_wanted && side.is_idle() ? watch_at : kNever;
}

// ---- the watch ---------------------------------------------------------------------------------

bool Runtime::wants_watch(const Link &link) { return link.is_connected || link.attempt; }

void Runtime::tend_watch(Lock &lock, Link &link) {
  SentinelLink &mine = *link.sentinel;
  try {
    const auto send = [&mine](auto argv) { mine.side.append(argv); };
    const auto ended = end_side_attempt(lock, mine.side);
    if (ended && !ended->ok()) return lose_watch(link, *ended);
    if (ended && !mine.watch) close_side(mine.side);
    if (ended && mine.watch) {
      // With the password that was read meanwhile.
      mine.watch.emplace(*mine.watched, link.settings.sentinel.primary_name);
      mine.watch->start(send, boot_now());
    }
    if (mine.watch && mine.side.connection) {
      mine.watch->on_timer(send, boot_now());
      if (!send_side(mine.side)) return lose_watch(link, {});
      if (mine.watch->is_over()) return lose_watch(link, mine.watch->outcome());
    }
    if (is_stopping_ || !mine.side.is_idle() || !wants_watch(link)) return;
    if (boot_now() < mine.watch_at) return;
    start_watch(link);
  } catch (const std::bad_alloc &) {
    lose_watch(link, {});
  }
}

void Runtime::start_watch(Link &link) {
  SentinelLink &mine = *link.sentinel;
  const auto sentinel = std::make_shared<Settings>(mine.next_sentinel());
  mine.watched = sentinel;
  mine.watch.emplace(*sentinel, link.settings.sentinel.primary_name);
  const auto outcome =
      open_side(mine.side, [sentinel](int wake_fd, std::unique_ptr<net::Connection> &connection) {
        auto ready = net::read_passwords_again(*sentinel);
        if (!ready.ok()) return ready;
        connection = std::make_unique<net::Connection>();
        return connection->dial(*sentinel, after(boot_now(), sentinel->connect_timeout), wake_fd);
      });
  if (!outcome.ok()) lose_watch(link, outcome);
}

// The link to the primary stays. Logs once that no sentinel can be watched.
void Runtime::lose_watch(Link &link, const Outcome &why) noexcept {
  SentinelLink &mine = *link.sentinel;
  try {
    if (mine.failure_count + 1 == mine.sentinel_count()) {
      log_.add(LogLevel::kWarning,
               "no sentinel of " + link.settings.address() +
                   " can be watched, so that a failover is noticed late: " + why.message);
    }
  } catch (const std::bad_alloc &) {
    mine.failure_count--;  // so that the next one is logged
  }
  close_side(mine.side);
  const Nanos now = boot_now();
  mine.lose_watch(now, static_cast<uint64_t>(now));
}

void Runtime::read_watch(Lock &lock, Link &link) {
  SentinelLink &mine = *link.sentinel;
  if (!mine.side.connection) return;
  try {
    std::vector<net::ReplyPtr> replies;
    const bool is_open = read_side(lock, mine.side, replies);
    const auto send = [&mine](auto argv) { mine.side.append(argv); };
    const Nanos now = boot_now();
    for (const net::ReplyPtr &reply : replies) {
      const auto news = mine.watch->on_reply(*reply, send, now);
      if (news) on_news(link, *news, now);
    }
    if (mine.watch->is_subscribed()) {
      mine.failure_count = 0;
      mine.backoff.reset();
    }
    if (!is_open) lose_watch(link, failure(Status::kUnavailable, "the connection has ended"));
  } catch (const std::bad_alloc &) {
    lose_watch(link, {});
  }
}

// The old primary may accept writes for long: nothing more is sent to it.
void Runtime::on_news(Link &link, const sentinel::Opinion &opinion, Nanos now) {
  SentinelLink &mine = *link.sentinel;
  const bool is_known = !mine.known.primary.host.empty();
  if (!is_known || !has_moved(opinion, mine.known.primary, mine.known.epoch)) return;
  link.drop();
  if (link.attempt) mine.stop.signal();
  mine.must_connect_now = true;
  const std::string from = mine.known.primary.text();
  note_switch(mine.known, opinion, now);
  mine.known.primary = mine.news.emplace(opinion.primary);
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
    const std::vector<HostPort> others = link.sentinel->known.others;
    lock.unlock();
    Settings settings = link.settings;
    (void)net::read_passwords_again(settings);  // with the last password, if that fails
    auto found = runtime::survey_sentinels(settings, others, stop_event_.fd());
    lock.lock();
    link.sentinel->findings = std::move(found);
  } catch (const std::bad_alloc &) {
    return;
  }
}

// ---- connecting --------------------------------------------------------------------------------

void Runtime::connect_now(Link &link, Nanos now) {
  SentinelLink &mine = *link.sentinel;
  if (!mine.must_connect_now || link.is_connected || link.attempt) return;
  mine.must_connect_now = false;
  service_->connect_soon(link.node, now);
}

// After an attempt of the link. A switch that came meanwhile counts more than what it found.
void Runtime::note_primary(Link &link, FoundPrimary &found, Outcome &outcome) noexcept {
  SentinelLink &mine = *link.sentinel;
  const auto news = std::exchange(mine.news, std::nullopt);
  mine.known.others = std::move(found.known.others);
  mine.known.silent = std::move(found.known.silent);
  if (outcome.ok() && news && *news != found.known.primary) {
    outcome.status = Status::kUnavailable;
    mine.must_connect_now = true;
  }
  if (!outcome.ok()) return;
  mine.known.epoch = found.known.epoch;
  mine.known.primary = std::move(found.known.primary);
  std::swap(mine.opinion, found.opinion);  // that of before is logged
}

void Runtime::log_primary(Link &link, const sentinel::Opinion &before, const ServerFacts &facts) {
  SentinelLink &mine = *link.sentinel;
  const ServerAge age_before = mine.age;
  if (facts.age.round_trip > 0) mine.age = facts.age;
  if (before.primary == mine.opinion.primary) return;
  log_.add(LogLevel::kInfo, "connected to " + mine.address() + ", the primary of " +
                                link.settings.address() + " as sentinel " +
                                mine.opinion.sentinel.text() + " says");
  const bool is_measured = age_before.round_trip > 0 && facts.age.round_trip > 0;
  const Nanos behind = age_before.clock - facts.age.clock;
  if (!is_measured || behind <= timing::kClockLimit) return;
  log_.add(LogLevel::kWarning, "the clock of " + mine.address() + " is " +
                                   std::to_string(behind / kMs) +
                                   " ms behind that of the primary before: fences may fall");
}

}  // namespace redlatch::runtime
