// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Authentication: of one connection: which login its server has, what is sent if the application
// gives a newer one, and which replies answer that.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "driver/login.h"

namespace redlatch::driver {

// Which replies of a connection answer AUTH. All other commands are those of the service.
class AuthReplies {
 public:
  void on_append() { appended_count_++; }
  // The last command that was appended is an AUTH.
  void expect(uint64_t login) { pending_.push_back({appended_count_, login}); }
  // The next reply. @return the number of the login that it is about; 0: it answers no AUTH.
  uint64_t take() {
    received_count_++;
    return pending_.empty() ? 0 : take_pending();
  }
  // take() would return a login.
  bool is_next() const {
    return !pending_.empty() && pending_.front().position == received_count_ + 1;
  }
  bool is_empty() const { return pending_.empty(); }
  void clear() {
    pending_.clear();
    appended_count_ = received_count_ = 0;
  }

 private:
  struct Auth {
    uint64_t position;
    uint64_t login;
  };
  uint64_t take_pending();

  uint64_t appended_count_ = 0;
  uint64_t received_count_ = 0;
  std::vector<Auth> pending_;
};

class Authentication {
 public:
  // Takes one command, and calls on_append(). The text, which is secret, is borrowed for the call.
  using Send = std::function<void(std::span<const std::string_view>)>;

  // The connection was made with this login.
  void begin(uint64_t login) { login_ = login; }
  // It begins, or has ended: no reply is awaited.
  void clear() { replies_.clear(); }
  // A command was appended, also AUTH.
  void on_append() { replies_.on_append(); }
  // The number of the last one that the server was sent.
  uint64_t login() const { return login_; }
  // Sends AUTH with a newer one. Throws std::bad_alloc, and then the connection is of no use.
  void renew(const Login &newer, const Send &send);
  // The next reply; as AuthReplies.
  uint64_t take() { return replies_.take(); }
  bool is_next() const { return replies_.is_next(); }
  bool is_awaited() const { return !replies_.is_empty(); }

 private:
  uint64_t login_ = 0;
  AuthReplies replies_;
};

}  // namespace redlatch::driver
