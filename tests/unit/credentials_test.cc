// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: credentials are asked for in time, once for each answer, and not too often; a connection
// that waits gets them, or the reason why there are none. Method: the machine, with times as
// arguments.
#include "driver/credentials.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace redlatch::driver {
namespace {

using What = Credentials::Given::What;

constexpr Nanos kSecond = 1000 * kMs;
constexpr Nanos kMinute = 60 * kSecond;

// Puts the question if it is due, as a host does. @return whether it was.
bool is_asked(Credentials &credentials, Nanos now) {
  EXPECT_EQ(credentials.check(), nullptr);
  const bool asks = credentials.asks(now);
  if (asks) credentials.on_asked();
  EXPECT_EQ(credentials.check(), nullptr);
  return asks;
}

// .. when the server has refused those with `number`.
bool is_asked_when_refused(Credentials &credentials, uint64_t number, Nanos now) {
  credentials.on_refused(number);
  return is_asked(credentials, now);
}

Credentials watched() {
  Credentials credentials;
  credentials.begin_watch();
  return credentials;
}

// How long after they were given credentials are asked for that are valid for `valid_for`.
Nanos asked_after(Nanos valid_for) {
  Credentials credentials = watched();
  credentials.set("u", "p", valid_for, kMinute);
  const Nanos due = credentials.next_due();
  if (due == kNever) return kNever;
  EXPECT_FALSE(is_asked(credentials, due - 1));
  EXPECT_TRUE(is_asked(credentials, due));
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
  Credentials credentials = watched();
  credentials.set("u", "p", kNever, kMinute);
  EXPECT_FALSE(is_asked_when_refused(credentials, 1, kMinute)) << "at once would be too often";
  EXPECT_FALSE(credentials.is_worth_waiting(1, kMinute)) << "they are new";
  EXPECT_EQ(credentials.next_due(), kMinute + kSecond);
  EXPECT_TRUE(is_asked(credentials, kMinute + kSecond));
  credentials.set("u", "p", kNever, 2 * kMinute);
  EXPECT_TRUE(is_asked_when_refused(credentials, 2, 3 * kMinute));
  EXPECT_TRUE(credentials.is_worth_waiting(2, 3 * kMinute)) << "they were good for a minute";
  // While others are valid the pauses between failures grow.
  credentials.set("u", "p", 60 * kMinute, 4 * kMinute);
  Nanos now = credentials.next_due();
  for (const Nanos pause : {1, 2, 4, 8, 16, 30, 30}) {
    EXPECT_TRUE(is_asked(credentials, now));
    EXPECT_EQ(credentials.fail("why", now), pause == 1);
    EXPECT_EQ(credentials.next_due(), now + pause * kSecond);
    now = credentials.next_due();
  }
}

// The answers are failures until the pauses have their full length. @return the last one's time.
Nanos fail_for_long(Credentials &credentials) {
  Nanos now = 0;
  for (int i = 0; i < 7; i++) {
    now = credentials.next_due();
    EXPECT_TRUE(is_asked(credentials, now));
    credentials.fail("why", now);
  }
  return now;
}

TEST(CredentialsTest, expired_or_refused_credentials_are_requested_again_within_a_second) {
  Credentials credentials = watched();
  credentials.set("u", "p", 15 * kMinute, 0);
  Nanos now = fail_for_long(credentials);
  EXPECT_FALSE(is_asked_when_refused(credentials, 1, now + kMs));
  EXPECT_TRUE(credentials.is_worth_waiting(1, now + kMs)) << "they were good for minutes";
  EXPECT_EQ(credentials.next_due(), now + kSecond);
  EXPECT_TRUE(is_asked(credentials, now + kSecond));
  // A second after a failure, although the pause is longer.
  credentials.set("u", "p", 4 * kMinute, 0);
  now = fail_for_long(credentials);
  while (credentials.next_due() < 4 * kMinute) {
    now = credentials.next_due();
    EXPECT_TRUE(is_asked(credentials, now));
    credentials.fail("why", now);
  }
  EXPECT_EQ(credentials.next_due(), std::max(4 * kMinute, now + kSecond));
}

TEST(CredentialsTest, a_question_without_memory_is_repeated) {
  Credentials credentials = watched();
  credentials.set("u", "p", kNever, 0);
  credentials.on_refused(1);
  EXPECT_TRUE(credentials.asks(kMinute));
  credentials.on_not_asked(kMinute);
  EXPECT_EQ(credentials.next_due(), kMinute + kSecond);
  EXPECT_FALSE(credentials.asks(kMinute + kSecond - 1));
  EXPECT_TRUE(credentials.asks(kMinute + kSecond));
}

TEST(CredentialsTest, a_connection_waits_until_credentials_are_given) {
  Credentials credentials = watched();
  EXPECT_FALSE(credentials.would_ask(0));
  credentials.begin_wait();
  EXPECT_TRUE(credentials.would_ask(0)) << "a connection needs some";
  auto given = credentials.give(0, kMinute, 0);
  EXPECT_EQ(given.what, What::kWait);
  EXPECT_EQ(given.until, kMinute) << "the question is about to be put";
  EXPECT_TRUE(is_asked(credentials, 0));
  EXPECT_EQ(credentials.give(0, kMinute, kMinute).what, What::kFailure);
  EXPECT_EQ(credentials.give(0, kMinute, kMinute).why.message,
            "the application has not given credentials in time");
  credentials.set("u", "p", kNever, kSecond);
  EXPECT_EQ(credentials.give(0, kMinute, kSecond).what, What::kLogin);
  EXPECT_EQ(credentials.login().number, 1u);
  // The server refuses them: the next question is not before a second has passed.
  EXPECT_FALSE(is_asked_when_refused(credentials, 1, kSecond));
  given = credentials.give(1, kMinute, kSecond);
  EXPECT_EQ(given.what, What::kWait);
  EXPECT_EQ(given.until, 2 * kSecond);
  credentials.end_wait();
  credentials.end_watch();
  EXPECT_EQ(credentials.give(1, kMinute, kSecond).what, What::kFailure) << "nobody is asked";
}

TEST(CredentialsTest, credentials_refused_twice_fail_with_the_applications_reason) {
  Credentials credentials = watched();
  credentials.set("u", "p", kNever, 0);
  EXPECT_TRUE(is_asked_when_refused(credentials, 1, kMinute));
  credentials.fail("vault is sealed", kMinute);
  EXPECT_FALSE(is_asked_when_refused(credentials, 1, kMinute + kMs));
  EXPECT_TRUE(credentials.is_worth_waiting(1, kMinute + kMs)) << "they are not new";
  const auto given = credentials.give(1, kNever, kMinute + kMs);
  EXPECT_EQ(given.what, What::kFailure);
  EXPECT_EQ(given.why.status, Status::kUnavailable);
  EXPECT_EQ(given.why.message, "the application gave no credentials: vault is sealed");
}

TEST(CredentialsTest, a_failure_does_not_show_the_password) {
  Credentials credentials;
  credentials.set("u", "canary", 1, 0);
  credentials.fail("no more than canary\n", 2);
  const auto given = credentials.give(0, kNever, 2);
  EXPECT_EQ(given.why.status, Status::kUnavailable);
  EXPECT_EQ(given.why.message, "the application gave no credentials: no more than *** ");
}

TEST(CredentialsTest, a_client_without_a_provider_does_not_wait_for_credentials) {
  Credentials credentials;
  EXPECT_EQ(credentials.give(0, kNever, 0).what, What::kLogin);
  EXPECT_EQ(credentials.login().number, 0u);
  credentials.set("u", "p", 1, 0);
  EXPECT_EQ(credentials.give(0, kNever, 1).what, What::kFailure) << "they have ended";
  credentials.set("u", "p", kNever, 0);
  credentials.on_refused(2);
  EXPECT_FALSE(credentials.is_worth_waiting(2, kMinute));
  EXPECT_EQ(credentials.give(0, kNever, 0).what, What::kLogin) << "it may be accepted later";
  EXPECT_EQ(credentials.login().password, "p");
}

}  // namespace
}  // namespace redlatch::driver
