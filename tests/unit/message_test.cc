// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: each part of a message is written as users read it, and no message fails.
#include "base/message.h"

#include <gtest/gtest.h>

#include <utility>

#include "failing_memory.h"

namespace redlatch {
namespace {

TEST(MessageOfTest, parts_are_written_in_their_order) {
  Settings server;
  server.host = "db1";
  server.port = "6380";
  EXPECT_EQ(message_of({}), "");
  EXPECT_EQ(message_of({LockName{"a'b"}, " of ", &server, ": ", int64_t{-7}, " in ", Seconds{50}}),
            R"(lock 'a\x27b' of redis://db1:6380: -7 in 0.05 s)");
  EXPECT_EQ(message_of({"got ", Quoted{"x\n"}}), R"(got 'x\x0a')");
  EXPECT_EQ(message_of({Foreign{"two\nlines"}}), "two lines");
}

TEST(MessageOfTest, a_separator_stands_before_a_text_only) {
  EXPECT_EQ(message_of({"lost", After{": ", "forced"}}), "lost: forced");
  EXPECT_EQ(message_of({"lost", After{": ", ""}}), "lost");
}

TEST(MessageOfTest, without_memory_it_is_empty) {
  const std::string part(100, 'x');
  allocation_countdown = 1;
  const std::string message = message_of({part, part});
  EXPECT_EQ(std::exchange(allocation_countdown, 0), 0) << "it asks for memory";
  EXPECT_EQ(message, "");
}

}  // namespace
}  // namespace redlatch
