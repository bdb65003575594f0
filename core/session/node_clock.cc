// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session/node_clock.h"

#include <utility>

namespace redlatch::session {

void NodeClock::sample(Nanos sent_at, Nanos read_at, int64_t server_ms, Nanos now) {
  offset_.sample(sent_at, read_at, server_ms);
  const auto offset = is_of_cluster_ ? offset_.offset(now) : std::nullopt;
  if (!offset) return;
  last_ = offset;
  is_known_ = true;
}

void NodeClock::forget() {
  offset_.forget();
  is_known_ = is_warned_ = false;
}

void NodeClock::note_arrivals(const NodeClock &source) {
  source_ = source.last_ ? source.last_ : source.source_;
  has_arrivals_ = true;
}

bool NodeClock::take_arrivals() { return is_known_ && std::exchange(has_arrivals_, false); }

bool NodeClock::take_warning() {
  return behind() > timing::kClockLimit && !std::exchange(is_warned_, true);
}

}  // namespace redlatch::session
