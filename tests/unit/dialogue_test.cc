// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: an attempt to connect dials, asks and closes what it should, gives each server its share of
// the time, and tells the failure that matters. Method: tables of events, by a host without I/O;
// check() after every event.
#include "driver/dialogue.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/dial_failure.h"
#include "dialogue_world.h"
#include "driver/primary_attempt.h"
#include "driver/sentinel_survey.h"
#include "driver/server_attempt.h"
#include "driver/side_attempt.h"
#include "driver/slot_reading.h"

namespace redlatch::driver {
namespace {

class DialogueTest : public DialogueWorld, public ::testing::Test {};

// ---- one server --------------------------------------------------------------------------------

// Each way in which a connection fails, at each stage, and what is told.
TEST_F(DialogueTest, a_failure_of_a_connection_ends_the_attempt_with_its_reason) {
  const Outcome tls = failure(Status::kUnsupported, "no trusted certificate");
  struct {
    const char *words;
    Status status;
    std::function<void(Dialogue &)> event;
  } const rows[] = {
      {"cannot reach redis://db:6379: no answer within the time limit", Status::kUnavailable,
       [&](Dialogue &one) { one.on_late(now_); }},
      {"cannot reach redis://db:6379: the connection was closed by the server",
       Status::kUnavailable, [&](Dialogue &one) { one.on_closed({}, now_); }},
      {"no trusted certificate", Status::kUnsupported,
       [&](Dialogue &one) { one.on_closed(tls, now_); }},
      {"refused", Status::kUnavailable,
       [&](Dialogue &one) { one.on_failed(unreachable("x", "refused"), now_); }},
  };
  for (const auto &row : rows) {
    for (int stage = 0; stage < 4; stage++) {
      ServerAttempt attempt(settings_, "c", false, now_);
      if (stage > 0) dialled(attempt);
      if (stage > 1) reply(attempt, no_resp3());
      if (stage > 2) reply(attempt, hello());
      row.event(attempt);
      expect_end(attempt, row.status, row.words);
      EXPECT_FALSE(attempt.uses(Dialogue::kCommands) || attempt.uses(Dialogue::kMessages));
    }
  }
}

TEST_F(DialogueTest, with_resp2_two_connections_are_dialled_and_used) {
  ServerAttempt attempt(settings_, "c", false, now_);
  dialled(attempt);
  reply(attempt, no_resp3());
  reply(attempt, hello());
  load_scripts(attempt);
  ASSERT_TRUE(attempt.is_dialling());
  ASSERT_EQ(attempt.wire(), Dialogue::kMessages);
  EXPECT_TRUE(attempt.uses(Dialogue::kCommands));
  dialled(attempt);
  reply(attempt, no_resp3());
  reply(attempt, hello());
  reply(attempt, text("OK"));
  ASSERT_EQ(attempt.wire(), Dialogue::kCommands) << "the probe";
  // With RESP2 a message looks like a reply.
  const MadeReply message = counts();
  attempt.on_reply(Dialogue::kMessages, message.get(), send(), now_);
  EXPECT_FALSE(attempt.is_over());
  reply(attempt, counts());
  expect_end(attempt, Status::kOk, "");
  EXPECT_TRUE(attempt.facts().is_push_trusted);
  EXPECT_TRUE(attempt.uses(Dialogue::kCommands) && attempt.uses(Dialogue::kMessages));
}

TEST_F(DialogueTest, a_second_connection_for_messages_replaces_the_first_one) {
  ServerAttempt attempt(settings_, "c", false, now_);
  const auto reach_messages = [&] {
    load_scripts(attempt);
    ASSERT_EQ(attempt.wire(), Dialogue::kMessages);
    dialled(attempt);
    reply(attempt, no_resp3());
    reply(attempt, hello());
    reply(attempt, text("OK"));
  };
  dialled(attempt);
  reply(attempt, no_resp3());
  reply(attempt, hello());
  reach_messages();
  reply(attempt, MadeReply::list(MadeReply::integer(-1), MadeReply::integer(-1)));
  reply(attempt, MadeReply::error("ERR wrong number of arguments for 'ssubscribe' command"));
  reply(attempt, MadeReply::error("ERR Command is not available: 'SPUBLISH'"));
  EXPECT_TRUE(attempt.uses(Dialogue::kMessages));
  reach_messages();
  reply(attempt, counts());
  expect_end(attempt, Status::kOk, "");
  EXPECT_FALSE(attempt.facts().is_sharded);
}

TEST_F(DialogueTest, a_server_that_sends_pushes_without_end_fills_no_memory) {
  EXPECT_TRUE(Dialogue::keeps_push(Dialogue::kCommands, 0));
  EXPECT_TRUE(Dialogue::keeps_push(Dialogue::kCommands, 63));
  EXPECT_FALSE(Dialogue::keeps_push(Dialogue::kCommands, 64));
  EXPECT_FALSE(Dialogue::keeps_push(Dialogue::kSentinel, 0));
}

TEST_F(DialogueTest, a_replica_gets_no_connection_at_the_side) {
  for (const bool is_replica : {false, true}) {
    SideAttempt attempt(settings_, now_);
    EXPECT_EQ(attempt.limit(), now_ + 3 * kSecond);
    dialled(attempt);
    EXPECT_EQ(attempt.limit(), now_ + 2 * kSecond);
    reply(attempt, MadeReply::list(text("version"), text("7.4.1"), text("role"),
                                   text(is_replica ? "replica" : "master")));
    load_scripts(attempt);
    expect_end(attempt, is_replica ? Status::kServer : Status::kOk,
               is_replica ? "redis://db:6379 is a replica" : "");
    EXPECT_EQ(attempt.uses(Dialogue::kCommands), !is_replica);
  }
}

// ---- slots -------------------------------------------------------------------------------------

class SlotReadingTest : public DialogueTest {
 protected:
  SlotReadingTest() {
    settings_.host.clear();
    settings_.cluster.addresses = {kA, kB, kC};
  }
  const std::vector<HostPort> servers_{kA, kB, kC};
};

TEST_F(SlotReadingTest, the_first_answer_ends_it) {
  SlotReading reading(settings_, servers_, now_);
  EXPECT_EQ(reading.limit(), now_ + kSecond) << "a third of the time";
  fails(reading, unreachable("redis://a:1", "Connection refused"));
  tell_slots(reading);
  expect_end(reading, Status::kOk, "");
  EXPECT_EQ(dialled_, std::vector<std::string>{"b"});
  ASSERT_EQ(reading.ranges().size(), 1U);
  EXPECT_EQ(reading.ranges()[0].primary, kA);
  EXPECT_EQ(reading.facts().version, "Redis 7.4.1");
}

TEST_F(SlotReadingTest, each_server_has_its_share_of_the_time_that_is_left) {
  SlotReading reading(settings_, servers_, now_);
  const Nanos end = now_ + 3 * kSecond;
  dialled(reading);
  EXPECT_EQ(reading.limit(), end - 2 * kSecond) << "for the dial and the answers together";
  now_ = reading.limit() - kMs;
  fails(reading, {Status::kUnavailable, ""});
  EXPECT_EQ(reading.limit(), now_ + kSecond);
  now_ = end;
  fails(reading, {Status::kUnavailable, ""});
  EXPECT_EQ(reading.limit(), now_ + kMs) << "the last one has a moment";
}

TEST_F(SlotReadingTest, the_first_failure_is_told_unless_a_later_one_is_final) {
  const auto down = [&](Dialogue &one) { fails(one, unreachable("it", "refused")); };
  const auto late = [&](Dialogue &one) { one.on_late(now_); };
  const auto wrong_password = [&](Dialogue &one) {
    dialled(one);
    reply(one, denied());
  };
  const auto cut_off = [&](Dialogue &one) { tell_slots(one, "cluster_state:fail\r\n"); };
  using Event = std::function<void(Dialogue &)>;
  const struct {
    std::vector<Event> events;
    Status status;
    const char *words;
  } rows[] = {
      {{down, late, cut_off}, Status::kUnavailable, "cannot reach it: refused"},
      {{late, down, down}, Status::kUnavailable, "cannot reach redis://a:1: no answer"},
      {{cut_off, down, late}, Status::kUnavailable, "the cluster is down"},
      {{down, wrong_password, down}, Status::kDenied, "WRONGPASS"},
      {{wrong_password, cut_off, down}, Status::kDenied, "WRONGPASS"},
  };
  for (const auto &row : rows) {
    SlotReading reading(settings_, servers_, now_);
    for (const Event &event : row.events) event(reading);
    expect_end(reading, row.status, row.words);
    EXPECT_FALSE(reading.uses(Dialogue::kCommands));
  }
}

// ---- sentinels ---------------------------------------------------------------------------------

class PrimaryAttemptTest : public DialogueTest {
 protected:
  PrimaryAttemptTest() {
    settings_.host.clear();
    settings_.sentinel.addresses = {kA};
    settings_.sentinel.primary_name = "main";
  }
};

TEST_F(PrimaryAttemptTest, the_server_that_a_sentinel_names_is_connected_to) {
  PrimaryAttempt attempt(settings_, "c", {}, now_);
  const Nanos end = now_ + 3 * kSecond;
  name_primary(attempt, kB);
  EXPECT_EQ(attempt.target().host, "b");
  EXPECT_EQ(attempt.limit(), end) << "the search and the dial have one limit together";
  greet_primary(attempt, "master");
  reply(attempt, hello());
  reply(attempt, counts());
  expect_end(attempt, Status::kOk, "");
  EXPECT_TRUE(attempt.uses(Dialogue::kCommands));
  EXPECT_FALSE(attempt.uses(Dialogue::kSentinel) || attempt.uses(Dialogue::kMessages));
  EXPECT_EQ(attempt.take_opinion().primary, kB);
  EXPECT_EQ(attempt.take_knowledge().epoch, 3);
  EXPECT_EQ(attempt.facts().run_id, "abc");
}

TEST_F(PrimaryAttemptTest, a_server_that_is_no_primary_is_left_for_the_next_one) {
  settings_.sentinel.addresses = {kA, kC};
  PrimaryAttempt attempt(settings_, "c", {}, now_);
  name_primary(attempt, kB);
  fails(attempt, unreachable("sentinel", "refused"));
  greet_primary(attempt, "slave");
  EXPECT_FALSE(attempt.uses(Dialogue::kCommands));
  expect_end(attempt, Status::kServer, "(named by sentinel a:1)");
  EXPECT_EQ(dialled_, (std::vector<std::string>{"a", "b"}));
}

TEST_F(PrimaryAttemptTest, a_wrong_password_of_the_server_is_final) {
  PrimaryAttempt attempt(settings_, "c", {}, now_);
  name_primary(attempt, kB);
  dialled(attempt);
  reply(attempt, denied());
  expect_end(attempt, Status::kDenied, "WRONGPASS");
}

// As when its host is stopped: each step that is left fails at once.
TEST_F(PrimaryAttemptTest, it_ends_when_nobody_waits_any_longer) {
  settings_.sentinel.addresses = {kA, kB, kC};
  PrimaryAttempt attempt(settings_, "c", {}, now_);
  for (int guard = 0; !attempt.is_over(); guard++) {
    ASSERT_LT(guard, 10);
    attempt.on_late(now_);
    look(attempt);
  }
  expect_end(attempt, Status::kUnavailable, "no sentinel names the primary");
  EXPECT_EQ(attempt.take_knowledge().silent.size(), 3U);
}

TEST_F(PrimaryAttemptTest, a_survey_asks_every_sentinel) {
  settings_.sentinel.addresses = {kA, kC};
  SentinelSurvey survey(settings_, {}, now_);
  fails(survey, unreachable("sentinel a:1", "refused"));
  dialled(survey);
  reply(survey, hello("sentinel"));
  reply(survey, address(kB));
  reply(survey, MadeReply::list());
  reply(survey, MadeReply::list(text("quorum"), text("2"), text("num-other-sentinels"), text("1")));
  reply(survey, text("id"));
  expect_end(survey, Status::kOk, "");
  EXPECT_FALSE(survey.uses(Dialogue::kSentinel));
  ASSERT_EQ(survey.findings().size(), 3U);
  EXPECT_EQ(survey.findings()[0].seen,
            "1 of 2 sentinels answer: cannot reach sentinel a:1: refused");
}

}  // namespace
}  // namespace redlatch::driver
