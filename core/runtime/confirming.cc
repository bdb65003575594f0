// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the side connection of a link on which replicas confirm. It is opened when the service
// wants it. Other threads append to it and drop it; the rest runs in the background thread.
#include <new>
#include <utility>
#include <vector>

#include "runtime/runtime.h"

namespace redlatch::runtime {

void Runtime::send_on_side(size_t node, std::span<const std::string_view> argv) {
  links_[node].confirming.append(argv);
  wake(background_);
}

void Runtime::drop_side(size_t node) {
  links_[node].confirming.drop();
  wake(background_);
}

void Runtime::tend_confirming(Lock &lock, Link &link) {
  SideConnection &side = link.confirming;
  if (side.is_broken) lose_confirming(link);
  if (const auto ended = end_side_attempt(lock, side)) {
    if (!ended->ok()) {
      fail_confirming(link, *ended);
    } else {
      try {
        authenticate_side(link);
        service_->on_side_connected(link.node, boot_now());
      } catch (...) {
        (void)log_.add_caught();
        lose_confirming(link);
      }
    }
  }
  const bool is_free = side.is_idle() && !is_stopping_;
  if (is_free && service_->begin_side_connect(link.node, boot_now())) start_confirming(link);
}

void Runtime::start_confirming(Link &link) {
  Outcome outcome;
  try {
    Settings settings = link.sentinel
                            ? link.settings.of_primary(link.sentinel->watch.opinion().primary)
                            : link.settings;
    // The attempt may use a later one: then AUTH is sent once more than needed.
    link.confirming.login = credentials_.number();
    outcome =
        open_side(link.confirming, [this, settings = std::move(settings)](
                                       int wake_fd, std::unique_ptr<net::Connection> &connection) {
          Login login;
          return connect_with_credentials(settings, login, [&](const Settings &complete) {
            return open_side_connection(complete, wake_fd, connection);
          });
        });
  } catch (...) {
    outcome.status = log_.add_caught();
  }
  if (!outcome.ok()) fail_confirming(link, outcome);
}

// Those that a lack of memory leaves waiting are tried again with the next attempt.
void Runtime::fail_confirming(const Link &link, const Outcome &why) noexcept {
  try {
    service_->on_side_connect_failed(link.node, why, boot_now());
  } catch (...) {
    (void)log_.add_caught();
  }
}

void Runtime::lose_confirming(Link &link) noexcept {
  close_side(link.confirming);
  service_->on_side_disconnected(link.node, boot_now());
}

void Runtime::read_confirming(Lock &lock, Link &link) {
  SideConnection &side = link.confirming;
  if (!side.connection) return;
  std::vector<net::ReplyPtr> replies;
  bool is_open = read_side(lock, side, replies);
  try {
    const Nanos now = boot_now();
    for (const net::ReplyPtr &reply : replies) {
      if (reply->kind == Reply::Kind::kPush || side.is_broken) continue;
      const uint64_t login = side.auths.take();
      if (login == 0) {
        service_->on_side_reply(link.node, *reply, now);
      } else {
        note_auth(link, login, *reply, now);
      }
    }
  } catch (...) {
    (void)log_.add_caught();
    is_open = false;  // a reply was lost: as if the connection had ended here
  }
  if (!is_open || side.is_broken) return lose_confirming(link);
  send_confirming(link);
}

void Runtime::send_confirming(Link &link) noexcept {
  if (!send_side(link.confirming)) lose_confirming(link);
}

}  // namespace redlatch::runtime
