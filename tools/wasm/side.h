// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Side: the second connection to a server, on which its replicas confirm.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "attempt.h"
#include "base/settings.h"
#include "driver/authentication.h"
#include "driver/login_attempt.h"
#include "driver/node_connection.h"
#include "driver/side_attempt.h"
#include "lock/service.h"
#include "shared.h"
#include "wire.h"

namespace redlatch::wasm {

class SideMachine {
 public:
  explicit SideMachine(const Settings &target) : login_(target) {}

  driver::LoginAttempt &login() { return login_; }
  const driver::LoginAttempt &login() const { return login_; }
  driver::Dialogue &begin(Nanos now) { return dialogue_.emplace(login_.settings(), now); }
  void end(Nanos now) { login_.on_dialled(dialogue_->outcome(), now); }

 private:
  driver::LoginAttempt login_;
  std::optional<driver::SideAttempt> dialogue_;
};

class Side final : public WireOwner {
 public:
  Side(Shared &shared, driver::NodeConnection &connection, size_t node)
      : shared_(shared), connection_(connection), node_(node) {}

  // After each event. `target`: of the server that the node is connected to.
  void tend(const Settings &target, Nanos now);
  void append(std::span<const std::string_view> argv) {
    if (!wire_) return;
    wire_->append(argv);
    auth_.on_append();
  }
  // Sends AUTH if the application has given another login.
  void authenticate() noexcept;
  void drop() { is_dropped_ = true; }
  // There was no memory in an event.
  void give_up(Nanos now) noexcept;
  void flush() {
    if (wire_) wire_->flush();
  }

  void on_time(Nanos now) {
    if (attempt_) attempt_->on_time(now);
  }
  Nanos next_due() const {
    if (is_dropped_) return 0;
    return attempt_ ? attempt_->next_due() : kNever;
  }

 private:
  void on_replies(const Wire &wire, Replies replies, Nanos now) override;
  void on_closed(const Wire &, std::string_view, Nanos) override { drop(); }
  void proceed(Nanos now);
  lock::LockService &service() const { return *shared_.service; }

  Shared &shared_;
  driver::NodeConnection &connection_;  // of the commands
  const size_t node_;
  std::unique_ptr<Attempt<SideMachine>> attempt_;
  std::unique_ptr<Wire> wire_;
  driver::Authentication auth_;
  bool is_dropped_ = false;
};

}  // namespace redlatch::wasm
