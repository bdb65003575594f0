// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/authentication.h"

#include <cassert>
#include <utility>

#include "protocol/command.h"

namespace redlatch::driver {

namespace {

// A server may quote what it refuses.
std::string error_code(const Reply &reply) {
  const std::string_view text = reply.text();
  const std::string_view code = text.substr(0, text.find(' '));
  const bool is_code = code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == code.npos;
  return is_code && code.size() <= 16 ? std::string(code) : "an error";
}

}  // namespace

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

std::string Refusals::note(const Reply &reply, const std::string &address) {
  const bool was_refused = std::exchange(is_refused_, reply.is_error());
  if (!reply.is_error() || was_refused) return {};
  return address + " refused the new credentials (" + error_code(reply) +
         "); the connection stays as it was";
}

}  // namespace redlatch::driver
