// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Transport: sends, closes and warns for sessions, to numbered servers. It never calls a session.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace redlatch::session {

class Transport {
 public:
  virtual ~Transport() = default;
  // Append one command to what is to be sent to `node`. The text is borrowed for the call.
  virtual void send(size_t node, std::span<const std::string_view> argv) = 0;
  // Closes the connection; Session::on_disconnected() follows.
  virtual void drop_link(size_t node) = 0;
  // The same for the second connection to `node`, for commands that block those behind them.
  virtual void send_on_side(size_t, std::span<const std::string_view>) {}
  virtual void drop_side(size_t) {}
  // Append one command to what is to be sent on the connection for messages, if there is one.
  virtual void send_on_messages(size_t, std::span<const std::string_view>) {}
  // For the log.
  virtual void warn(std::string_view) noexcept {}
};

}  // namespace redlatch::session
