// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Outbox: the commands to be sent on one connection, and those that a thread is sending. Guarded by
// the mutex of the runtime, except send().
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/password.h"
#include "net/connection.h"

namespace redlatch::runtime {

class Outbox {
 public:
  void append(std::span<const std::string_view> argv) {
    net::append_command(text_, argv);
    count_++;
  }
  // An AUTH was appended: its text is wiped when it has been sent.
  void note_secret() { has_secret_ = true; }
  // Commands that were appended since the last begin().
  size_t count() const { return count_; }
  bool is_empty() const { return text_.empty(); }
  // The socket is full.
  bool is_blocked() const { return is_blocked_; }
  void set_blocked(bool is_on) { is_blocked_ = is_on; }

  // One thread at a time sends: begin() takes what there is, send() sends it without the mutex,
  // end() ends. @return true if there is something to send.
  bool begin() {
    assert(!is_sending_);
    is_sending_ = !is_blocked_ && !(text_.empty() && sending_.empty());
    if (is_sending_ && sending_.empty()) {
      sending_.swap(text_);
      is_sending_secret_ = std::exchange(has_secret_, false);
      count_ = 0;
    }
    return is_sending_;
  }
  void send(net::Connection &connection) {
    assert(is_sending_);
    const auto sent = connection.send(sending_);
    const size_t count = sent.value_or(sending_.size());
    is_sending_secret_ ? drop_front(sending_, count) : void(sending_.erase(0, count));
    has_failed_ = !sent;
  }
  // kFull: text is left, because the socket is full.
  enum class Result { kNone, kSent, kFull, kFailed };
  Result end() {
    if (!std::exchange(is_sending_, false)) return Result::kNone;
    if (std::exchange(has_failed_, false)) return Result::kFailed;
    return sending_.empty() ? Result::kSent : Result::kFull;
  }
  void clear() {
    assert(!is_sending_);
    wipe(sending_);  // AUTH may be in both
    wipe(text_);
    *this = Outbox();
  }

 private:
  std::string text_, sending_;
  size_t count_ = 0;
  bool is_sending_ = false, has_failed_ = false, is_blocked_ = false;
  bool has_secret_ = false, is_sending_secret_ = false;
};

}  // namespace redlatch::runtime
