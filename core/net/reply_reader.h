// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ReplyReader: bytes in, replies out. hiredis' parser builds our own values, with limits on bytes,
// elements and depth, so that a hostile server can make us hold only so much. One thread at a time:
// the thread that reads the connection.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/reply.h"

struct redisReader;

namespace redlatch::net {

struct ReplyDeleter {
  void operator()(Reply *reply) const;
};
using ReplyPtr = std::unique_ptr<Reply, ReplyDeleter>;

class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader &) = delete;
  ReplyReader &operator=(const ReplyReader &) = delete;

  // Take in `bytes` and append the replies that are complete to `replies`.
  // @return false: what came is no reply of a lock server; the connection is useless.
  [[nodiscard]] bool feed(std::span<const char> bytes, std::vector<ReplyPtr> &replies);

  // What the reply that is being built has used of its limits.
  struct Budget {
    size_t bytes = 0;
    size_t elements = 0;
  };

 private:
  Budget budget_;
  redisReader *reader_;
  size_t unfinished_bytes_ = 0;  // since the last complete reply
};

}  // namespace redlatch::net
