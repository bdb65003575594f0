// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a queue gets a tag when credentials are wanted, and who waits gets what is given, or the
// reason. Method: without a client.
#include <gtest/gtest.h>

#include <memory>

#include "host/clock.h"
#include "runtime/credentials.h"

namespace redlatch::runtime {
namespace {

constexpr Nanos kMinute = 60'000 * kMs;

TEST(CredentialsHostTest, a_queue_gets_one_tag_for_each_question) {
  Credentials credentials;
  const auto queue = std::make_shared<Queue>();
  credentials.watch(queue, {.tag = 1}, 0);
  EXPECT_EQ(queue->next().tag, 0) << "nobody needs any";
  credentials.set("u", "p", 4 * kMinute, 0);
  credentials.on_timer(2 * kMinute - 1);
  EXPECT_EQ(queue->next().tag, 0);
  credentials.on_timer(2 * kMinute);
  credentials.on_timer(3 * kMinute);
  EXPECT_EQ(queue->next().tag, 1);
  EXPECT_EQ(queue->next().tag, 0) << "until there is an answer";
  // A watch that begins asks anew.
  credentials.watch(queue, {.tag = 2}, 3 * kMinute);
  EXPECT_EQ(queue->next().tag, 2);
  EXPECT_TRUE(credentials.refused(1, 3 * kMinute)) << "the application is asked already";
  EXPECT_EQ(queue->next().tag, 0);
}

TEST(CredentialsHostTest, a_queue_that_is_gone_is_asked_no_more) {
  Credentials credentials;
  auto queue = std::make_shared<Queue>();
  credentials.watch(queue, {.tag = 1}, 0);
  credentials.set("u", "p", 4 * kMinute, 0);
  queue.reset();
  EXPECT_EQ(credentials.next_due(), kNever);
  EXPECT_FALSE(credentials.refused(1, kMinute));
}

TEST(CredentialsHostTest, who_waits_gets_what_is_given_or_the_reason) {
  Credentials credentials;
  Login login;
  EXPECT_TRUE(credentials.await(kNever, 0, login).ok()) << "the settings have the login";
  EXPECT_EQ(login.number, 0u);
  const auto queue = std::make_shared<Queue>();
  credentials.watch(queue, {.tag = 1}, 0);
  EXPECT_EQ(credentials.await(0, 0, login).status, Status::kUnavailable);
  EXPECT_EQ(queue->next().tag, 1);
  credentials.set("u", "p", kNever, boot_now());
  EXPECT_TRUE(credentials.await(0, 0, login).ok());
  EXPECT_EQ(login.number, 1u);
  EXPECT_EQ(login.password, "p");
}

}  // namespace
}  // namespace redlatch::runtime
