// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: its shutdown, in the order of Runtime::shut_down, and the rules about that.
#include <algorithm>
#include <string>
#include <utility>

#include "client.h"
#include "memory.h"

namespace redlatch::sim {

void Client::shut_down(std::function<void()> over) {
  if (is_ending()) return;
  shut_at_ = context_.schedule.now();
  over_ = std::move(over);
  for (const auto &wire : wires_) wire->redials.hurry();
  drain_.emplace(context_.plan.timeout, now());
  call([](lock::LockService &service, Nanos now) { service.shut_down(now); });
}

// After each event, because a node may have drained.
void Client::tend_drain() {
  if (!drain_ || is_closed_) return;
  if (drain_->is_over(service_->drained_count(), wires_.size(), is_cluster(), now())) {
    drain_.reset();
    return later(scheduling(), [this] { close(); });
  }
  const Nanos left = std::max<Nanos>(when(drain_->limit()) - context_.schedule.now(), 0);
  if (std::exchange(drain_limit_, drain_->limit()) == drain_->limit()) return;
  later(left, [this] { tend_drain(); });
}

// The threads end: no timer runs any more, and nothing is dialled.
void Client::close() {
  is_closed_ = true;
  {
    const CoreMemory::Scope scope;
    for (const auto &wire : wires_) {
      wire->login_try.reset();
      wire->opening.reset();
      wire->ended.reset();
    }
  }
  call([](lock::LockService &service, Nanos) { service.give_up(); });
  if (is_busy()) {
    context_.verdict.broken("every call of a client that was shut down has its answer",
                            "client " + std::to_string(slot_));
  }
  check_given_back();
  if (guide_) guide_->hang_up(Network::Ending::kSoon);
  side_.hang_up(Network::Ending::kSoon);
  for (const auto &wire : wires_) {
    wire->is_up() ? disconnect(*wire) : hang_up(*wire, Network::Ending::kSoon);
  }
  if (over_) context_.schedule.in(scheduling(), std::exchange(over_, nullptr));
}

// ---- rules -------------------------------------------------------------------------------------

// Rule: a drain ends, also when no server answers.
void Client::check_drain() const {
  const Nanos limit = context_.plan.timeout + context_.plan.timeout / 50 + kDrainSlack;
  if (!is_ending() || is_closed_ || is_paused()) return;
  if (context_.schedule.now() - std::max(shut_at_, paused_until_) <= limit) return;
  context_.verdict.broken("a drain ends", "client " + std::to_string(slot_));
}

// Rule: it does not end before the servers have answered: of what was given back nothing is left at
// a primary to which the client was connected, and nothing disturbed it. Detached leases stay.
void Client::check_given_back() const {
  const bool is_calm = context_.is_calm && shut_at_ >= context_.calm_since;
  if (!is_calm || paused_until_ > shut_at_ || context_.plan.has(Fault::kAttach)) return;
  for (const auto &wire : wires_) {
    const bool was_up = wire->is_up() && wire->up_since <= shut_at_ && !reads_slots(*wire) &&
                        !server(*wire).store().is_replica();
    const std::string &channel = service_->channel(wire->node);
    const std::string cid = channel.substr(channel.rfind(':') + 1);
    if (!was_up || !server(*wire).has_token_of(cid)) continue;
    context_.verdict.broken(
        "a drain ends when all that was given back is gone",
        "client " + std::to_string(slot_) + ", node " + std::to_string(wire->at));
  }
}

}  // namespace redlatch::sim
