// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: an attempt to connect whose password is refused tries others, and says in the end what the
// caller may hope for. Method: the machine, with times as arguments.
#include "driver/login_attempt.h"

#include <gtest/gtest.h>

namespace redlatch::driver {
namespace {

using Stage = LoginAttempt::Stage;

constexpr Nanos kSecond = 1000 * kMs;
const Outcome kDenied{Status::kDenied, "refused"};

Settings settings_of(const char *password) {
  Settings settings;
  settings.host = "h";
  settings.password = password;
  settings.connect_timeout = kSecond;
  return settings;
}

// Reads `password` from the file, and gets no login.
void complete(LoginAttempt &attempt, const char *password, Nanos now) {
  ASSERT_EQ(attempt.stage(), Stage::kReading);
  attempt.settings().password = password;
  attempt.on_read({}, now);
  ASSERT_EQ(attempt.stage(), Stage::kWaiting);
  EXPECT_EQ(attempt.limit(), now + kSecond);
  attempt.on_given({});
}

TEST(LoginAttemptTest, another_password_of_the_file_is_tried_at_once) {
  const Settings settings = settings_of("");
  LoginAttempt attempt(settings);
  complete(attempt, "old", 0);
  attempt.on_dialled(kDenied, 0);
  complete(attempt, "new", 0);
  ASSERT_EQ(attempt.stage(), Stage::kDialling);
  EXPECT_EQ(attempt.settings().password, "new");
  attempt.on_dialled({}, 0);
  EXPECT_TRUE(attempt.is_over());
  EXPECT_TRUE(attempt.outcome().ok());
  EXPECT_EQ(attempt.check(), nullptr);
}

TEST(LoginAttemptTest, the_same_password_is_not_tried_again) {
  const Settings settings = settings_of("");
  LoginAttempt attempt(settings);
  complete(attempt, "old", 0);
  attempt.on_dialled(kDenied, 0);
  complete(attempt, "old", 0);
  EXPECT_TRUE(attempt.is_over());
  EXPECT_EQ(attempt.outcome().status, Status::kDenied);
}

TEST(LoginAttemptTest, a_refused_login_is_replaced_by_a_newer_one) {
  const Settings settings = settings_of("");
  LoginAttempt attempt(settings);
  attempt.on_read({}, 0);
  attempt.on_given({1, "u", "old"});
  EXPECT_EQ(attempt.settings().password, "old");
  attempt.on_dialled(kDenied, 0);
  ASSERT_EQ(attempt.stage(), Stage::kDenied);
  EXPECT_EQ(attempt.check(), nullptr);
  attempt.on_hope(true);
  attempt.on_read({}, 0);
  EXPECT_EQ(attempt.login().number, 1u) << "a newer one is waited for";
  attempt.on_given({2, "", "new"});
  ASSERT_EQ(attempt.stage(), Stage::kDialling);
  EXPECT_EQ(attempt.settings().user, "");
  EXPECT_EQ(attempt.settings().password, "new");
  attempt.on_dialled(kDenied, 0);
  attempt.on_hope(false);
  EXPECT_TRUE(attempt.is_over());
  EXPECT_EQ(attempt.outcome().status, Status::kDenied);
}

TEST(LoginAttemptTest, passwords_that_are_refused_for_long_are_no_final_refusal) {
  const Settings settings = settings_of("");
  LoginAttempt attempt(settings);
  complete(attempt, "1", 0);
  attempt.on_dialled(kDenied, 0);
  complete(attempt, "2", 0);
  attempt.on_dialled(kDenied, kSecond);
  EXPECT_TRUE(attempt.is_over());
  EXPECT_EQ(attempt.outcome().status, Status::kUnavailable);
  EXPECT_EQ(attempt.outcome().message, "refused");
}

TEST(LoginAttemptTest, without_a_login_or_a_file_there_is_no_connection) {
  const Settings settings = settings_of("");
  LoginAttempt waits(settings);
  waits.on_read({}, 0);
  waits.on_missing({Status::kUnavailable, "none"});
  EXPECT_TRUE(waits.is_over());
  EXPECT_EQ(waits.outcome().status, Status::kUnavailable);
  EXPECT_EQ(waits.outcome().message, "cannot connect to " + settings.address() + ": none");
  LoginAttempt reads(settings);
  reads.on_read({Status::kUnavailable, "no file"}, 0);
  EXPECT_TRUE(reads.is_over());
  EXPECT_EQ(reads.outcome().message, "no file");
}

}  // namespace
}  // namespace redlatch::driver
