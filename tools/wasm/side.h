// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Side: the connection beside that of the commands, on which replicas confirm.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/settings.h"
#include "dial.h"
#include "driver/authentication.h"
#include "driver/node_connection.h"
#include "lock/service.h"
#include "shared.h"
#include "wire.h"

namespace redlatch::wasm {

class Side final : public WireOwner {
 public:
  Side(Shared &shared, driver::NodeConnection &connection, size_t node)
      : shared_(shared), connection_(connection), node_(node) {}

  // `target`: of the server that the node is connected to.
  void tend(const Settings &target, Nanos now);
  void append(std::span<const std::string_view> argv) {
    if (!wire_) return;
    wire_->append(argv);
    auth_.on_append();
  }
  // Sends AUTH if the application has given another login.
  void authenticate();
  void drop() { is_dropped_ = true; }
  void flush() {
    if (wire_) wire_->flush();
  }
  void close();

  void on_time(Nanos now) {
    if (dial_) dial_->on_time(now);
  }
  Nanos next_due() const {
    if (is_dropped_) return 0;
    return dial_ ? dial_->next_due() : kNever;
  }

 private:
  void on_replies(const Wire &wire, Replies replies, Nanos now) override;
  void on_closed(const Wire &, Nanos) override { drop(); }
  void finish(Nanos now);
  lock::LockService &service() const { return *shared_.service; }

  Shared &shared_;
  driver::NodeConnection &connection_;  // of the commands
  const size_t node_;
  std::unique_ptr<Dial> dial_;
  std::unique_ptr<Wire> wire_;
  driver::Authentication auth_;
  bool is_dropped_ = false;
};

}  // namespace redlatch::wasm
