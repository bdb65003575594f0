// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/authentication.h"

#include <cassert>

#include "protocol/command.h"

namespace redlatch::driver {

uint64_t AuthReplies::take_pending() {
  const Auth next = pending_.front();
  if (next.position != received_count_) return 0;
  pending_.erase(pending_.begin());
  return next.login;
}

void Authentication::renew(const Login &newer, const Send &send) {
  assert(newer.number > login_);
  protocol::Command command;
  command.add("AUTH");
  if (!newer.user.empty()) command.add(newer.user);
  command.add(newer.password);
  send(command.argv());
  replies_.expect(newer.number);
  login_ = newer.number;
}

}  // namespace redlatch::driver
