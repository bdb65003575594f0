// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: replies are read whole, in any slices, and a hostile server exhausts nothing. Method:
// bytes.
#include "resp/reply_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "base/limits.h"

namespace redlatch::resp {

bool feed(ReplyReader &reader, std::string_view bytes, std::vector<ReplyPtr> &replies) {
  return reader.feed({bytes.data(), bytes.size()}, replies);
}

TEST(ReaderTest, replies_may_arrive_in_pieces_of_any_size) {
  const std::string bytes =
      "*3\r\n:1\r\n$5\r\nhello\r\n_\r\n>2\r\n+a\r\n+b\r\n-ERR no\r\n%1\r\n+k\r\n:2\r\n";
  for (size_t slice = 1; slice <= bytes.size(); slice++) {
    ReplyReader reader;
    std::vector<ReplyPtr> replies;
    for (size_t at = 0; at < bytes.size(); at += slice) {
      ASSERT_TRUE(feed(reader, std::string_view(bytes).substr(at, slice), replies));
    }
    ASSERT_EQ(replies.size(), 4u) << slice;
    EXPECT_EQ(replies[0]->at(0).integer, 1);
    EXPECT_EQ(replies[0]->at(1).text(), "hello");
    EXPECT_EQ(replies[0]->at(2).kind, Reply::Kind::kNil);
    EXPECT_EQ(replies[0]->at(9).kind, Reply::Kind::kNil);
    EXPECT_EQ(replies[1]->kind, Reply::Kind::kPush);
    EXPECT_TRUE(replies[2]->is_error());
    EXPECT_EQ(replies[3]->count(), 2u);
  }
}

TEST(ReaderTest, an_oversized_or_malformed_reply_is_refused) {
  std::string deep;
  for (int i = 0; i < 20; i++) deep += "*1\r\n";
  for (const std::string &bytes :
       {std::string("@x\r\n"), std::string("*2147483647\r\n"), std::string("*99999999999999\r\n"),
        std::string("$-2\r\n"), deep, std::string(":9223372036854775808\r\n")}) {
    ReplyReader reader;
    std::vector<ReplyPtr> replies;
    EXPECT_FALSE(feed(reader, bytes + bytes, replies)) << bytes.substr(0, 30);
    EXPECT_TRUE(replies.empty());
  }
}

TEST(ReaderTest, endless_text_is_refused_at_the_limit) {
  for (const char *head : {"$4611686018427387904\r\n", "+", "$2000000\r\n"}) {
    ReplyReader reader;
    std::vector<ReplyPtr> replies;
    ASSERT_TRUE(feed(reader, head, replies));
    const std::string block(16 * 1024, 'x');
    size_t total = 0;
    while (feed(reader, block, replies) && total < 4 * kMaxReplyBytes) total += block.size();
    EXPECT_LE(total, kMaxReplyBytes) << head;
  }
}

TEST(ReaderTest, the_limit_of_elements_counts_all_levels) {
  ReplyReader reader;
  std::vector<ReplyPtr> replies;
  std::string bytes = "*3\r\n";
  for (int i = 0; i < 3; i++) {
    bytes += "*2000\r\n";
    for (int j = 0; j < 2000; j++) bytes += ":1\r\n";
  }
  EXPECT_FALSE(feed(reader, bytes, replies));
}

}  // namespace redlatch::resp
