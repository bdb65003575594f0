// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "side.h"

#include <new>
#include <utility>

namespace redlatch::wasm {

void Side::tend(const Settings &target, Nanos now) {
  if (std::exchange(is_dropped_, false) && wire_) {
    wire_.reset();
    service().on_side_disconnected(node_, now);
  }
  if (attempt_) return proceed(now);
  if (wire_ || !service().begin_side_connect(node_, now)) return;
  try {
    attempt_ = std::make_unique<Attempt<SideMachine>>(shared_.credentials, target);
  } catch (const std::bad_alloc &) {
    return service().on_side_connect_failed(node_, {Status::kNoMemory, {}}, now);
  }
  proceed(now);
}

void Side::proceed(Nanos now) {
  attempt_->proceed(now);
  if (!attempt_->is_over()) return;
  const auto ended = std::move(attempt_);
  driver::LoginAttempt &login = ended->machine().login();
  if (!login.outcome().ok()) {
    return service().on_side_connect_failed(node_, login.outcome(), now);
  }
  wire_ = ended->host().take(driver::Dialogue::kCommands, *this);
  auth_.clear();
  auth_.begin(login.login().number);
  authenticate();
  service().on_side_connected(node_, now);
}

void Side::authenticate() noexcept {
  const driver::Login &newest = shared_.credentials.login();
  if (!wire_ || newest.number <= auth_.login()) return;
  try {
    auth_.renew(newest, [this](auto argv) { append(argv); });
  } catch (const std::bad_alloc &) {
    drop();
  }
}

void Side::give_up(Nanos now) noexcept {
  drop();
  if (!std::exchange(attempt_, nullptr)) return;
  try {
    service().on_side_connect_failed(node_, {Status::kNoMemory, {}}, now);
  } catch (const std::bad_alloc &) {
    return;  // the callers that wait are served after the next attempt
  }
}

void Side::on_replies(const Wire &, Replies replies, Nanos now) {
  for (const resp::ReplyPtr &reply : replies) {
    if (reply->kind == Reply::Kind::kPush || is_dropped_) continue;
    if (const uint64_t login = auth_.take(); login != 0) {
      shared_.note_refused(connection_.note_auth(login, *reply));
    } else {
      service().on_side_reply(node_, *reply, now);
    }
  }
}

}  // namespace redlatch::wasm
