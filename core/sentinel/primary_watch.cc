// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel/primary_watch.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace redlatch::sentinel {

// ---- discoveries -------------------------------------------------------------------------------

bool PrimaryWatch::on_found(Knowledge &&found, Opinion &opinion) noexcept {
  const bool is_behind = is_news_ && opinion.epoch >= 0 && opinion.epoch < known_.epoch;
  const bool is_left =
      is_news_ && found.primary == known_.left && opinion.epoch <= known_.left_epoch;
  on_not_found(std::move(found));
  if (is_behind || is_left) return false;
  // Without news a lower epoch is one that more than half of the sentinels have named.
  if (opinion.epoch >= 0) known_.epoch = opinion.epoch;
  known_.primary = std::move(found.primary);
  if (known_.left == known_.primary) known_.left.host.clear();
  std::swap(opinion_, opinion);
  is_confirmed_ = true;
  return true;
}

void PrimaryWatch::on_not_found(Knowledge &&found) noexcept {
  known_.others = std::move(found.others);
  known_.silent = std::move(found.silent);
  is_list_old_ = true;
}

// ---- what was heard ----------------------------------------------------------------------------

std::optional<Opinion> PrimaryWatch::on_reply(size_t number, const Reply &reply, const Send &send,
                                              Nanos now) {
  Slot &slot = slots_[number];
  assert(slot.state == State::kOpen);
  auto opinion = slot.watch->on_reply(reply, send, now);
  if (slot.watch->is_subscribed()) {
    slot.failure_count = 0;
    slot.backoff.reset();
    was_deaf_ = false;
  }
  if (!opinion) return std::nullopt;
  const bool must_leave = is_news(slot, *opinion);
  const int64_t epoch_before = known_.epoch;
  if (!opinion->is_switch) note_answer(slot, *opinion);
  if (!must_leave) return std::nullopt;
  is_news_ = true;
  // After several news in a row the primary to avoid is still the one that was used.
  if (std::exchange(is_confirmed_, false)) {
    note_switch(known_, *opinion, opinion->is_switch ? epoch_before : opinion->epoch - 1, now);
  } else {
    known_.first = opinion->sentinel;
  }
  known_.primary = opinion->primary;
  return opinion;
}

bool PrimaryWatch::is_news(const Slot &slot, const Opinion &opinion) const {
  if (known_.primary.host.empty() || opinion.primary == known_.primary) return false;
  if (!opinion.is_switch) return opinion.epoch > known_.epoch;
  if (!slot.has_answered) return false;  // its answer follows
  return slot.epoch < 0 || slot.epoch >= known_.epoch;
}

void PrimaryWatch::note_answer(Slot &slot, const Opinion &opinion) {
  slot.has_answered = true;
  slot.epoch = opinion.epoch;
  if (opinion.epoch <= known_.epoch) return;
  known_.epoch = opinion.epoch;
  is_news_ = true;
}

// ---- connections -------------------------------------------------------------------------------

// The sentinels of the URL first, then those that others name. A connection to one that is not
// among them any more ends.
void PrimaryWatch::assign() {
  std::vector<HostPort> wanted = settings_.sentinel.addresses;
  for (const HostPort &one : known_.others) {
    if (std::find(wanted.begin(), wanted.end(), one) == wanted.end()) wanted.push_back(one);
  }
  if (wanted.size() > slots_.size()) wanted.resize(slots_.size());
  for (Slot &slot : slots_) {
    const auto found = std::find(wanted.begin(), wanted.end(), slot.sentinel);
    slot.is_known = found != wanted.end();
    if (slot.is_known) wanted.erase(found);
    if (!slot.is_known && slot.state == State::kIdle) slot = {};
  }
  for (Slot &slot : slots_) {
    if (wanted.empty()) break;
    if (!slot.sentinel.host.empty()) continue;
    slot.sentinel = std::move(wanted.front());
    slot.is_known = true;
    wanted.erase(wanted.begin());
  }
  is_list_old_ = !wanted.empty();
}

// Those that were reached before come first, so that none waits for one that cannot be reached.
std::optional<size_t> PrimaryWatch::begin_dial(Nanos now) {
  if (is_list_old_) assign();
  if (dial_count() >= kMaxDials) return std::nullopt;
  Slot *next = nullptr;
  for (Slot &slot : slots_) {
    if (!slot.is_known || slot.state != State::kIdle || now < slot.dial_at) continue;
    if (next == nullptr || slot.failure_count < next->failure_count) next = &slot;
  }
  if (next == nullptr) return std::nullopt;
  next->state = State::kDialling;
  return static_cast<size_t>(next - slots_.data());
}

void PrimaryWatch::on_dialled(size_t number, const Settings &dialled, const Send &send, Nanos now) {
  Slot &slot = slots_[number];
  assert(slot.state == State::kDialling);
  slot.watch.emplace(dialled, settings_.sentinel.primary_name);
  slot.watch->start(send, now);
  slot.has_answered = false;
  slot.epoch = -1;
  slot.state = State::kOpen;
}

void PrimaryWatch::on_timer(size_t number, const Send &send, Nanos now) {
  Slot &slot = slots_[number];
  if (slot.state == State::kOpen) slot.watch->on_timer(send, now);
}

bool PrimaryWatch::is_over(size_t number) const {
  const Slot &slot = slots_[number];
  return slot.state == State::kOpen && (!slot.is_known || slot.watch->is_over());
}

bool PrimaryWatch::on_ended(size_t number, Nanos now, uint64_t entropy) noexcept {
  Slot &slot = slots_[number];
  assert(slot.state != State::kIdle);
  slot.state = State::kIdle;
  slot.watch.reset();
  slot.failure_count++;
  slot.dial_at = after(now, slot.backoff.next(entropy));
  if (!slot.is_known) {
    slot = {};
    is_list_old_ = true;
  }
  return is_deaf() && !std::exchange(was_deaf_, true);
}

Nanos PrimaryWatch::next_due(bool may_dial) const {
  const bool has_room = may_dial && dial_count() < kMaxDials;
  Nanos due = kNever;
  for (const Slot &slot : slots_) {
    if (slot.state == State::kOpen) due = std::min(due, slot.watch->next_due());
    if (has_room && slot.is_known && slot.state == State::kIdle) due = std::min(due, slot.dial_at);
  }
  return due;
}

size_t PrimaryWatch::dial_count() const {
  return static_cast<size_t>(std::count_if(slots_.begin(), slots_.end(), [](const Slot &slot) {
    return slot.state == State::kDialling;
  }));
}

bool PrimaryWatch::is_deaf() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot &slot) {
    return !slot.is_known || (slot.state != State::kOpen && slot.failure_count > 0);
  });
}

const char *PrimaryWatch::check() const {
  if (dial_count() > kMaxDials) return "few sentinels are dialled at a time";
  if (is_confirmed_ && known_.left == known_.primary) return "a primary that was left is not used";
  for (const Slot &slot : slots_) {
    if (slot.watch.has_value() != (slot.state == State::kOpen)) return "a connection is watched";
    if (slot.sentinel.host.empty() && slot.state != State::kIdle) return "a free slot is idle";
    const char *broken = slot.watch ? slot.watch->check() : nullptr;
    if (broken != nullptr) return broken;
  }
  return nullptr;
}

}  // namespace redlatch::sentinel
