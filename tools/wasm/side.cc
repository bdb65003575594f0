// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "side.h"

#include <new>
#include <utility>

#include "driver/side_attempt.h"

namespace redlatch::wasm {

void Side::tend(const Settings &target, Nanos now) {
  if (std::exchange(is_dropped_, false) && wire_) {
    wire_.reset();
    service().on_side_disconnected(node_, now);
  }
  if (dial_) dial_->proceed(now);
  if (dial_ && dial_->is_over()) finish(now);
  if (dial_ || wire_ || !service().begin_side_connect(node_, now)) return;
  try {
    dial_ = std::make_unique<Dial>(
        target, shared_.credentials,
        [](const Settings &settings, const Attempt *, Nanos time) {
          return std::make_unique<driver::SideAttempt>(settings, time);
        },
        now);
  } catch (const std::bad_alloc &) {
    service().on_side_connect_failed(node_, {Status::kNoMemory, {}}, now);
  }
}

void Side::finish(Nanos now) {
  const auto ended = std::move(dial_);
  if (!ended->outcome().ok()) {
    return service().on_side_connect_failed(node_, ended->outcome(), now);
  }
  wire_ = ended->attempt()->take(driver::Dialogue::kCommands, *this);
  auth_.clear();
  auth_.begin(ended->login());
  authenticate();
  service().on_side_connected(node_, now);
}

void Side::authenticate() {
  const driver::Login &newest = shared_.credentials.login();
  if (!wire_ || newest.number <= auth_.login()) return;
  auth_.renew(newest, [this](auto argv) { append(argv); });
}

void Side::close() {
  dial_.reset();
  wire_.reset();
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
