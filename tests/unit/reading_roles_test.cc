// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: at most one thread leads and one follows, and no input is left without a thread that reads
// it. Method: the machine alone; every event in every state, and chains of events. After each of
// them its model is checked.
#include "runtime/reading_roles.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <random>
#include <vector>

#include "private_field.h"
#include "runtime/wakeup.h"

namespace redlatch {

REDLATCH_OPEN_FIELD(LeaderOf, runtime::ReadingRoles, leader_);
REDLATCH_OPEN_FIELD(FollowerOf, runtime::ReadingRoles, follower_);
REDLATCH_OPEN_FIELD(LeadOf, runtime::ReadingRoles, lead_);
REDLATCH_OPEN_FIELD(WatchOf, runtime::ReadingRoles, watch_);
REDLATCH_OPEN_FIELD(InputOf, runtime::ReadingRoles, input_);

namespace runtime {
namespace {

using Lead = ReadingRoles::Lead;
using Watch = ReadingRoles::Watch;
using Input = ReadingRoles::Input;
using Choice = ReadingRoles::Choice;
using Event = std::function<bool(ReadingRoles &)>;

Waiter waiter, other, background;

template <class State>
constexpr auto kCountOf = static_cast<size_t>(State::kCount);

// The next state for each state before; kCount: the event is refused.
template <class State>
struct Row {
  const char *name;
  Event event;
  std::array<State, kCountOf<State>> next;
};

ReadingRoles in(Lead lead) {
  ReadingRoles roles;
  set<LeadOf>(roles, lead);
  opened<LeaderOf>(roles) = lead == Lead::kFree ? nullptr : &waiter;
  return roles;
}

ReadingRoles in(Watch watch) {
  ReadingRoles roles;
  set<WatchOf>(roles, watch);
  const bool is_caller = watch == Watch::kCaller || watch == Watch::kCallerArmed;
  opened<FollowerOf>(roles) = watch == Watch::kNone ? nullptr : is_caller ? &other : &background;
  return roles;
}

ReadingRoles in(Input input) {
  ReadingRoles roles;
  set<InputOf>(roles, input);
  return roles;
}

Lead state_of(ReadingRoles &roles, Lead) { return opened<LeadOf>(roles); }
Watch state_of(ReadingRoles &roles, Watch) { return opened<WatchOf>(roles); }
Input state_of(ReadingRoles &roles, Input) { return opened<InputOf>(roles); }

template <class State>
void expect(const std::vector<Row<State>> &rows) {
  for (const auto &row : rows) {
    for (size_t i = 0; i < kCountOf<State>; i++) {
      const auto before = static_cast<State>(i);
      ReadingRoles roles = in(before);
      ASSERT_STREQ(roles.check(), nullptr);
      const bool is_allowed = row.next[i] != State::kCount;
      EXPECT_EQ(row.event(roles), is_allowed) << row.name << " in state " << i;
      EXPECT_EQ(state_of(roles, before), is_allowed ? row.next[i] : before)
          << row.name << " in state " << i;
      EXPECT_STREQ(roles.check(), nullptr) << row.name << " in state " << i;
    }
  }
}

TEST(ReadingRolesTest, each_event_of_the_leader_leads_to_its_state_or_is_refused) {
  constexpr auto kFree = Lead::kFree, kLed = Lead::kLed, kReading = Lead::kReading,
                 kWaiting = Lead::kWaiting, kNo = Lead::kCount;
  expect<Lead>({
      {"lead", [](auto &roles) { return roles.lead(waiter); }, {kLed, kLed, kNo, kNo}},
      {"lead of another", [](auto &roles) { return roles.lead(other); }, {kLed, kNo, kNo, kNo}},
      {"read", [](auto &roles) { return roles.read(); }, {kNo, kReading, kNo, kNo}},
      {"wait", [](auto &roles) { return roles.wait(); }, {kNo, kWaiting, kNo, kNo}},
      {"end_read", [](auto &roles) { return roles.end_read(); }, {kNo, kNo, kLed, kLed}},
      {"stop_leading",
       [](auto &roles) { return roles.stop_leading(waiter); },
       {kFree, kFree, kFree, kFree}},
      {"stop_leading of another",
       [](auto &roles) { return roles.stop_leading(other); },
       {kFree, kLed, kReading, kWaiting}},
  });
}

TEST(ReadingRolesTest, each_event_of_the_follower_leads_to_its_state_or_is_refused) {
  constexpr auto kNone = Watch::kNone, kCaller = Watch::kCaller, kCallerArmed = Watch::kCallerArmed,
                 kBackground = Watch::kBackground, kBackgroundArmed = Watch::kBackgroundArmed,
                 kNo = Watch::kCount;
  expect<Watch>({
      {"follow",
       [](auto &roles) { return roles.follow(waiter); },
       {kCaller, kNo, kNo, kCaller, kCaller}},
      {"follow_in_background",
       [](auto &roles) { return roles.follow_in_background(background); },
       {kBackground, kNo, kNo, kNo, kNo}},
      {"stop_following",
       [](auto &roles) { return roles.stop_following(); },
       {kNo, kNone, kNone, kNone, kNone}},
      {"arm",
       [](auto &roles) { return roles.arm(); },
       {kNo, kCallerArmed, kNo, kBackgroundArmed, kNo}},
      {"disarm",
       [](auto &roles) { return roles.disarm(); },
       {kNone, kCaller, kCaller, kBackground, kBackground}},
  });
}

TEST(ReadingRolesTest, each_event_of_input_leads_to_its_state_or_is_refused) {
  constexpr auto kNothing = Input::kNothing, kDrained = Input::kDrained, kDue = Input::kDue;
  expect<Input>({
      {"leave_unread", [](auto &roles) { return roles.leave_unread(); }, {kDue, kDue, kDue}},
      {"drain", [](auto &roles) { return roles.drain(); }, {kDrained, kDrained, kDue}},
      {"forget_drained",
       [](auto &roles) { return roles.forget_drained(); },
       {kNothing, kNothing, kDue}},
      {"end_due", [](auto &roles) { return roles.end_due(); }, {kNothing, kDrained, kNothing}},
  });
}

TEST(ReadingRolesTest, a_leader_that_waits_keeps_a_follower_from_being_armed) {
  ReadingRoles roles;
  EXPECT_TRUE(roles.follow(other));
  EXPECT_TRUE(roles.lead(waiter));
  EXPECT_TRUE(roles.wait());
  EXPECT_FALSE(roles.arm());
  EXPECT_TRUE(roles.end_read());
  EXPECT_TRUE(roles.stop_leading(waiter));
  EXPECT_TRUE(roles.arm());
  EXPECT_TRUE(roles.is_follower(other) && roles.is_armed() && !roles.is_led());
}

TEST(ReadingRolesTest, a_caller_follows_before_the_background_thread_does) {
  struct Case {
    Watch watch;
    bool is_caller_ready, is_background_needed;
    Choice choice;
  };
  constexpr Case kCases[] = {
      {Watch::kNone, false, false, Choice::kAsBefore},
      {Watch::kNone, false, true, Choice::kBackground},
      {Watch::kNone, true, false, Choice::kCaller},
      {Watch::kNone, true, true, Choice::kCaller},
      {Watch::kCaller, false, false, Choice::kAsBefore},
      {Watch::kCaller, false, true, Choice::kAsBefore},
      {Watch::kCaller, true, false, Choice::kAsBefore},
      {Watch::kCallerArmed, true, true, Choice::kAsBefore},
      {Watch::kBackground, false, false, Choice::kNone},
      {Watch::kBackground, false, true, Choice::kAsBefore},
      {Watch::kBackground, true, false, Choice::kCaller},
      {Watch::kBackgroundArmed, false, false, Choice::kNone},
      {Watch::kBackgroundArmed, false, true, Choice::kAsBefore},
      {Watch::kBackgroundArmed, true, true, Choice::kCaller},
  };
  for (const Case &one : kCases) {
    const ReadingRoles roles = in(one.watch);
    EXPECT_EQ(roles.next_follower(one.is_caller_ready, one.is_background_needed), one.choice);
  }
}

TEST(ReadingRolesTest, an_illegal_transition_that_is_planted_is_found) {
  ReadingRoles roles;
  set<LeadOf>(roles, Lead::kLed);
  EXPECT_STREQ(roles.check(), "the role of leader and the leader do not agree");
  roles = in(Lead::kLed);
  opened<LeaderOf>(roles) = nullptr;
  EXPECT_STREQ(roles.check(), "the role of leader and the leader do not agree");
  roles = in(Watch::kCaller);
  opened<FollowerOf>(roles) = nullptr;
  EXPECT_STREQ(roles.check(), "the role of follower and the follower do not agree");
  roles = in(Lead::kWaiting);
  EXPECT_TRUE(roles.follow(other));
  set<WatchOf>(roles, Watch::kCallerArmed);
  EXPECT_STREQ(roles.check(), "a follower is armed while a leader waits");
}

// The leader disarms the follower before it waits, as Roles does.
bool disarm_and_wait(ReadingRoles &roles) { return roles.disarm() && roles.wait(); }

TEST(ReadingRolesTest, no_chain_of_events_leads_to_an_illegal_state) {
  const std::vector<Event> events = {
      [](auto &roles) { return roles.lead(waiter); },
      [](auto &roles) { return roles.lead(other); },
      [](auto &roles) { return roles.read(); },
      disarm_and_wait,
      [](auto &roles) { return roles.end_read(); },
      [](auto &roles) { return roles.stop_leading(waiter); },
      [](auto &roles) { return roles.stop_leading(other); },
      [](auto &roles) { return roles.follow(waiter); },
      [](auto &roles) { return roles.follow_in_background(background); },
      [](auto &roles) { return roles.stop_following(); },
      [](auto &roles) { return roles.arm(); },
      [](auto &roles) { return roles.disarm(); },
      [](auto &roles) { return roles.leave_unread(); },
      [](auto &roles) { return roles.drain(); },
      [](auto &roles) { return roles.forget_drained(); },
      [](auto &roles) { return roles.end_due(); },
  };
  std::mt19937 random(1);
  ReadingRoles roles;
  size_t allowed_count = 0;
  for (int i = 0; i < 100'000; i++) {
    allowed_count += events[random() % events.size()](roles);
    ASSERT_STREQ(roles.check(), nullptr);
  }
  EXPECT_GT(allowed_count, 10'000u);
}

}  // namespace
}  // namespace runtime
}  // namespace redlatch
