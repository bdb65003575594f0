// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a reader becomes the writer at most once for each caller, and nothing of an upgrade that
// was given up stays on the server. Method: the upgrade machine alone, with made events. After each
// of them its model is checked.
#include "lock/upgrade.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace redlatch::lock {
namespace {

using Command = Upgrade::Command;
using Transition = Upgrade::Transition;
using Step = Upgrade::Step;

constexpr Nanos kRollbackRetry = 1'000 * kMs;
constexpr bool kOneTry = true;

class UpgradeTest : public ::testing::Test {
 protected:
  // Does what the client does with a step: sends the command, if it can.
  Step take(Step step) {
    EXPECT_STREQ(upgrade_.check(), nullptr);
    last_ = step.transition;
    if (step.command == Command::kNone) return step;
    EXPECT_TRUE(ready_.is_up) << "a command without a connection";
    if (step.command == Command::kUpgrade && upgrade_.needs_member()) {
      upgrade_.set_member(upgrade_.is_one_try() ? "" : "member " + std::to_string(++member_count_));
    }
    if (has_memory_) {
      upgrade_.sent(step.command);
      in_flight_.push_back(step.command);
    } else {
      upgrade_.not_sent(step.command);
    }
    EXPECT_STREQ(upgrade_.check(), nullptr);
    return step;
  }
  Step start(bool is_one_try = false) { return take(upgrade_.start(is_one_try, now_, ready_)); }
  Step give_up() { return take(upgrade_.give_up(now_, ready_)); }
  Step resume() { return take(upgrade_.resume(now_, ready_)); }
  Step push() { return take(upgrade_.on_grant_pushed(now_, ready_)); }
  void end() {
    upgrade_.end();
    EXPECT_STREQ(upgrade_.check(), nullptr);
  }

  // ---- the server
  Command next() const { return in_flight_.empty() ? Command::kNone : in_flight_.front(); }
  void answer(Command expected) {
    ASSERT_EQ(next(), expected);
    in_flight_.pop_front();
    if (expected == Command::kUpgrade) return upgrade_.on_answered();
    upgrade_.on_rollback_answered();
  }
  // @return whether the answer to UPGRADE counts.
  bool answer_upgrade() {
    answer(Command::kUpgrade);
    return upgrade_.awaits_answer();
  }
  void grant() {
    ASSERT_TRUE(answer_upgrade());
    take(upgrade_.on_granted());
  }
  void queue(Nanos poll_in = 15'000 * kMs) {
    ASSERT_TRUE(answer_upgrade());
    take(upgrade_.on_queued("17", now_ + poll_in));
  }
  void answer_rollback(Command command, int64_t result) {
    answer(command);
    take(upgrade_.on_rolled_back(result, now_, ready_));
  }
  void disconnect() {
    ready_.is_up = false;
    while (!in_flight_.empty()) {
      const Step step = upgrade_.on_unanswered(in_flight_.front());
      last_ = step.transition;
      EXPECT_EQ(step.command, Command::kNone);
      in_flight_.pop_front();
      EXPECT_STREQ(upgrade_.check(), nullptr);
    }
  }
  void connect() {
    ready_.is_up = true;
    resume();
  }

  // ---- states that several tests begin with
  void start_queued() {
    start();
    queue();
    ASSERT_TRUE(upgrade_.is_queued());
  }
  void expect_idle() const {
    EXPECT_FALSE(upgrade_.is_wanted());
    EXPECT_FALSE(upgrade_.is_unanswered());
    EXPECT_EQ(upgrade_.due(), kNever);
    EXPECT_EQ(next(), Command::kNone);
  }

  Upgrade upgrade_;
  Upgrade::Readiness ready_{.is_up = true, .is_acquire_unanswered = false};
  Nanos now_ = 1'000 * kMs;
  bool has_memory_ = true;
  std::deque<Command> in_flight_;  // the server has not answered
  Transition last_ = Transition::kNone;
  int member_count_ = 0;
};

// ---- the way there

TEST_F(UpgradeTest, granted_answer_completes_the_upgrade) {
  EXPECT_EQ(start().command, Command::kUpgrade);
  grant();
  EXPECT_EQ(last_, Transition::kGranted);
  expect_idle();
}

TEST_F(UpgradeTest, upgrade_without_a_connection_waits_for_one) {
  ready_.is_up = false;
  EXPECT_EQ(start().command, Command::kNone);
  EXPECT_EQ(upgrade_.due(), kNever) << "a timer would not help";
  connect();
  EXPECT_EQ(next(), Command::kUpgrade);
}

TEST_F(UpgradeTest, upgrade_waits_for_the_answer_to_an_acquire_of_the_same_token) {
  ready_.is_acquire_unanswered = true;
  EXPECT_EQ(start().command, Command::kNone);
  push();
  EXPECT_EQ(upgrade_.due(), kNever) << "also after a message";
  ready_.is_acquire_unanswered = false;
  EXPECT_EQ(resume().command, Command::kUpgrade);
}

TEST_F(UpgradeTest, upgrade_that_ran_out_of_memory_is_retried_by_the_timer) {
  has_memory_ = false;
  start();
  EXPECT_EQ(upgrade_.due(), now_ + 20 * kMs);
  EXPECT_FALSE(upgrade_.is_unanswered());
  now_ = upgrade_.due();
  has_memory_ = true;
  EXPECT_EQ(resume().command, Command::kUpgrade);
  EXPECT_EQ(upgrade_.due(), kNever);
}

TEST_F(UpgradeTest, upgrade_that_was_never_sent_needs_no_rollback) {
  has_memory_ = false;
  start();
  has_memory_ = true;
  EXPECT_EQ(give_up().command, Command::kNone);
  expect_idle();
}

TEST_F(UpgradeTest, queued_upgrade_keeps_its_ticket_and_polls_at_the_given_time) {
  start();
  EXPECT_FALSE(upgrade_.is_queued());
  queue(5'000 * kMs);
  EXPECT_TRUE(upgrade_.is_queued());
  EXPECT_EQ(upgrade_.due(), now_ + 5'000 * kMs);
  const std::string member = upgrade_.member();
  now_ = upgrade_.due();
  EXPECT_EQ(resume().command, Command::kUpgrade);
  EXPECT_EQ(upgrade_.member(), member);
  EXPECT_EQ(upgrade_.ticket(), "17");
  EXPECT_FALSE(upgrade_.is_queued()) << "the answer to the poll may say otherwise";
  grant();
  EXPECT_EQ(upgrade_.ticket(), "");
}

TEST_F(UpgradeTest, pushed_grant_is_confirmed_by_an_immediate_poll) {
  start_queued();
  EXPECT_EQ(push().command, Command::kNone);
  EXPECT_EQ(last_, Transition::kNone) << "the message may be of an earlier upgrade";
  EXPECT_EQ(upgrade_.due(), now_);
}

TEST_F(UpgradeTest, pushed_grant_before_the_answer_causes_a_poll_after_it) {
  start();
  push();
  EXPECT_EQ(upgrade_.due(), kNever);
  queue();
  EXPECT_EQ(upgrade_.due(), now_);
}

TEST_F(UpgradeTest, hints_bring_a_poll_forward_and_never_put_it_off) {
  start_queued();
  upgrade_.on_hint(now_ + 250 * kMs);
  upgrade_.on_hint(now_ + 900 * kMs);
  EXPECT_EQ(upgrade_.due(), now_ + 250 * kMs);
  now_ = upgrade_.due();
  resume();
  upgrade_.on_hint(now_ + 70 * kMs);
  upgrade_.on_hint(now_ + 90 * kMs);
  EXPECT_EQ(upgrade_.due(), kNever) << "the answer comes first";
  queue();
  EXPECT_EQ(upgrade_.due(), now_ + 70 * kMs);
  now_ = upgrade_.due();
  resume();
  queue(3'000 * kMs);
  EXPECT_EQ(upgrade_.due(), now_ + 3'000 * kMs) << "a hint counts once";
}

TEST_F(UpgradeTest, unknown_script_repeats_the_upgrade_and_uses_up_a_hint) {
  start();
  upgrade_.on_hint(now_ + 70 * kMs);
  ASSERT_TRUE(answer_upgrade());
  EXPECT_EQ(resume().command, Command::kUpgrade) << "at once, so that the hint is served";
  queue();
  EXPECT_EQ(upgrade_.due(), now_ + 15'000 * kMs);
}

TEST_F(UpgradeTest, temporary_refusals_are_retried_with_growing_pauses) {
  start();
  Nanos before = 0;
  for (const Nanos most : {20, 40, 80, 160, 320, 500, 500}) {
    ASSERT_TRUE(answer_upgrade());
    take(upgrade_.on_postponed(now_, 0));
    const Nanos pause = upgrade_.due() - now_;
    EXPECT_GE(pause, most * kMs / 2);
    EXPECT_LE(pause, most * kMs);
    EXPECT_GE(pause, before);
    before = pause;
    now_ = upgrade_.due();
    EXPECT_EQ(resume().command, Command::kUpgrade);
  }
}

TEST_F(UpgradeTest, upgrade_with_a_lost_answer_is_repeated_with_the_same_member) {
  start();
  const std::string member = upgrade_.member();
  disconnect();
  EXPECT_EQ(last_, Transition::kNone);
  connect();
  EXPECT_EQ(next(), Command::kUpgrade);
  EXPECT_EQ(upgrade_.member(), member);
}

// ---- denied

TEST_F(UpgradeTest, denied_upgrade_needs_no_rollback) {
  for (const bool is_one_try : {true, false}) {
    start(is_one_try);
    ASSERT_TRUE(answer_upgrade());
    EXPECT_EQ(take(upgrade_.on_denied(now_, ready_)).command, Command::kNone);
    EXPECT_EQ(last_, Transition::kEnded);
    expect_idle();
  }
}

TEST_F(UpgradeTest, refused_upgrade_is_rolled_back) {
  start();
  ASSERT_TRUE(answer_upgrade());
  EXPECT_EQ(take(upgrade_.on_refused(now_, ready_)).command, Command::kCancel);
  EXPECT_EQ(last_, Transition::kEnded);
  answer_rollback(Command::kCancel, 0);
  expect_idle();
}

TEST_F(UpgradeTest, refused_try_is_downgraded_without_a_cancel) {
  start(kOneTry);
  EXPECT_EQ(upgrade_.member(), "");
  ASSERT_TRUE(answer_upgrade());
  EXPECT_EQ(take(upgrade_.on_refused(now_, ready_)).command, Command::kDowngrade);
}

TEST_F(UpgradeTest, unanswered_try_ends_and_is_rolled_back_on_the_next_connection) {
  start(kOneTry);
  disconnect();
  EXPECT_EQ(last_, Transition::kEnded);
  EXPECT_FALSE(upgrade_.is_wanted());
  connect();
  EXPECT_EQ(next(), Command::kDowngrade);
  answer_rollback(Command::kDowngrade, 1);
  expect_idle();
}

// ---- the way back

TEST_F(UpgradeTest, queued_upgrade_that_is_given_up_cancels_its_place) {
  start_queued();
  EXPECT_EQ(give_up().command, Command::kCancel);
  EXPECT_EQ(last_, Transition::kNone) << "the caller has its result already";
  EXPECT_FALSE(upgrade_.is_queued());
  answer_rollback(Command::kCancel, 1);
  expect_idle();
}

TEST_F(UpgradeTest, cancel_after_the_grant_is_followed_by_a_downgrade) {
  start_queued();
  give_up();
  answer_rollback(Command::kCancel, 2);
  EXPECT_EQ(next(), Command::kDowngrade);
  answer_rollback(Command::kDowngrade, 1);
  EXPECT_EQ(last_, Transition::kNone);
  expect_idle();
}

TEST_F(UpgradeTest, answer_to_an_upgrade_that_was_given_up_does_not_count) {
  start();
  EXPECT_EQ(give_up().command, Command::kCancel);
  EXPECT_FALSE(answer_upgrade());
  answer_rollback(Command::kCancel, 2);
  EXPECT_EQ(next(), Command::kDowngrade);
}

TEST_F(UpgradeTest, downgrade_of_an_unknown_token_is_a_loss) {
  start(kOneTry);
  give_up();
  EXPECT_FALSE(answer_upgrade());
  answer_rollback(Command::kDowngrade, 0);
  EXPECT_EQ(last_, Transition::kLost);
  end();
  expect_idle();
}

TEST_F(UpgradeTest, refused_rollback_is_repeated) {
  start_queued();
  give_up();
  now_ += 1'500 * kMs;
  answer(Command::kCancel);
  take(upgrade_.on_rollback_refused(now_));
  EXPECT_EQ(upgrade_.due(), now_ + kRollbackRetry);
  now_ = upgrade_.due();
  EXPECT_EQ(resume().command, Command::kCancel);
  EXPECT_EQ(resume().command, Command::kNone) << "once";
}

TEST_F(UpgradeTest, rollback_without_an_answer_is_repeated_on_each_connection) {
  start_queued();
  give_up();
  for (int i = 0; i < 3; i++) {
    disconnect();
    EXPECT_EQ(resume().command, Command::kNone);
    connect();
    ASSERT_EQ(next(), Command::kCancel);
  }
  answer_rollback(Command::kCancel, 2);
  disconnect();
  connect();
  EXPECT_EQ(next(), Command::kDowngrade);
}

TEST_F(UpgradeTest, next_upgrade_waits_until_the_one_before_is_rolled_back) {
  start_queued();
  const std::string member = upgrade_.member();
  give_up();
  EXPECT_EQ(start().command, Command::kNone);
  EXPECT_EQ(upgrade_.member(), member) << "CANCEL names it";
  answer_rollback(Command::kCancel, 2);
  answer_rollback(Command::kDowngrade, 1);
  EXPECT_EQ(next(), Command::kUpgrade);
  EXPECT_NE(upgrade_.member(), member);
  EXPECT_EQ(upgrade_.ticket(), "");
  grant();
  expect_idle();
}

TEST_F(UpgradeTest, upgrade_after_a_refused_rollback_repeats_the_rollback_first) {
  start_queued();
  give_up();
  answer(Command::kCancel);
  take(upgrade_.on_rollback_refused(now_));
  EXPECT_EQ(start().command, Command::kCancel);
  answer_rollback(Command::kCancel, 1);
  EXPECT_EQ(next(), Command::kUpgrade);
}

TEST_F(UpgradeTest, upgrade_given_up_before_it_is_sent_does_not_disturb_a_rollback) {
  start_queued();
  give_up();
  start(kOneTry);
  EXPECT_EQ(give_up().command, Command::kNone);
  answer_rollback(Command::kCancel, 1);
  expect_idle();
}

// ---- found by others

TEST_F(UpgradeTest, unexpected_grant_is_downgraded) {
  EXPECT_EQ(push().command, Command::kDowngrade);
  EXPECT_EQ(push().command, Command::kNone) << "once";
  answer_rollback(Command::kDowngrade, 1);
  expect_idle();
}

TEST_F(UpgradeTest, pushed_grant_during_a_cancel_is_left_to_the_answer_of_the_cancel) {
  start_queued();
  give_up();
  EXPECT_EQ(push().command, Command::kNone);
  answer_rollback(Command::kCancel, 1);
  expect_idle();
}

TEST_F(UpgradeTest, writer_found_by_an_extension_is_downgraded_unless_wanted) {
  EXPECT_EQ(take(upgrade_.on_found_writing(now_, ready_)).command, Command::kDowngrade);
  answer_rollback(Command::kDowngrade, 1);
  start_queued();
  EXPECT_EQ(take(upgrade_.on_found_writing(now_, ready_)).command, Command::kNone);
  EXPECT_NE(upgrade_.due(), kNever) << "the poll finds it out";
  give_up();
  EXPECT_EQ(take(upgrade_.on_found_writing(now_, ready_)).command, Command::kNone);
  answer_rollback(Command::kCancel, 1);
  expect_idle();
}

TEST_F(UpgradeTest, failed_downgrade_is_repeated_also_before_the_next_upgrade) {
  upgrade_.on_downgrade_failed();
  EXPECT_EQ(resume().command, Command::kDowngrade);
  EXPECT_EQ(start().command, Command::kNone);
  upgrade_.on_downgrade_failed();
  answer_rollback(Command::kDowngrade, 1);
  EXPECT_EQ(next(), Command::kUpgrade);
  upgrade_.on_downgrade_failed();
  EXPECT_EQ(resume().command, Command::kDowngrade);
  EXPECT_FALSE(answer_upgrade()) << "the DOWNGRADE behind it decides";
  answer_rollback(Command::kDowngrade, 1);
  EXPECT_EQ(next(), Command::kUpgrade) << "asked for again";
}

// ---- the end of the lease, and defects

TEST_F(UpgradeTest, end_of_the_lease_ends_upgrade_and_rollback) {
  start();
  end();
  EXPECT_FALSE(upgrade_.is_wanted());
  EXPECT_TRUE(upgrade_.is_unanswered()) << "the cleanup must know";
  EXPECT_EQ(resume().command, Command::kNone);
  EXPECT_FALSE(answer_upgrade());
  expect_idle();

  start_queued();
  give_up();
  end();
  answer(Command::kCancel);
  EXPECT_EQ(resume().command, Command::kNone);
  expect_idle();
}

TEST_F(UpgradeTest, next_lease_of_the_same_token_may_upgrade) {
  start_queued();
  end();
  start();
  grant();
  EXPECT_EQ(last_, Transition::kGranted);
}

TEST_F(UpgradeTest, event_in_the_wrong_state_is_a_defect_and_changes_nothing) {
  const std::vector<std::function<Step()>> answers{
      [&] { return upgrade_.on_granted(); },
      [&] { return upgrade_.on_queued("17", now_); },
      [&] { return upgrade_.on_denied(now_, ready_); },
      [&] { return upgrade_.on_refused(now_, ready_); },
      [&] { return upgrade_.on_postponed(now_, 0); },
  };
  const std::vector<std::function<void()>> places{
      [] {},                                   // not asked
      [&] { ready_.is_up = false, start(); },  // .. but wanted
      [&] { connect(), give_up(); },           // to be rolled back
  };
  for (const auto &go : places) {
    go();
    const Nanos due = upgrade_.due();
    for (const auto &answer : answers) {
      const Step step = answer();
      EXPECT_EQ(step.transition, Transition::kDefect);
      EXPECT_EQ(step.command, Command::kNone);
      EXPECT_STREQ(upgrade_.check(), nullptr);
      EXPECT_EQ(upgrade_.due(), due);
    }
  }
  EXPECT_EQ(start().transition, Transition::kNone);
  EXPECT_EQ(upgrade_.start(kOneTry, now_, ready_).transition, Transition::kDefect) << "twice";
  end();
  EXPECT_EQ(upgrade_.on_rolled_back(1, now_, ready_).transition, Transition::kDefect);
  EXPECT_EQ(upgrade_.on_rollback_refused(now_).transition, Transition::kDefect);
}

// A server with one other reader, which leaves now and then. Commands take effect or are lost with
// the connection, or their answers are.
class UpgradeWalk : public UpgradeTest {
 protected:
  enum class Token { kReads, kQueued, kWrites };

  int64_t carry_out(Command command) {
    const Token before = token_;
    if (command == Command::kUpgrade) {
      const bool is_free = token_ == Token::kQueued ? is_alone_ : is_alone_ && chance(90);
      if (token_ != Token::kWrites && is_free) token_ = Token::kWrites;
      if (token_ == Token::kReads && !upgrade_.is_one_try()) token_ = Token::kQueued;
      return token_ == Token::kWrites ? 1 : 0;
    }
    if (command == Command::kCancel) {
      if (token_ == Token::kQueued) token_ = Token::kReads;
      return before == Token::kWrites ? 2 : before == Token::kQueued ? 1 : 0;
    }
    token_ = Token::kReads;
    return 1;
  }
  void serve() {
    if (in_flight_.empty()) return;
    const Command command = in_flight_.front();
    const int64_t result = carry_out(command);
    if (chance(10)) return disconnect();
    answer(command);
    if (command != Command::kUpgrade) {
      if (chance(10)) return (void)take(upgrade_.on_rollback_refused(now_));
      return (void)take(upgrade_.on_rolled_back(result, now_, ready_));
    }
    if (!upgrade_.awaits_answer()) return;
    if (chance(10)) return (void)resume();  // with the text of the script
    if (result == 1) return (void)take(upgrade_.on_granted());
    if (upgrade_.is_one_try()) return (void)take(upgrade_.on_denied(now_, ready_));
    if (chance(10)) return (void)take(upgrade_.on_postponed(now_, random_()));
    take(upgrade_.on_queued("17", now_ + 100 * kMs));
  }
  void step() {
    now_ += static_cast<Nanos>(random_() % 40) * kMs;
    if (last_ == Transition::kGranted) writes_ = true;
    if (upgrade_.due() <= now_) resume();
    if (chance(10)) is_alone_ = !is_alone_;
    if (!upgrade_.is_wanted() && !writes_ && chance(20)) start(chance(30));
    if (upgrade_.is_wanted() && chance(10)) give_up();
    if (ready_.is_up && chance(3)) disconnect();
    if (!ready_.is_up && chance(30)) connect();
    if (token_ == Token::kQueued && is_alone_ && chance(20)) {
      token_ = Token::kWrites;
      if (!writes_ && chance(80)) push();
    }
    if (ready_.is_up && chance(10)) upgrade_.on_hint(now_ + 50 * kMs);
    if (ready_.is_up && chance(60)) serve();
    if (last_ == Transition::kGranted) writes_ = true;
    ASSERT_NE(last_, Transition::kDefect);
    if (!writes_ || !chance(10)) return;
    // The caller downgrades, and may not learn the result.
    writes_ = false;
    last_ = Transition::kNone;
    if (chance(50)) {
      token_ = Token::kReads;
    } else {
      upgrade_.on_downgrade_failed();
      resume();
    }
  }
  void calm() {
    if (!ready_.is_up) connect();
    if (upgrade_.is_wanted()) give_up();
    for (int i = 0; i < 20 && (!in_flight_.empty() || upgrade_.due() != kNever); i++) {
      if (!in_flight_.empty()) {
        const Command command = in_flight_.front();
        const int64_t result = carry_out(command);
        answer(command);
        if (command != Command::kUpgrade) take(upgrade_.on_rolled_back(result, now_, ready_));
      } else {
        now_ = upgrade_.due();
        resume();
      }
    }
  }
  bool chance(unsigned percent) { return random_() % 100 < percent; }

  std::mt19937 random_;
  Token token_ = Token::kReads;
  bool is_alone_ = false;
  bool writes_ = false;  // as the client believes
};

TEST_F(UpgradeWalk, random_events_leave_client_and_server_in_the_same_mode) {
  int grant_count = 0;
  for (unsigned seed = 1; seed <= 500 && !HasFailure(); seed++) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    upgrade_ = Upgrade();
    in_flight_.clear();
    token_ = Token::kReads;
    ready_.is_up = true;
    is_alone_ = writes_ = false;
    last_ = Transition::kNone;
    for (int i = 0; i < 200 && !HasFatalFailure(); i++) step();
    grant_count += writes_ ? 1 : 0;
    calm();
    ASSERT_STREQ(upgrade_.check(), nullptr);
    expect_idle();
    EXPECT_EQ(token_ == Token::kWrites, writes_) << "the client does not know what it has";
    EXPECT_NE(token_, Token::kQueued) << "left in the queue";
  }
  EXPECT_GT(grant_count, 20) << "the walk hardly ever got anywhere";
}

}  // namespace
}  // namespace redlatch::lock
