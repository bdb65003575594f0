// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ReplyReader: bytes in, replies out. The parser of hiredis builds our own values, with limits on
// bytes, elements and depth, so that a hostile server cannot exhaust memory. One thread at a time:
// the one that reads the connection.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/reply.h"

struct redisReader;

namespace redlatch::resp {

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

  // Parse `bytes` and append the replies that are complete to `replies`.
  // @return false after a protocol error or an exceeded limit: the connection is useless.
  [[nodiscard]] bool feed(std::span<const char> bytes, std::vector<ReplyPtr> &replies);

  // The parts of its limits that the reply under construction has used.
  struct Budget {
    size_t bytes = 0;
    size_t elements = 0;
  };

 private:
  Budget budget_;
  redisReader *reader_;
  size_t unfinished_bytes_ = 0;  // since the last complete reply
};

}  // namespace redlatch::resp
