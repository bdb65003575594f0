// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Link: the connections to one node, and the attempt to make them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "attempt.h"
#include "base/settings.h"
#include "driver/node_attempt.h"
#include "driver/node_connection.h"
#include "lock/service.h"
#include "sentinels.h"
#include "shared.h"
#include "side.h"
#include "wire.h"

namespace redlatch::wasm {

class Link final : public WireOwner {
 public:
  Link(Shared &shared, const Settings &settings, size_t node);

  // After each event: connects, and ends connections.
  void tend(Nanos now);
  void drop() { connection_.drop(); }
  bool is_broken() const { return connection_.is_broken(); }
  // There was no memory in an event.
  void give_up(Nanos now) noexcept;
  void append(std::span<const std::string_view> argv) {
    if (!commands_) return;
    commands_->append(argv);
    connection_.on_append();
  }
  void append_to_messages(std::span<const std::string_view> argv) {
    if (messages_) messages_->append(argv);
  }
  Side &side() { return side_; }
  // Sends AUTH if the application has given another login.
  void authenticate() noexcept;
  void flush();

  void on_time(Nanos now);
  Nanos next_due() const;

 private:
  using NodeAttempt = driver::NodeAttempt;

  void on_replies(const Wire &wire, Replies replies, Nanos now) override;
  // Without messages it would wait slowly: both connections end.
  void on_closed(const Wire &, std::string_view, Nanos) override { drop(); }

  lock::LockService &service() const { return *shared_.service; }
  void connect(Nanos now);
  void proceed(Nanos now);
  void finish(Nanos now);
  bool become_cluster(driver::NodeAttempt &attempt);
  void disconnect(Nanos now);

  Shared &shared_;
  const Settings &settings_;
  const size_t node_;
  driver::NodeConnection connection_;
  std::unique_ptr<Sentinels> sentinels_;  // if they name the server
  std::unique_ptr<Attempt<NodeAttempt>> attempt_;
  std::unique_ptr<Wire> commands_, messages_;  // once connected
  Side side_;
};

}  // namespace redlatch::wasm
