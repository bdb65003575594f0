// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// RealServer: a real server over a unix socket, whose wall clock the test sets (clock_shim.c), and
// a subscriber there. Throws std::runtime_error when a connection breaks.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "value.h"

struct redisContext;
struct redisReply;

namespace redlatch::sim {

struct Message {
  std::string channel, text;
  bool is_sharded;
  bool operator==(const Message &) const = default;
};

class RealServer {
 public:
  RealServer(const std::string &socket, const std::string &clock_file);
  ~RealServer();
  RealServer(const RealServer &) = delete;
  RealServer &operator=(const RealServer &) = delete;

  // Replies to all that was sent must have been received.
  void set_time(int64_t now_us) { *clock_us_ = now_us; }
  void send(std::span<const std::string> words);
  Value receive();
  Value ask(std::span<const std::string> words) {
    send(words);
    return receive();
  }
  void subscribe(std::span<const std::string> channels, bool is_sharded);
  // The messages to the subscriber since the last call.
  std::vector<Message> messages();

 private:
  static Value read(redisContext *connection);
  static Value value_of(const redisReply &reply);

  redisContext *connection_ = nullptr, *subscriber_ = nullptr;
  std::atomic<int64_t> *clock_us_ = nullptr;
};

}  // namespace redlatch::sim
