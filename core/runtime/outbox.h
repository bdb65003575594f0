// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Outbox: the commands to be sent on one connection, and those that a thread is sending.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/password.h"
#include "base/thread_annotations.h"
#include "net/connection.h"
#include "resp/command_writer.h"
#include "runtime/runtime_mutex.h"

namespace redlatch::runtime {

class Outbox {
 public:
  void append(std::span<const std::string_view> argv) REQUIRES(runtime_mutex) {
    resp::append_command(text_, argv);
    count_++;
  }
  // An AUTH was appended: its text is wiped when it has been sent.
  void note_secret() REQUIRES(runtime_mutex) { has_secret_ = true; }
  // Commands that were appended since the last begin().
  size_t count() const REQUIRES(runtime_mutex) { return count_; }
  bool is_empty() const REQUIRES(runtime_mutex) { return text_.empty(); }
  // The socket is full.
  bool is_blocked() const REQUIRES(runtime_mutex) { return is_blocked_; }
  void set_blocked(bool is_on) REQUIRES(runtime_mutex) { is_blocked_ = is_on; }

  // One thread at a time sends: begin() takes what there is, send() sends it without the mutex,
  // end() ends. @return true if there is something to send.
  bool begin() REQUIRES(runtime_mutex) {
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
  Result end() REQUIRES(runtime_mutex) {
    if (!std::exchange(is_sending_, false)) return Result::kNone;
    if (std::exchange(has_failed_, false)) return Result::kFailed;
    return sending_.empty() ? Result::kSent : Result::kFull;
  }
  void clear() REQUIRES(runtime_mutex) {
    assert(!is_sending_);
    wipe(sending_);  // AUTH may be in both
    wipe(text_);
    *this = Outbox();
  }

 private:
  std::string text_ GUARDED_BY(runtime_mutex);
  size_t count_ GUARDED_BY(runtime_mutex) = 0;
  bool is_blocked_ GUARDED_BY(runtime_mutex) = false;
  bool has_secret_ GUARDED_BY(runtime_mutex) = false;
  std::string sending_ UNGUARDED("of the sending thread while is_sending_");
  bool is_sending_ UNGUARDED("changed by the sending thread") = false;
  bool has_failed_ UNGUARDED("of the sending thread while is_sending_") = false;
  bool is_sending_secret_ UNGUARDED("of the sending thread while is_sending_") = false;
};

}  // namespace redlatch::runtime
