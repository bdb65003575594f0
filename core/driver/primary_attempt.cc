// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/primary_attempt.h"

#include <algorithm>
#include <utility>

namespace redlatch::driver {

using Stage = sentinel::Discovery::Stage;

PrimaryAttempt::PrimaryAttempt(const Settings &settings, std::string_view channel,
                               sentinel::Knowledge known, Nanos now)
    : settings_(settings), channel_(channel), discovery_(settings, std::move(known), now) {}

bool PrimaryAttempt::is_dialling() const {
  return server_ ? server_->is_dialling() : discovery_.stage() == Stage::kDialling;
}

size_t PrimaryAttempt::awaited_count() const {
  return server_ ? server_->awaited_count() : discovery_.awaited_count();
}

bool PrimaryAttempt::uses(Wire used) const {
  if (used == kSentinel) return discovery_.stage() == Stage::kAsking;
  return server_ && server_->uses(used);
}

void PrimaryAttempt::on_dialled(const Send &send, Nanos now) {
  server_ ? server_->on_dialled(send, now) : discovery_.on_dialled(send);
}

void PrimaryAttempt::on_failed(const Outcome &why, Nanos now) {
  server_ ? server_->on_failed(why, now) : discovery_.on_failed(why, now);
  continue_at(now);
}

void PrimaryAttempt::take(const Reply &reply, const Send &send, Nanos now) {
  server_ ? server_->on_reply(wire(), reply, send, now) : discovery_.on_reply(reply, now);
  continue_at(now);
}

// The discovery gets the end of an attempt to connect to a server, and may name a server.
void PrimaryAttempt::continue_at(Nanos now) {
  if (server_ && server_->is_over()) {
    const Outcome outcome = server_->outcome();
    if (outcome.ok()) return discovery_.on_confirmed();
    server_.reset();
    discovery_.on_refuted(outcome, now);
  }
  if (server_ || discovery_.stage() != Stage::kNamed) return;
  primary_ = settings_.of_primary(discovery_.primary());
  primary_.connect_timeout = std::max<Nanos>(discovery_.limit() - now, kMs);
  server_.emplace(primary_, channel_, false, now);
}

const char *PrimaryAttempt::check() const {
  if (const char *broken = discovery_.check()) return broken;
  if (server_) {
    if (const char *broken = server_->check()) return broken;
  }
  const bool is_named = discovery_.stage() == Stage::kNamed;
  if (is_named != (server_ && !is_over())) return "a server that is named is connected to";
  return nullptr;
}

}  // namespace redlatch::driver
