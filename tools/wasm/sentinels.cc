// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinels.h"

#include <algorithm>

#include "base/dial_failure.h"

namespace redlatch::wasm {

void Sentinels::tend(bool is_wanted, Nanos now) {
  is_wanted_ = is_wanted;
  sentinel::PrimaryWatch &watch = follower_.watch();
  for (size_t i = 0; i < places_.size(); i++) {
    Place &place = places_[i];
    if (!place.wire || place.dial_limit != kNever) continue;
    watch.on_timer(i, sender(i), now);
    place.wire->flush();
    if (watch.is_over(i)) lose(i, Outcome(watch.outcome(i)), now);
  }
  while (is_wanted) {
    const auto number = watch.begin_dial(now);
    if (!number) return;
    Place &place = places_[*number];
    place.is_used = true;
    place.settings = std::make_unique<Settings>(watch.settings_of(*number));
    place.dial_limit = after(now, place.settings->connect_timeout);
    place.wire = std::make_unique<Wire>(*place.settings, *this);
  }
}

size_t Sentinels::find(const Wire &wire) const {
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [&](const Place &place) { return place.wire.get() == &wire; });
  return static_cast<size_t>(found - places_.begin());
}

void Sentinels::give_up(Nanos now) noexcept {
  is_news_ = true;
  for (size_t i = 0; i < places_.size(); i++) {
    if (places_[i].is_used) lose(i, {Status::kNoMemory, {}}, now);
  }
}

void Sentinels::lose(size_t number, const Outcome &why, Nanos now) noexcept {
  places_[number] = {};
  follower_.on_ended(number, why, static_cast<uint64_t>(now) + number, false, now);
}

void Sentinels::on_dialled(const Wire &wire, Nanos now) {
  const size_t number = find(wire);
  Place &place = places_[number];
  place.dial_limit = kNever;
  follower_.watch().on_dialled(number, *place.settings, sender(number), now);
}

void Sentinels::on_replies(const Wire &wire, Replies replies, Nanos now) {
  const size_t number = find(wire);
  for (const resp::ReplyPtr &reply : replies) {
    if (follower_.on_reply(number, *reply, sender(number), now)) is_news_ = true;
  }
}

void Sentinels::on_closed(const Wire &wire, std::string_view why, Nanos now) {
  const size_t number = find(wire);
  lose(number, unreachable(places_[number].settings->address(), why), now);
}

void Sentinels::on_time(Nanos now) {
  for (size_t i = 0; i < places_.size(); i++) {
    if (now < places_[i].dial_limit) continue;
    lose(i, unreachable(places_[i].settings->address(), kNoAnswer), now);
  }
}

Nanos Sentinels::next_due() const {
  Nanos due = follower_.watch().next_due(is_wanted_);
  for (const Place &place : places_) due = std::min(due, place.dial_limit);
  return due;
}

}  // namespace redlatch::wasm
