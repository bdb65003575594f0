// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/key_watch.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "timing/waiting.h"

namespace redlatch::lock {

void KeyWatch::set_waiting(Watcher &watcher, bool waits) {
  if (watcher.waits_ == waits) return;
  watcher.waits_ = waits;
  if (waits) {
    watcher.poll_.reset();
    watcher.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &watcher;
    first_ = &watcher;
    count_++;
    return;
  }
  assert(first_ != nullptr && count_ > 0);
  (watcher.previous_ != nullptr ? watcher.previous_->next_ : first_) = watcher.next_;
  if (watcher.next_ != nullptr) watcher.next_->previous_ = watcher.previous_;
  watcher.next_ = watcher.previous_ = nullptr;
  count_--;
}

// The waiter that was chosen when the tracking began, else the first in the queue.
const KeyWatch::Watcher *KeyWatch::foremost() const {
  const Watcher *first = nullptr;
  for (const Watcher *at = first_; at != nullptr; at = at->next_) {
    if (at->id_ == tracked_for_) return at;
    const bool is_before =
        first == nullptr || std::pair(at->rank_, at->id_) < std::pair(first->rank_, first->id_);
    if (is_before) first = at;
  }
  return first;
}

KeyWatch::Step KeyWatch::on_refused(Watcher &watcher, const Seen &seen, Nanos now,
                                    Abilities abilities) {
  assert(watcher.waits_);
  watcher.is_key_awaited_ = seen.is_left_to_others;
  const bool is_of_others = seen.is_foreign || (watcher.is_head() && watcher.is_key_awaited_);
  if (!is_of_others || !abilities.can_track) return {};
  if (is_tracked()) {
    const Watcher *chosen = foremost();
    if (chosen == nullptr || watcher.rank_ < chosen->rank_) tracked_for_ = watcher.id_;
    return {};
  }
  return {.command = now < watcher.quiet_until_ ? Command::kNone : Command::kTrack};
}

void KeyWatch::sent(Watcher &watcher, Nanos now) {
  assert(watcher.waits_ && watcher.id_ != 0 && !is_tracked());
  tracked_for_ = watcher.id_;
  watcher.quiet_until_ = now + timing::quiet_of(watcher.rank_);
}

// The server may report the release of a foreign holder also to waiters behind the head, which may
// be dead; unless messages do not arrive.
Nanos KeyWatch::poll_delay(Watcher &watcher, const Seen &seen, Abilities abilities,
                           Entropy &random) const {
  const bool is_head = watcher.is_head();
  Nanos delay = timing::poll_delay(seen.pttl_ms, seen.is_foreign ? 0 : watcher.rank_);
  if (seen.is_foreign) delay += timing::poll_spacing(watcher.rank_);
  const bool is_reported = abilities.can_track && is_tracked();
  const bool must_poll = seen.is_foreign ? is_head || !is_reported
                                         : is_head && watcher.is_key_awaited_ && !is_reported;
  if (must_poll || !abilities.is_push_trusted) {
    const Nanos apart = seen.is_foreign ? timing::quiet_of(watcher.rank_) : 0;
    delay = std::min(delay, watcher.poll_.next(random.next()) + apart);
    if (!abilities.is_push_trusted)
      delay = std::min(delay, timing::poll_unheard(watcher.rank_) + apart);
  } else {
    watcher.poll_.reset();
  }
  const bool may_be_shared = seen.is_shared || seen.is_foreign;
  if (may_be_shared && !is_head) delay = std::min(delay, timing::poll_past_head(watcher.rank_));
  return delay;
}

// Not there: it went before the server began to track it.
KeyWatch::Step KeyWatch::on_key_found(const Watcher &watcher, bool is_there, Nanos now) {
  if (is_there || watcher.is_key_awaited_) return {};
  return on_changed(now);
}

KeyWatch::Step KeyWatch::on_changed(Nanos now) {
  if (!is_tracked()) return {};
  const Watcher *chosen = foremost();
  tracked_for_ = 0;
  if (chosen == nullptr) return {};
  return {.recheck_id = chosen->id_, .recheck_at = now + timing::poll_spacing(chosen->rank_)};
}

const char *KeyWatch::check() const {
  if ((first_ == nullptr) != (count_ == 0)) return "waiters are counted";
  const Watcher *before = nullptr;
  size_t seen = 0;
  for (const Watcher *at = first_; at != nullptr && seen <= 100; before = at, at = at->next_) {
    if (!at->waits_) return "only waiters are listed";
    if (at->previous_ != before) return "each waiter knows the one before it";
    if (at->id_ == 0) return "a waiter has an id";
    if (at->rank_ < -1) return "a rank is a place in the queue, or not known";
    if (++seen > count_) return "no waiter is listed twice";
  }
  return nullptr;
}

}  // namespace redlatch::lock
