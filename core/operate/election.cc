// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <cassert>

#include "operate/operation.h"

namespace redlatch::operate {

namespace {

// Twice the highest term that was seen, and 1 more while its leader leads.
constexpr int64_t position_of(int64_t term, bool is_led) { return 2 * term + (is_led ? 1 : 0); }
constexpr int64_t term_at(int64_t position) { return position < 0 ? 0 : position / 2; }

}  // namespace

Operation::Step Leader::on_answer(const Reply &reply) {
  info = {};
  if (const auto refusal = decode(reply, info)) return refused(refusal);
  const int64_t last = term_at(seen);
  if (info.fence < last) info.candidate.clear();
  const bool is_led = !info.candidate.empty();
  info.position = position_of(is_led ? info.fence : last, is_led);
  assert(term_at(info.position) >= last && "terms rise");
  return {Next::kEnd, {}, info.server_ms};
}

void TrackKey::ask(const Features &features, EvalMode, const Send &send) {
  protocol::Command on;
  protocol::Command next;
  protocol::Command find;
  protocol::track(on, next, find, keys());
  is_tracked = features.can_track;
  awaited_count_ = 1;
  if (is_tracked) {
    send(on);
    send(next);
    awaited_count_ = 3;
  }
  send(find);
}

Operation::Step TrackKey::on_answer(const Reply &reply) {
  if (reply.is_error()) is_tracked = false;
  if (awaited_count_ > 0) awaited_count_--;
  return {awaited_count_ > 0 ? Next::kWait : Next::kEnd};
}

}  // namespace redlatch::operate
