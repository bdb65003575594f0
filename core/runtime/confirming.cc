// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/confirming.h"

#include <new>
#include <utility>
#include <vector>

#include "driver/login_attempt.h"
#include "driver/side_attempt.h"
#include "host/clock.h"
#include "runtime/dialogue_host.h"

namespace redlatch::runtime {

Confirming::Confirming(const Parts &parts)
    : log_(parts.wakeup.log()),
      alarm_(parts.alarm),
      service_(parts.service),
      links_(parts.links),
      shutdown_(parts.shutdown),
      logins_(parts.logins),
      sides_(parts.sides) {}

void Confirming::append(size_t node, std::span<const std::string_view> argv) {
  links_[node].confirming.append(argv);
  alarm_.wake();
}

void Confirming::drop(size_t node) {
  links_[node].confirming.drop();
  alarm_.wake();
}

void Confirming::tend(Lock &lock, Link &link) {
  SideConnection &side = link.confirming;
  if (side.is_broken) lose(link);
  if (const auto ended = sides_.end_attempt(lock, side)) {
    if (!ended->ok()) {
      fail(link, *ended);
    } else {
      try {
        logins_.authenticate(side);
        service_->on_side_connected(link.node, boot_now());
      } catch (...) {
        (void)log_.add_caught();
        lose(link);
      }
    }
  }
  const bool is_free = side.is_idle() && !shutdown_.is_stopping();
  if (is_free && service_->begin_side_connect(link.node, boot_now())) start(link);
}

void Confirming::start(Link &link) {
  Outcome outcome;
  try {
    Settings settings = link.sentinel ? link.sentinel->follower.primary() : link.settings;
    // The attempt may use a later one: then AUTH is sent once more than needed.
    link.confirming.auth.begin(logins_.credentials().number());
    outcome = sides_.open(link.confirming,
                          [this, settings = std::move(settings)](
                              int wake_fd, std::unique_ptr<net::Connection> &connection) {
                            return connect(settings, wake_fd, connection);
                          });
  } catch (...) {
    outcome.status = log_.add_caught();
  }
  if (!outcome.ok()) fail(link, outcome);
}

// In the thread of the attempt.
Outcome Confirming::connect(const Settings &settings, int wake_fd,
                            std::unique_ptr<net::Connection> &connection) {
  driver::LoginAttempt login(settings);
  logins_.hold(login, [&] {
    driver::SideAttempt attempt(login.settings(), boot_now());
    DialogueHost host(attempt, nullptr, wake_fd);
    host.hold();
    connection = host.take().commands;
    login.on_dialled(attempt.outcome(), boot_now());
  });
  return login.take_outcome();
}

// Those that a lack of memory leaves waiting are tried again with the next attempt.
void Confirming::fail(const Link &link, const Outcome &why) noexcept {
  try {
    service_->on_side_connect_failed(link.node, why, boot_now());
  } catch (...) {
    (void)log_.add_caught();
  }
}

void Confirming::lose(Link &link) noexcept {
  sides_.close(link.confirming);
  service_->on_side_disconnected(link.node, boot_now());
}

void Confirming::read(Lock &lock, Link &link) {
  SideConnection &side = link.confirming;
  if (!side.connection) return;
  std::vector<resp::ReplyPtr> replies;
  bool is_open = sides_.read(lock, side, replies);
  try {
    const Nanos now = boot_now();
    for (const resp::ReplyPtr &reply : replies) {
      if (reply->kind == Reply::Kind::kPush || side.is_broken) continue;
      const uint64_t login = side.auth.take();
      if (login == 0) {
        service_->on_side_reply(link.node, *reply, now);
      } else {
        const auto refused = link.connection.note_auth(login, *reply);
        if (refused != 0) logins_.note_refused(refused, now);
      }
    }
  } catch (...) {
    (void)log_.add_caught();
    is_open = false;  // a reply was lost: as if the connection had ended here
  }
  if (!is_open || side.is_broken) return lose(link);
  send(link);
}

void Confirming::send(Link &link) noexcept {
  if (!sides_.send(link.confirming)) lose(link);
}

}  // namespace redlatch::runtime
