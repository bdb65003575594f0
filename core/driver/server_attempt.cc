// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/server_attempt.h"

#include <cassert>

namespace redlatch::driver {

bool ServerAttempt::uses(Wire used) const {
  if (is_over()) return outcome().ok() && (used == kCommands || opening_.has_messages());
  return !(is_dialling() && used == wire());
}

void ServerAttempt::on_failed(const Outcome &why, Nanos) {
  assert(!is_over());
  failure_ = why;
}

void ServerAttempt::take(const Reply &reply, const Send &send, Nanos now) {
  opening_.on_reply(opening_.wire(), reply, send, now);
}

}  // namespace redlatch::driver
