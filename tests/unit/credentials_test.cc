// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: credentials are asked for in time, once for each answer, and not too often; a reply to AUTH
// is found among other replies. Method: times as arguments, without a client.
#include "runtime/credentials.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "host/clock.h"

namespace redlatch::runtime {
namespace {

constexpr Nanos kSecond = 1000 * kMs;
constexpr Nanos kMinute = 60 * kSecond;

// How long after they were given credentials are asked for that are valid for `valid_for`.
Nanos asked_after(Nanos valid_for) {
  Credentials credentials;
  const auto queue = std::make_shared<Queue>();
  credentials.watch(queue, 1, 0);
  credentials.set("u", "p", valid_for, kMinute);
  const Nanos due = credentials.next_due();
  if (due == kNever) return kNever;
  credentials.on_timer(due - 1);
  EXPECT_EQ(queue->next(), 0);
  credentials.on_timer(due);
  EXPECT_EQ(queue->next(), 1);
  EXPECT_EQ(credentials.next_due(), kNever) << "until there is an answer";
  return due - kMinute;
}

TEST(CredentialsTest, credentials_are_requested_before_they_expire) {
  EXPECT_EQ(asked_after(60 * kMinute), 45 * kMinute);
  EXPECT_EQ(asked_after(15 * kMinute), 15 * kMinute / 4 * 3);
  EXPECT_EQ(asked_after(10 * kMinute), 7 * kMinute) << "3 minutes before the end";
  EXPECT_EQ(asked_after(4 * kMinute), 2 * kMinute) << "not before half of the time";
  EXPECT_EQ(asked_after(kNever), kNever);
}

TEST(CredentialsTest, pauses_between_requests_for_credentials_grow) {
  Credentials credentials;
  const auto queue = std::make_shared<Queue>();
  credentials.watch(queue, 1, 0);
  credentials.set("u", "p", kNever, kMinute);
  EXPECT_FALSE(credentials.refused(1, kMinute)) << "they are new: at once would be too often";
  EXPECT_EQ(queue->next(), 0);
  EXPECT_EQ(credentials.next_due(), kMinute + kSecond);
  credentials.on_timer(kMinute + kSecond);
  EXPECT_EQ(queue->next(), 1);
  credentials.set("u", "p", kNever, 2 * kMinute);
  EXPECT_TRUE(credentials.refused(2, 3 * kMinute)) << "they were good for a minute";
  EXPECT_EQ(queue->next(), 1);
  // While others are valid the pauses between failures grow.
  credentials.set("u", "p", 60 * kMinute, 4 * kMinute);
  Nanos now = credentials.next_due();
  for (const Nanos pause : {1, 2, 4, 8, 16, 30, 30}) {
    credentials.on_timer(now);
    EXPECT_EQ(queue->next(), 1);
    EXPECT_EQ(credentials.fail("why", now), pause == 1);
    EXPECT_EQ(credentials.next_due(), now + pause * kSecond);
    now = credentials.next_due();
  }
}

// The answers are failures until the pauses have their full length. @return the last one's time.
Nanos fail_for_long(Credentials &credentials, Queue &queue) {
  Nanos now = 0;
  for (int i = 0; i < 7; i++) {
    now = credentials.next_due();
    credentials.on_timer(now);
    EXPECT_EQ(queue.next(), 1);
    credentials.fail("why", now);
  }
  return now;
}

TEST(CredentialsTest, expired_or_refused_credentials_are_requested_again_within_a_second) {
  Credentials credentials;
  const auto queue = std::make_shared<Queue>();
  credentials.watch(queue, 1, 0);
  credentials.set("u", "p", 15 * kMinute, 0);
  Nanos now = fail_for_long(credentials, *queue);
  EXPECT_TRUE(credentials.refused(1, now + kMs)) << "they were good for minutes";
  EXPECT_EQ(queue->next(), 0);
  EXPECT_EQ(credentials.next_due(), now + kSecond);
  credentials.on_timer(now + kSecond);
  EXPECT_EQ(queue->next(), 1);
  // A second after a failure, although the pause is longer.
  credentials.set("u", "p", 4 * kMinute, 0);
  now = fail_for_long(credentials, *queue);
  while (credentials.next_due() < 4 * kMinute) {
    now = credentials.next_due();
    credentials.on_timer(now);
    EXPECT_EQ(queue->next(), 1);
    credentials.fail("why", now);
  }
  EXPECT_EQ(credentials.next_due(), std::max(4 * kMinute, now + kSecond));
}

TEST(CredentialsTest, credentials_refused_twice_fail_with_the_applications_reason) {
  Credentials credentials;
  const auto queue = std::make_shared<Queue>();
  credentials.watch(queue, 1, 0);
  credentials.set("u", "p", kNever, 0);
  EXPECT_TRUE(credentials.refused(1, kMinute));
  credentials.fail("vault is sealed", kMinute);
  EXPECT_TRUE(credentials.refused(1, kMinute + kMs)) << "they are not new";
  Login login;
  const auto outcome = credentials.await(0, 1, login);
  EXPECT_EQ(outcome.status, Status::kUnavailable);
  EXPECT_EQ(outcome.message, "the application gave no credentials: vault is sealed");
}

TEST(CredentialsTest, a_failure_does_not_show_the_password) {
  Credentials credentials;
  credentials.set("u", "canary", 1, 0);
  credentials.fail("no more than canary\n", boot_now());
  Login login;
  const auto outcome = credentials.await(0, 0, login);
  EXPECT_EQ(outcome.status, Status::kUnavailable);
  EXPECT_EQ(outcome.message, "the application gave no credentials: no more than *** ");
}

TEST(CredentialsTest, a_client_without_a_provider_does_not_wait_for_credentials) {
  Credentials credentials;
  Login login;
  EXPECT_TRUE(credentials.await(kNever, 0, login).ok());
  EXPECT_EQ(login.number, 0u);
  credentials.set("u", "p", 1, 0);
  EXPECT_EQ(credentials.await(kNever, 0, login).status, Status::kUnavailable) << "they have ended";
  credentials.set("u", "p", kNever, 0);
  EXPECT_FALSE(credentials.refused(2, kMinute));
  EXPECT_TRUE(credentials.await(kNever, 0, login).ok()) << "the server may accept them later";
  EXPECT_EQ(login.password, "p");
}

TEST(AuthRepliesTest, replies_to_auth_are_found_among_other_replies) {
  AuthReplies replies;
  replies.on_append();
  replies.on_append();
  replies.expect(5);
  replies.on_append();
  EXPECT_EQ(replies.take(), 0u);
  EXPECT_FALSE(replies.is_empty());
  EXPECT_EQ(replies.take(), 5u);
  EXPECT_TRUE(replies.is_empty());
  EXPECT_EQ(replies.take(), 0u);
}

}  // namespace
}  // namespace redlatch::runtime
