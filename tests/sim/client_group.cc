// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: of a primary that sentinels name.
#include <algorithm>
#include <utility>

#include "client.h"
#include "memory.h"
#include "sentinel.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kLeaveLimit = 50 * kMs;

}  // namespace

void Client::name_sentinels(Settings &settings) const {
  settings.host.clear();
  settings.sentinel.primary_name = kPrimaryName;
  for (size_t i = 0; i < static_cast<size_t>(context_.plan.sentinel_count); i++) {
    settings.sentinel.addresses.push_back(sentinel_address(i));
  }
}

void Client::on_named(size_t server) {
  Wire &wire = *wires_.front();
  wire.is_seeking = false;
  wire.at = server;
  wire.primary = settings_.front().of_primary(server_address(server));
  begin_opening(wire, wire.primary);
}

void Client::on_not_found(const Outcome &why) {
  wires_.front()->is_seeking = false;
  give_up(*wires_.front(), why);
}

// The link is dropped at once, an attempt to make one ends, and the next one begins without a
// pause.
void Client::on_moved() {
  Wire &wire = *wires_.front();
  const bool is_up = wire.is_up;
  const bool is_attempt = wire.opening || wire.is_seeking;
  wire.is_seeking = false;
  if (wire.opening) end_opening(wire);
  if (is_up) return disconnect(wire);
  if (!is_attempt) return;
  hang_up(wire, Network::Ending::kSoon);
  give_up(wire, failure(Status::kUnavailable, "the primary has moved"));
}

// ---- rules -------------------------------------------------------------------------------------

// A message of a sentinel, or a refused write, says that this server is no primary any more.
void Client::note_told(size_t old_primary) {
  Wire &wire = *wires_.front();
  if (!wire.is_up || wire.at != old_primary) return;
  wire.left_since = std::min(wire.left_since, context_.schedule.now());
}

// Rule: a client that has heard it does not stay with that server.
void Client::check_left(const Wire &wire) const {
  if (!wire.is_up || wire.left_since == kNever || is_paused()) return;
  const Nanos since = std::max(wire.left_since, paused_until_);
  if (context_.schedule.now() - since <= kLeaveLimit) return;
  context_.verdict.broken("a client leaves a server that is no primary any more",
                          "client " + std::to_string(slot_) + ", node " + std::to_string(wire.at));
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
}

}  // namespace redlatch::sim
