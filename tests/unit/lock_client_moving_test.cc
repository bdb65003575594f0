// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: all locks of a slot move to another server, or, without memory, none. Method: a client with
// two servers.
#include <new>
#include <set>

#include "failing_memory.h"
#include "lock_client_world.h"

namespace redlatch {
namespace {

class MovingTest : public LockClientWorld {
 protected:
  MovingTest() {
    settings_.is_of_cluster = true;
    start_again();
  }
  void start_again(const ServerFacts &facts = {}) {
    client_ = make_client();
    const std::array<uint8_t, 16> random{9};
    other_ = &client_->add_server(settings_, random);
    sent_.clear();
    asked_names_.clear();
    connect(facts);
  }
  uint16_t slot() const { return protocol::slot_of(settings_.name_space + "lock"); }

  // A lease, a waiter and a question, whose slot is held back.
  struct Moving {
    std::shared_ptr<Lease> lease;
    std::shared_ptr<Request> waiting;
    std::string token;  // of the waiter
  };
  Moving start_moving() {
    start_again();
    Moving moving{held(), acquire(), argument(0)};
    reply_queued();
    client_->hold_back(slot());
    const auto inspected = std::make_shared<Request>(Request::What::ask<operate::Inspect>());
    inspected->name = "lock";
    client_->start(inspected, now_);
    return moving;
  }

  lock::Server &own() { return client_->at(0); }
  bool is_at_rest() const { return !client_->busy_slots().contains(slot()); }
  bool has_slot(const lock::Server &server) const {
    const auto slots = client_->slots();
    const auto found = slots.find(slot());
    return found != slots.end() && found->second == &server;
  }

  lock::Server *other_ = nullptr;
};

TEST_F(MovingTest, a_slot_is_at_rest_when_none_of_its_commands_is_under_way) {
  EXPECT_TRUE(is_at_rest());
  const auto request = acquire();
  EXPECT_FALSE(is_at_rest());
  client_->hold_back(slot());
  reply_queued();
  EXPECT_TRUE(is_at_rest());
  advance(60'000 * kMs);
  EXPECT_EQ(next_script(), "") << "nothing is sent about a slot that is held back";
  client_->resume({{slot(), &own()}}, now_);
  EXPECT_EQ(next_script(), "acquire");
}

TEST_F(MovingTest, a_command_of_an_ended_lease_is_under_way_until_its_answer) {
  const auto lease = held(with_lease(100 * kMs));
  const auto request = extend(lease, 200 * kMs);
  ASSERT_EQ(next_script(), "extend");
  now_ += 98 * kMs;
  client_->on_timer(now_);
  ASSERT_EQ(state(lease), Lease::kLost);
  while (next_script() == "extend") {
    EXPECT_FALSE(is_at_rest());
    EXPECT_TRUE(has_slot(own()));
    reply_count("extend", 1);
  }
  EXPECT_TRUE(is_at_rest());
}

// PUBLISH counts only the subscribers at the node of the lock, but reaches those at other nodes.
TEST_F(MovingTest, a_message_whose_receiver_was_not_counted_is_confirmed) {
  struct Case {
    const char *what;
    bool is_sharded, is_push_trusted, is_believed;
  };
  for (const Case &one : {
           Case{"a primary", true, true, true},
           Case{"plain channels", false, true, false},
           Case{"a proxy that counts wrongly", true, false, false},
       }) {
    SCOPED_TRACE(one.what);
    ServerFacts facts;
    facts.is_sharded = one.is_sharded;
    facts.is_push_trusted = one.is_push_trusted;
    start_again(facts);
    const auto request = acquire();
    const std::string token = argument(0);
    reply_queued();
    push_grant(token);
    EXPECT_EQ(request->status.load(), one.is_believed ? Status::kOk : Status::kPending);
    if (!one.is_believed) reply_granted();
    EXPECT_EQ(request->status.load(), Status::kOk);
  }
}

// Of a lock that no caller uses any more, which has no other place in the client.
TEST_F(MovingTest, a_queue_is_served_only_at_the_node_of_its_slot) {
  const auto request = acquire();
  reply_granted();
  const auto lease = request->lease;
  (void)release(lease);
  reply_count("release", 1, 1);
  ASSERT_EQ(next_script(), "serve_queue text");
  ASSERT_EQ(client_->slots().size(), 1u);
  ASSERT_TRUE(has_slot(own()));
  client_->hold_back(slot());
  reply_count("serve_queue text", 0, 1);
  EXPECT_EQ(next_script(), "") << "the map gives the slot to another node";
  EXPECT_TRUE(is_at_rest());
  EXPECT_TRUE(client_->slots().empty());
}

TEST_F(MovingTest, out_of_memory_moves_nothing) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    const auto [lease, waiting, token] = start_moving();
    const Nanos due = client_->next_due();
    has_failed = false;
    allocation_countdown = nth;
    try {
      client_->move({{slot(), other_}}, now_);
    } catch (const std::bad_alloc &) {
      has_failed = true;
    }
    allocation_countdown = 0;
    EXPECT_EQ(has_slot(own()), has_failed);
    EXPECT_EQ(has_slot(*other_), !has_failed);
    EXPECT_EQ(own().has_work(), has_failed);
    EXPECT_EQ(other_->has_work(), !has_failed);
    EXPECT_EQ(own().waiting_count > 0, has_failed);
    EXPECT_EQ(other_->waiting_count > 0, !has_failed);
    EXPECT_EQ(state(lease), Lease::kHeld);
    EXPECT_EQ(waiting->status.load(), Status::kPending);
    if (!has_failed) break;
    EXPECT_EQ(client_->next_due(), due);
    client_->resume({{slot(), &own()}}, now_);
    while (!sent_.empty() && next_script() != "acquire") reply_count(next_script(), 1);
    ASSERT_EQ(next_script(), "acquire");
    EXPECT_EQ(argument(0), token) << "the token has not changed";
  }
  EXPECT_GE(nth, 7) << "a move allocates";
}

// The slots are moved again then.
TEST_F(MovingTest, out_of_memory_resumes_later) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    const auto [lease, waiting, token] = start_moving();
    sent_.clear();
    asked_names_.clear();
    client_->move({{slot(), other_}}, now_);
    ASSERT_TRUE(client_->begin_connect(1, now_));
    client_->on_connected(1, {}, now_);
    bool has_thrown = false;
    allocation_countdown = nth;
    try {
      client_->resume({{slot(), other_}}, now_);
    } catch (const std::bad_alloc &) {
      has_thrown = true;
    }
    has_failed = allocation_countdown <= 0;
    allocation_countdown = 0;
    client_->on_disconnected(1, now_);
    if (has_thrown) {
      ASSERT_TRUE(is_at_rest());
      client_->move({{slot(), other_}}, now_);
      client_->resume({{slot(), other_}}, now_);
    }
    now_ += 1'000 * kMs;
    ASSERT_TRUE(client_->begin_connect(1, now_));
    sent_.clear();
    asked_names_.clear();
    client_->on_connected(1, {}, now_);
    EXPECT_TRUE(has_slot(*other_));
    EXPECT_EQ(state(lease), Lease::kHeld);
    EXPECT_EQ(waiting->status.load(), Status::kPending);
    EXPECT_EQ(client_->in_flight_count(1), 4u) << "ACQUIRE, CANCEL, EXTEND and the inspection";
  }
  EXPECT_GE(nth, 3) << "a command allocates";
}

TEST_F(MovingTest, a_lease_is_shortened_by_as_much_as_the_new_clock_is_ahead) {
  const auto lease = held();
  // The other clock is known from an answer.
  auto request = std::make_shared<Request>(Request::What::ask<operate::Force>());
  request->name = "another";
  client_->start(request, *other_, now_);
  ASSERT_TRUE(client_->begin_connect(1, now_));
  sent_.clear();
  asked_names_.clear();
  client_->on_connected(1, {}, now_);
  const auto answer = MadeReply::list(MadeReply::integer(1), MadeReply::integer(server_ms() + 4000),
                                      MadeReply::integer(0));
  client_->on_reply(1, answer.get(), now_);
  const Nanos before = lease->deadline;
  client_->hold_back(slot());
  ASSERT_TRUE(is_at_rest());
  client_->move({{slot(), other_}}, now_);
  EXPECT_LE(lease->deadline, before - 3'900 * kMs);
  EXPECT_GE(lease->deadline, before - 4'100 * kMs);
}

}  // namespace
}  // namespace redlatch
