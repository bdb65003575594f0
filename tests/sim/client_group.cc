// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: of a primary that sentinels name.
#include <algorithm>
#include <utility>

#include "client.h"
#include "group.h"
#include "memory.h"
#include "sentinel.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kLeaveLimit = 50 * kMs;
constexpr Nanos kHurryLimit = 10 * kMs;
constexpr Nanos kHearLimit = 200 * kMs;
constexpr Nanos kAskLimit = 4'000 * kMs;   // a sentinel is asked after 3 s of silence
constexpr Nanos kLongSpike = 4'000 * kMs;  // the longest delay of a message
constexpr Nanos kHearAgain = 6'000 * kMs;  // the longest pause between dials, and a little more

}  // namespace

void Client::name_sentinels(Settings &settings) const {
  settings.host.clear();
  settings.sentinel.primary_name = kPrimaryName;
  for (size_t i = 0; i < static_cast<size_t>(context_.plan.sentinel_count); i++) {
    settings.sentinel.addresses.push_back(sentinel_address(i));
  }
}

// The link is dropped at once. An attempt to make one is stopped, so that each step that is left
// fails, and the next one begins without a pause.
void Client::on_moved() {
  Wire &wire = *wires_.front();
  if (is_busy()) wire.hurried_at = context_.schedule.now();
  if (wire.is_up()) return disconnect(wire);
  driver::Dialogue *const dialogue = wire.dialogue();
  if (dialogue == nullptr) return settle();
  {
    const CoreMemory::Scope scope;
    while (!dialogue->is_over()) dialogue->on_late(now());
  }
  finish(wire);
}

// ---- rules -------------------------------------------------------------------------------------

// A message of a sentinel, or a refused write, says that this server is no primary any more.
void Client::note_told(size_t old_primary) {
  Wire &wire = *wires_.front();
  if (!wire.is_up() || wire.at != old_primary) return;
  wire.left_since = std::min(wire.left_since, context_.schedule.now());
}

// Rule: a client that has heard it does not stay with that server.
void Client::check_left(const Wire &wire) const {
  if (guide_) check_heard(wire);
  if (guide_) check_hurry(wire);
  if (!wire.is_up() || wire.left_since == kNever || is_paused()) return;
  const Nanos since = std::max(wire.left_since, paused_until_);
  if (context_.schedule.now() - since <= kLeaveLimit) return;
  context_.verdict.broken("a client leaves a server that is no primary any more",
                          "client " + std::to_string(slot_) + ", node " + std::to_string(wire.at));
}

// Rule: a client does not stay at an old primary when a sentinel that it reaches knows a new one:
// for long if that has not published it, or was not reached for a while; otherwise not at all.
void Client::check_heard(const Wire &wire) const {
  if (!wire.is_up() || is_paused()) return;
  const Nanos now = context_.schedule.now();
  const Nanos again = kHearAgain + 4 * context_.plan.timeout;
  const Nanos spikes = context_.plan.has(Fault::kSpike) ? 2 * kLongSpike : 0;
  for (size_t i = 0; i < context_.group->sentinel_count(); i++) {
    const Sentinel &one = context_.group->sentinel(i);
    const Sentinel::View &view = one.view();
    const bool is_old = view.primary != wire.at && view.epoch > context_.group->epoch_of(wire.at);
    const Nanos heard_since = guide_->heard_since(i);
    if (!is_old || heard_since == kNever) continue;
    const Nanos undisturbed = std::max(heard_since, paused_until_);
    const bool is_watched = undisturbed + again <= one.view_since();
    const Nanos limit = (view.is_announced && is_watched ? kHearLimit : kAskLimit) +
                        (is_watched ? 0 : again) + spikes;
    const Nanos since = std::max({one.view_since(), undisturbed, wire.up_since});
    if (now - since <= limit) continue;
    context_.verdict.broken("a client hears every sentinel",
                            "client " + std::to_string(slot_) + ", node " +
                                std::to_string(wire.at) + ", sentinel " + std::to_string(i));
  }
}

// Rule: after news of another primary, a client with a call under way dials without a pause.
void Client::check_hurry(const Wire &wire) const {
  if (wire.hurried_at == kNever || wire.opening || !is_busy() || is_ending() || is_paused()) return;
  if (context_.schedule.now() - std::max(wire.hurried_at, paused_until_) <= kHurryLimit) return;
  context_.verdict.broken("after news of another primary it is dialled at once",
                          "client " + std::to_string(slot_));
}

// Rule: news that end the link to the primary are of a later failover.
void Client::check_news(int64_t epoch) const {
  const Wire &wire = *wires_.front();
  if (!wire.is_up() || wire.at != context_.group->primary() || epoch < context_.group->epoch())
    return;
  context_.verdict.broken("a client does not leave the present primary for old news",
                          "client " + std::to_string(slot_));
}

// ---- faults ------------------------------------------------------------------------------------

bool Client::is_parted(size_t server) const {
  const auto found = parted_.find(server);
  return found != parted_.end() && context_.schedule.now() < found->second;
}

void Client::part_from_server(size_t server, Nanos until) {
  parted_[server] = std::max(parted_[server], until);
  side_.part_from(server, until);
  const Wire &wire = *wires_.front();
  if (wire.at != server) return;
  for (const uint64_t link : {wire.link, wire.messages_link}) {
    context_.network.stall(link, true, until);
    context_.network.stall(link, false, until);
  }
}

void Client::part_from_sentinel(size_t sentinel, Nanos until) {
  guide_->part_from(sentinel, until);
  const Wire &wire = *wires_.front();
  if (wire.sentinel_link == 0 || wire.sentinel != sentinel) return;
  context_.network.stall(wire.sentinel_link, true, until);
  context_.network.stall(wire.sentinel_link, false, until);
}

}  // namespace redlatch::sim
