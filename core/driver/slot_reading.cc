// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/slot_reading.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/dial_failure.h"
#include "protocol/cluster_info.h"

namespace redlatch::driver {

using protocol::Handshake;

SlotReading::SlotReading(const Settings &settings, std::vector<HostPort> servers, Nanos now)
    : settings_(settings),
      servers_(std::move(servers)),
      end_(after(now, settings.connect_timeout)) {
  if (!servers_.empty()) dial_next(now);
}

// Each server has its share of the time that is left.
void SlotReading::dial_next(Nanos now) {
  stage_ = Stage::kDialling;
  target_ = settings_.of_node(servers_[turn_]);
  const auto shares = static_cast<Nanos>(servers_.size() - turn_);
  limit_ = now + std::max<Nanos>((end_ - now) / shares, kMs);
  turn_++;
}

size_t SlotReading::awaited_count() const {
  if (stage_ == Stage::kGreeting) return handshake_->awaited_count();
  return stage_ == Stage::kAsking ? protocol::kSlotQuestions - answer_count_ : 0;
}

void SlotReading::on_dialled(const Send &send, Nanos) {
  assert(is_dialling());
  stage_ = Stage::kGreeting;
  handshake_.emplace(Handshake::for_slots(target_));
  handshake_->start(send);
}

// A final reason is reported, whatever the other servers are.
void SlotReading::on_failed(const Outcome &why, Nanos now) {
  if (outcome_.ok() || !may_pass(why.status)) outcome_ = why;
  stage_ = Stage::kOver;
  if (turn_ < servers_.size()) dial_next(now);
}

void SlotReading::take(const Reply &reply, const Send &send, Nanos now) {
  if (stage_ == Stage::kGreeting) {
    handshake_->on_reply(reply, send, now);
    if (handshake_->stage() != Handshake::Stage::kOver) return;
    if (!handshake_->outcome().ok()) return on_failed(handshake_->outcome(), now);
    facts_ = handshake_->facts();
    stage_ = Stage::kAsking;
    answer_count_ = 0;
    return protocol::ask_slots(send);
  }
  if (++answer_count_ < protocol::kSlotQuestions) {
    is_cut_off_ = protocol::is_cut_off(reply);
    return;
  }
  const HostPort asked{target_.host, target_.port};
  const auto outcome = protocol::read_cluster(is_cut_off_, reply, asked, ranges_);
  if (!outcome.ok()) return on_failed(outcome, now);
  outcome_ = {};
  stage_ = Stage::kOver;
}

const char *SlotReading::check() const {
  if (stage_ == Stage::kGreeting || stage_ == Stage::kAsking) {
    if (const char *broken = handshake_->check()) return broken;
    if (awaited_count() == 0) return "a server that is asked answers";
  }
  if (is_over() && !outcome_.ok() && turn_ < servers_.size()) return "all servers are asked";
  return nullptr;
}

}  // namespace redlatch::driver
