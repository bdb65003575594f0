// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/replication.h"

#include <algorithm>
#include <cassert>

#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

// With less time left another WAIT is of no use: this one has ended a little early.
constexpr Nanos kShortestWait = 2 * kMs;

}  // namespace

void Replication::List::push(Entry &entry) {
  assert(entry.next_ == nullptr && entry.previous_ == nullptr && first != &entry);
  entry.previous_ = last;
  entry.next_ = nullptr;
  (last != nullptr ? last->next_ : first) = &entry;
  last = &entry;
}

void Replication::List::remove(Entry &entry) {
  assert(first != nullptr && (entry.previous_ != nullptr || first == &entry));
  (entry.previous_ != nullptr ? entry.previous_->next_ : first) = entry.next_;
  (entry.next_ != nullptr ? entry.next_->previous_ : last) = entry.previous_;
  entry.next_ = entry.previous_ = nullptr;
}

void Replication::want(Entry &entry, Nanos limit) {
  drop(entry);
  entry.state_ = Entry::State::kDue;
  entry.limit_ = limit;
  entry.until_ = 0;
  due_.push(entry);
}

void Replication::drop(Entry &entry) {
  if (entry.state_ == Entry::State::kIdle) return;
  list_of(entry).remove(entry);
  entry.state_ = Entry::State::kIdle;
}

Replication::List &Replication::list_of(const Entry &entry) {
  if (entry.state_ == Entry::State::kPutOff) return put_off_;
  return entry.state_ == Entry::State::kDue ? due_ : batch_;
}

// All that want the same number: one that wants fewer is not kept waiting for the most.
Replication::Entry *Replication::start() {
  if (!is_due()) return nullptr;
  is_waiting_ = true;
  replicas_ = due_.first->replicas_;
  for (Entry *at = due_.first; at != nullptr;) {
    Entry &entry = *at;
    at = at->next_;
    if (entry.replicas_ != replicas_) continue;
    due_.remove(entry);
    batch_.push(entry);
    entry.state_ = Entry::State::kBatched;
  }
  return batch_.first;
}

// The time of an entry begins with its first extension: it does not pay for the WAIT of others. It
// is never longer than the lease, which a caller could not use afterwards.
void Replication::sent(Entry &entry, Nanos ttl, Nanos now) {
  assert(entry.state_ == Entry::State::kBatched && ttl > 0);
  if (entry.until_ == 0) entry.until_ = std::min(after(now, entry.timeout_), entry.limit_);
  entry.until_ = std::min(entry.until_, timing::deadline_of(now, ttl));
}

// That of the entry with the least time: the others are asked for again.
int64_t Replication::wait_ms(Nanos now) const {
  Nanos until = kNever;
  for (const Entry *at = batch_.first; at != nullptr; at = at->next_) {
    until = std::min(until, at->until_);
  }
  if (until == kNever) return 1;
  return std::max<int64_t>((until - now) / kMs, 1);
}

void Replication::on_extended(Entry &entry) {
  if (entry.state_ == Entry::State::kBatched) entry.state_ = Entry::State::kWritten;
}

void Replication::on_unknown_script(Entry &entry) {
  if (entry.state_ != Entry::State::kBatched) return;
  batch_.remove(entry);
  entry.state_ = Entry::State::kDue;
  due_.push(entry);
}

void Replication::on_put_off(Entry &entry, Nanos retry_at) {
  if (entry.state_ != Entry::State::kBatched) return;
  batch_.remove(entry);
  entry.state_ = Entry::State::kPutOff;
  entry.retry_at_ = std::min(retry_at, entry.until_);
  put_off_.push(entry);
}

Nanos Replication::put_off_until() const {
  Nanos until = kNever;
  for (const Entry *at = put_off_.first; at != nullptr; at = at->next_) {
    until = std::min(until, at->retry_at_);
  }
  return until;
}

Replication::Step Replication::take_up(Nanos now) {
  for (Entry *at = put_off_.first; at != nullptr;) {
    Entry &entry = *at;
    at = at->next_;
    if (entry.retry_at_ > now) continue;
    put_off_.remove(entry);
    const bool is_over = entry.until_ - now < kShortestWait;
    entry.state_ = is_over ? Entry::State::kIdle : Entry::State::kDue;
    if (is_over) return {Verdict::kTooFew, &entry};
    due_.push(entry);
  }
  return {};
}

Replication::Step Replication::on_counted(int64_t count, Nanos now) {
  Entry *entry = batch_.first;
  if (entry == nullptr) {
    is_waiting_ = false;
    return {};
  }
  batch_.remove(*entry);
  const bool is_written = entry->state_ == Entry::State::kWritten;
  entry->state_ = Entry::State::kIdle;
  if (is_written && count >= entry->replicas_) return {Verdict::kConfirmed, entry};
  if (entry->until_ - now < kShortestWait) return {Verdict::kTooFew, entry};
  entry->state_ = Entry::State::kDue;
  due_.push(*entry);
  return {Verdict::kAgain, entry};
}

Replication::Entry *Replication::take(List &list) {
  Entry *entry = list.first;
  if (entry == nullptr) return nullptr;
  list.remove(*entry);
  entry->state_ = Entry::State::kIdle;
  return entry;
}

Replication::Entry *Replication::on_refused() {
  is_waiting_ = batch_.first != nullptr;
  return take(batch_);
}

Replication::Entry *Replication::take_due() {
  return take(due_.first != nullptr ? due_ : put_off_);
}

void Replication::on_link_lost() {
  is_waiting_ = false;
  while (Entry *entry = put_off_.first) {
    put_off_.remove(*entry);
    entry->state_ = Entry::State::kDue;
    entry->until_ = 0;
    due_.push(*entry);
  }
  // In front of those that came later, in the same order.
  while (Entry *entry = batch_.last) {
    batch_.remove(*entry);
    entry->state_ = Entry::State::kDue;
    entry->until_ = 0;  // the outage is not the replicas' fault
    entry->next_ = due_.first;
    (due_.first != nullptr ? due_.first->previous_ : due_.last) = entry;
    due_.first = entry;
  }
}

const char *Replication::check() const {
  if (batch_.first != nullptr && !is_waiting_) return "a batch is answered by its WAIT";
  int seen = 0;
  const auto is_whole = [&seen](const List &list, Entry::State first, Entry::State second) {
    const Entry *before = nullptr;
    for (const Entry *at = list.first; at != nullptr; before = at, at = at->next_) {
      if (at->previous_ != before || (at->state_ != first && at->state_ != second)) return false;
      if (++seen > 100) return true;
    }
    return list.last == before;
  };
  using State = Entry::State;
  if (!is_whole(due_, State::kDue, State::kDue)) return "what is due is in the list of what is due";
  if (!is_whole(batch_, State::kBatched, State::kWritten)) return "what is batched is in the batch";
  if (!is_whole(put_off_, State::kPutOff, State::kPutOff)) return "what is put off is in its list";
  for (const Entry *at = batch_.first; at != nullptr; at = at->next_) {
    if (at->replicas_ != replicas_) return "a batch wants one number of replicas";
    if (++seen > 200) return nullptr;
  }
  return nullptr;
}

}  // namespace redlatch::lock
