// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a connection sends AUTH with a newer login, and finds its reply among others. Method: the
// machines, without a connection.
#include "driver/authentication.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlatch::driver {
namespace {

TEST(AuthRepliesTest, replies_to_auth_are_found_among_other_replies) {
  AuthReplies replies;
  replies.on_append();
  replies.on_append();
  replies.expect(5);
  replies.on_append();
  EXPECT_FALSE(replies.is_next());
  EXPECT_EQ(replies.take(), 0u);
  EXPECT_FALSE(replies.is_empty());
  EXPECT_TRUE(replies.is_next());
  EXPECT_EQ(replies.take(), 5u);
  EXPECT_TRUE(replies.is_empty());
  EXPECT_EQ(replies.take(), 0u);
}

TEST(AuthenticationTest, a_newer_login_is_sent_with_its_user_if_it_has_one) {
  Authentication auth;
  std::vector<std::string> sent;
  const Authentication::Send send = [&](std::span<const std::string_view> argv) {
    sent.assign(argv.begin(), argv.end());
    auth.on_append();
  };
  auth.begin(1);
  auth.on_append();
  auth.renew({2, "", "new"}, send);
  EXPECT_EQ(sent, (std::vector<std::string>{"AUTH", "new"}));
  auth.renew({4, "u", "newest"}, send);
  EXPECT_EQ(sent, (std::vector<std::string>{"AUTH", "u", "newest"}));
  EXPECT_EQ(auth.login(), 4u);
  EXPECT_EQ(auth.take(), 0u);
  EXPECT_EQ(auth.take(), 2u);
  EXPECT_TRUE(auth.is_awaited());
  EXPECT_EQ(auth.take(), 4u);
  EXPECT_FALSE(auth.is_awaited());
}

}  // namespace
}  // namespace redlatch::driver
