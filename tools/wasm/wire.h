// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Wire: a connection of the host, by its number. Its owner gets its events; its end here closes it
// there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/dial_failure.h"
#include "base/password.h"
#include "base/settings.h"
#include "host.h"
#include "resp/command_writer.h"
#include "resp/reply_reader.h"

namespace redlatch::wasm {

class Wire;
using Replies = std::vector<resp::ReplyPtr>;

// An event may destroy the wire.
class WireOwner {
 public:
  WireOwner() = default;
  WireOwner(const WireOwner &) = delete;
  WireOwner &operator=(const WireOwner &) = delete;
  virtual ~WireOwner() = default;

  virtual void on_dialled(const Wire &, Nanos) {}
  virtual void on_replies(const Wire &wire, Replies replies, Nanos now) = 0;
  // It could not be dialled, or has ended, or its bytes are not RESP.
  virtual void on_closed(const Wire &wire, std::string_view why, Nanos now) = 0;
};

class Wire {
 public:
  // Dials.
  Wire(const Settings &target, WireOwner &owner) : number_(++last_number_), owner_(&owner) {
    const bool is_unix = !target.socket_path.empty();
    const std::string &host = is_unix ? target.socket_path : target.host;
    const std::string port = is_unix ? "" : target.port;
    wires_.emplace(number_, this);
    host_dial(number_, host.data(), host.size(), port.data(), port.size());
  }
  ~Wire() {
    wires_.erase(number_);
    host_close(number_);
  }
  Wire(const Wire &) = delete;
  Wire &operator=(const Wire &) = delete;

  // @return nullptr if it has ended.
  static Wire *find(int32_t number) {
    const auto found = wires_.find(number);
    return found == wires_.end() ? nullptr : found->second;
  }

  void set_owner(WireOwner &owner) { owner_ = &owner; }
  // To be sent by flush().
  void append(std::span<const std::string_view> argv) { resp::append_command(out_, argv); }
  void flush() { send(out_); }
  // All of `bytes`, which are wiped: they may hold a password.
  void send(std::string &bytes) {
    const WipeAtEnd sent(bytes);
    if (!bytes.empty()) host_send(number_, bytes.data(), bytes.size());
  }

  // ---- events
  void on_dialled(Nanos now) { owner_->on_dialled(*this, now); }
  void on_bytes(std::span<const char> bytes, Nanos now) {
    const int32_t number = number_;
    Replies replies;
    const bool is_open = reader_.feed(bytes, replies);
    if (!replies.empty()) owner_->on_replies(*this, std::move(replies), now);
    Wire *same = is_open ? nullptr : find(number);
    if (same != nullptr) same->on_closed(kClosedByServer, now);
  }
  void on_closed(std::string_view why, Nanos now) { owner_->on_closed(*this, why, now); }

 private:
  static inline int32_t last_number_ = 0;
  static inline std::map<int32_t, Wire *> wires_;

  const int32_t number_;
  WireOwner *owner_;
  resp::ReplyReader reader_;
  std::string out_;
};

}  // namespace redlatch::wasm
