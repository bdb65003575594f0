// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a lock follows its slot, and is kept while the slot is being moved. Method: the client of a
// cluster alone, with made replies.
#include <set>

#include "cluster_world.h"

namespace redlatch {
namespace {

// ---- moves --------------------------------------------------------------------------------------

TEST_F(ClusterTest, a_held_lease_moves_with_its_token) {
  const std::string name = name_at('a');
  const auto lease = held(name);
  advance_to_command('a');
  EXPECT_EQ(scripts('a'), "extend");
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "extend") << "at once";
  EXPECT_EQ(argument(next('b'), 0), lease->token);
  reply('b', count(1));
  EXPECT_EQ(state(lease), Lease::kHeld);
  const auto released = release(lease);
  ASSERT_EQ(scripts('b'), "release");
  EXPECT_EQ(argument(next('b'), 0), lease->token);
  reply('b', count(1));
  EXPECT_EQ(released->status.load(), Status::kOk);
  EXPECT_EQ(scripts('a'), "");
}

TEST_F(ClusterTest, a_lease_that_the_new_node_does_not_know_is_lost) {
  const std::string name = name_at('a');
  const auto lease = held(name);
  advance_to_command('a');
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "extend");
  reply('b', count(0));
  EXPECT_EQ(state(lease), Lease::kLost);
  EXPECT_EQ(ended_count_, 1);
  EXPECT_EQ(scripts('b').find("acquire"), std::string::npos) << "it is never made again";
}

TEST_F(ClusterTest, a_waiter_moves_with_its_ticket_and_never_uses_a_token_twice) {
  const std::string name = name_at('a');
  const auto request = acquire(name);
  run();
  std::set<std::string> tokens;
  EXPECT_TRUE(tokens.insert(argument(next('a'), 0)).second);
  std::string member = argument(next('a'), 2);
  reply('a', queued());
  char host = 'a';
  for (int i = 0; i < 4; i++) {
    SCOPED_TRACE("move " + std::to_string(i));
    const char other = host == 'a' ? 'b' : 'a';
    advance_to_command(host);
    ASSERT_EQ(scripts(host), "acquire");
    give(slot_of(name), other);
    reply(host, moved(slot_of(name), other));
    advance_to_command(other, kSecond);
    ASSERT_EQ(scripts(other), "acquire cancel") << "the lock is not granted to another in between";
    EXPECT_TRUE(tokens.insert(argument(next(other), 0)).second) << "a token is used twice";
    EXPECT_EQ(argument(next(other), 3), kTicket);
    EXPECT_EQ(argument(sent_[other][1], 0), member) << "the old place is given up";
    const std::string channel = cluster().channel(node_of(other));
    EXPECT_TRUE(channel.ends_with(argument(next(other), 0).substr(0, 22)))
        << "messages come on the channel of the new node";
    member = argument(next(other), 2);
    reply(other, queued());
    reply(other, count(1));
    EXPECT_EQ(scripts(host), "");
    host = other;
  }
  EXPECT_EQ(request->status.load(), Status::kPending);
  advance_to_command(host);
  reply(host, granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
}

// It may be a replica by then, whose grants nobody keeps. At the new node the waiters poll.
TEST_F(ClusterTest, a_queue_is_not_served_at_a_node_that_has_lost_the_slot) {
  const std::string name = name_at('a'), other = name_at('a', 1);
  const auto has_more = [&] {
    return MadeReply::list(MadeReply::integer(1), MadeReply::integer(server_ms()),
                           MadeReply::integer(1));
  };
  const auto lease = held(name);
  release(lease);
  start(Request::What::ask<operate::Force>(), other);
  ASSERT_EQ(scripts('a'), "release force_release");
  reply('a', has_more());
  ASSERT_EQ(scripts('a'), "force_release serve_queue");
  give(slot_of(name), 'b');
  give(slot_of(other), 'b');
  reply('a', moved(slot_of(other), 'b'));
  for (int i = 0; i < 100 && map_count_ < 2; i++) advance(10 * kMs);
  ASSERT_EQ(map_count_, 2);
  ASSERT_EQ(scripts('a'), "serve_queue");
  reply('a', has_more());
  run();
  EXPECT_EQ(scripts('a'), "");
}

// The node knows the script of CANCEL, and not that of ACQUIRE: the old place would end before the
// new one is there, and the lock could be granted to the next waiter in between.
TEST_F(ClusterTest, a_new_place_is_requested_before_the_old_one_is_cancelled) {
  const std::string name = name_at('a');
  const auto writer = acquire(name);
  const auto reader = acquire(name, protocol::Mode::kRead, protocol::Format::kString);
  run();
  ASSERT_EQ(scripts('a'), "acquire acquire_read");
  EXPECT_EQ(next('a')[0], "EVALSHA");
  for (int i = 0; i < 2; i++) reply('a', queued());
  give(slot_of(name), 'b');
  const auto forced = start(Request::What::ask<operate::Force>(), name);
  reply('a', moved(slot_of(name), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "acquire acquire_read cancel cancel force_release");
  for (int i = 0; i < 2; i++) EXPECT_EQ(sent_['b'][i][0], "EVAL") << "it knows what has its text";
  for (int i = 2; i < 5; i++) EXPECT_EQ(sent_['b'][i][0], "EVALSHA");
}

// The head once a second, those behind it less often: no report says that the slot has moved.
TEST_F(ClusterTest, a_waiter_polls_each_second_in_case_its_slot_has_moved) {
  const std::string name = name_at('a');
  const auto request = acquire(name);
  run();
  reply('a', queued());
  for (int i = 0; i < 5; i++) {
    const Nanos asked_at = now_;
    advance_to_command('a', 20 * kSecond);
    EXPECT_EQ(scripts('a'), "acquire");
    EXPECT_LE(now_ - asked_at, kSecond + 10 * kMs) << "long before the end of the holder's ttl";
    reply('a', queued());
  }
}

TEST_F(ClusterTest, callers_of_one_place_move_together) {
  const std::string name = name_at('a');
  const auto first = acquire(name);
  const auto second = acquire(name);
  run();
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "acquire") << "the old token was never queued";
  reply('b', granted());
  EXPECT_EQ(first->status.load(), Status::kOk);
  release(first->lease);
  EXPECT_EQ(second->status.load(), Status::kOk) << "handed off locally";
}

TEST_F(ClusterTest, a_redirected_try_is_sent_to_the_new_node) {
  const std::string name = name_at('a');
  const auto request = acquire(name, 0);
  run();
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "acquire");
  EXPECT_EQ(request->status.load(), Status::kPending);
  reply('b', granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(ClusterTest, redirected_requests_are_sent_to_the_new_node) {
  const std::string name = name_at('a');
  const auto forced = start(Request::What::ask<operate::Force>(), name);
  const auto inspected_ = start(Request::What::ask<operate::Inspect>(), name);
  run();
  ASSERT_EQ(scripts('a'), "force_release inspect");
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  EXPECT_EQ(hosts_, "a") << "a lock moves when no command about it is under way";
  reply('a', moved(slot_of(name), 'b'));
  run();
  ASSERT_EQ(scripts('b'), "force_release inspect");
  reply('b', count(1));
  reply('b', inspected());
  EXPECT_EQ(forced->status.load(), Status::kOk) << forced->message;
  EXPECT_EQ(inspected_->status.load(), Status::kOk) << inspected_->message;
}

// The text would otherwise be sent to the node that the slot has left.
TEST_F(ClusterTest, a_request_whose_script_is_unknown_moves_with_its_slot) {
  const std::string name = name_at('a');
  start(Request::What::ask<operate::Force>(), name);
  const auto looked_at = start(Request::What::ask<operate::Inspect>(), name);
  run();
  ASSERT_EQ(scripts('a'), "force_release inspect");
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  reply('a', MadeReply::error("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_EQ(scripts('a'), "");
  run();
  ASSERT_EQ(scripts('b'), "force_release inspect");
  reply('b', count(1));
  reply('b', inspected());
  EXPECT_EQ(looked_at->status.load(), Status::kOk) << looked_at->message;
}

TEST_F(ClusterTest, a_redirected_release_is_sent_to_the_new_node) {
  const std::string name = name_at('a');
  const auto lease = held(name);
  const auto released = release(lease);
  ASSERT_EQ(scripts('a'), "release");
  give(slot_of(name), 'b');
  reply('a', moved(slot_of(name), 'b'));
  advance_to_command('b', kSecond);
  ASSERT_EQ(scripts('b'), "release");
  EXPECT_EQ(argument(next('b'), 0), lease->token);
  reply('b', count(1));
  EXPECT_EQ(released->status.load(), Status::kOk);
}

TEST_F(ClusterTest, locks_in_slots_that_did_not_move_stay_at_their_node) {
  const std::string name = name_at('a'), other = name_at('a', 1);
  ASSERT_NE(slot_of(name), slot_of(other));
  const auto lease = held(name), kept = held(other);
  give(slot_of(name), 'b');
  const auto released = release(lease);
  reply('a', moved(slot_of(name), 'b'));
  advance_to_command('b', kSecond);
  EXPECT_EQ(scripts('b'), "release");
  release(kept);
  EXPECT_EQ(scripts('a'), "release");
}

TEST_F(ClusterTest, a_new_slot_map_moves_leases_that_were_not_redirected) {
  const std::string name = name_at('a'), other = name_at('a', 1);
  const auto lease = held(name), second = held(other);
  give(slot_of(name), 'b');
  give(slot_of(other), 'c');
  const auto released = release(lease);
  reply('a', moved(slot_of(name), 'b'));
  advance(100 * kMs);
  EXPECT_EQ(map_count_, 2);
  ASSERT_EQ(scripts('c'), "extend") << "the map named its new node";
  EXPECT_EQ(argument(next('c'), 0), second->token);
}

// ---- while a slot is being moved ----------------------------------------------------------------

TEST_F(ClusterTest, tryagain_repeats_release_force_release_and_inspect) {
  const std::string name = name_at('a');
  const auto lease = held(name);
  const auto released = release(lease);
  const auto forced = start(Request::What::ask<operate::Force>(), name);
  const auto inspected_ = start(Request::What::ask<operate::Inspect>(), name);
  ASSERT_EQ(scripts('a'), "release force_release inspect");
  for (int i = 0; i < 3; i++) reply('a', try_again());
  EXPECT_EQ(scripts('a'), "") << "not at once";
  std::multiset<std::string> seen;
  for (int i = 0; i < 3; i++) {
    advance_to_command('a', kSecond);
    const std::string script = script_of(next('a'));
    seen.insert(script);
    reply('a', script == "inspect" ? inspected() : count(1));
  }
  EXPECT_EQ(seen, (std::multiset<std::string>{"force_release", "inspect", "release"}));
  EXPECT_EQ(released->status.load(), Status::kOk);
  EXPECT_EQ(forced->status.load(), Status::kOk);
  EXPECT_EQ(inspected_->status.load(), Status::kOk);
}

TEST_F(ClusterTest, a_release_with_endless_tryagain_ends_with_the_command_timeout) {
  const auto lease = held(name_at('a'));
  const auto released = release(lease);
  const Nanos until = now_ + 2 * settings_.command_timeout;
  while (!released->is_finished() && now_ < until) {
    if (scripts('a') == "release") reply('a', try_again());
    advance(10 * kMs);
  }
  EXPECT_EQ(released->status.load(), Status::kOutcomeUnknown) << released->message;
}

TEST_F(ClusterTest, an_acquire_waits_while_its_slot_is_moved) {
  const std::string name = name_at('a');
  const auto request = acquire(name);
  run();
  for (int i = 0; i < 5; i++) {
    ASSERT_EQ(scripts('a'), "acquire");
    reply('a', try_again());
    EXPECT_EQ(scripts('a'), "");
    advance_to_command('a', 2 * kSecond);
  }
  reply('a', granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
}

TEST_F(ClusterTest, a_wait_that_runs_out_while_its_slot_is_moved_is_a_timeout) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto request = acquire(name, 700);
  run();
  for (int i = 0; i < 200 && !request->is_finished(); i++) {
    const bool is_first = i % 2 == 0;
    if (scripts('a') == "acquire") reply('a', is_first ? try_again() : ask(slot_of(name), 'b'));
    advance(10 * kMs);
  }
  EXPECT_EQ(request->status.load(), Status::kTimeout);
  EXPECT_EQ(request->message, "lock '" + name +
                                  "' was not granted within 0.7 s: the slot of the lock is being "
                                  "moved to another node of the cluster");
}

TEST_F(ClusterTest, a_timeout_does_not_name_a_refusal_from_before_the_queue) {
  const auto request = acquire(name_at('a'), 700);
  run();
  reply('a', try_again());
  advance_to_command('a', kSecond);
  reply('a', queued());
  advance(kSecond);
  EXPECT_EQ(request->status.load(), Status::kTimeout);
  EXPECT_EQ(request->message.find("slot"), std::string::npos) << request->message;
}

TEST_F(ClusterTest, one_try_while_its_slot_is_moved_is_unavailable) {
  const std::string name = name_at('a');
  const auto request = acquire(name, 0);
  run();
  reply('a', try_again());
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_EQ(request->message, "lock '" + name +
                                  "' cannot be acquired now: the slot of the lock is being moved "
                                  "to another node of the cluster");
}

TEST_F(ClusterTest, a_request_with_endless_tryagain_is_unavailable) {
  const auto request = start(Request::What::ask<operate::Force>(), name_at('a'));
  run();
  const Nanos until = now_ + 60 * kSecond;
  while (!request->is_finished() && now_ < until) {
    if (scripts('a') == "force_release") reply('a', try_again());
    advance(kMs);
  }
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_NE(request->message.find("does not serve the slot of lock"), std::string::npos)
      << request->message;
}

TEST_F(ClusterTest, an_extension_with_tryagain_uses_the_lock_key_alone_then_asking) {
  const std::string name = name_at('a');
  held(name_at('b'));  // so that node is connected
  const auto lease = held(name);
  for (int i = 0; i < 2; i++) {
    SCOPED_TRACE("extension " + std::to_string(i));
    const Nanos deadline = lease->deadline;
    while (scripts('a').empty() && now_ < deadline) {
      advance(50 * kMs);
      if (!scripts('b').empty()) reply('b', count(1));
    }
    ASSERT_EQ(scripts('a'), "extend") << "an ASK is not remembered";
    EXPECT_GT(key_count(next('a')), 1u);
    reply('a', try_again());
    ASSERT_EQ(scripts('a'), "extend") << "at once";
    EXPECT_EQ(key_count(next('a')), 1u);
    EXPECT_EQ(scripts('b'), "");
    reply('a', ask(slot_of(name), 'b'));
    ASSERT_EQ(scripts('b'), "ASKING extend");
    EXPECT_EQ(key_count(sent_['b'][1]), 1u);
    EXPECT_EQ(argument(sent_['b'][1], 0), lease->token);
    reply('b', MadeReply::text("OK"));
    reply('b', count(1));
    EXPECT_GT(lease->deadline, deadline);
    EXPECT_EQ(state(lease), Lease::kHeld);
  }
  EXPECT_EQ(map_count_, 1) << "the map stays";
}

// Some of its writes may have been carried out.
TEST_F(ClusterTest, a_script_that_stopped_halfway_has_an_unknown_outcome) {
  const std::string name = name_at('a');
  const auto tried = acquire(name, 0);
  run();
  reply('a', half_done());
  EXPECT_EQ(tried->status.load(), Status::kOutcomeUnknown) << tried->message;
  advance_to_command('a', 5 * kSecond);
  EXPECT_EQ(scripts('a'), "release") << "it may have the lock";
  reply('a', half_done());
  advance_to_command('a', 5 * kSecond);
  EXPECT_EQ(scripts('a'), "release") << "it is tried again";
}

TEST_F(ClusterTest, an_extension_that_stopped_halfway_is_retried) {
  const auto lease = held(name_at('a'));
  advance_to_command('a');
  ASSERT_EQ(scripts('a'), "extend");
  reply('a', half_done());
  EXPECT_EQ(state(lease), Lease::kHeld);
  advance_to_command('a', 5 * kSecond);
  EXPECT_EQ(scripts('a'), "extend") << "this finds out";
  reply('a', count(0));
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(ClusterTest, a_node_that_cannot_write_makes_the_client_read_the_map) {
  for (const char *text : {"READONLY You can't write against a read only replica.",
                           "LOADING Redis is loading the dataset in memory"}) {
    SCOPED_TRACE(text);
    start_again();
    map_count_ = 0;
    ranges_ = first_;
    const std::string name = name_at('a');
    const auto lease = held(name);
    advance_to_command('a');
    give(slot_of(name), 'b');
    reply('a', MadeReply::error(text));
    advance_to_command('b', 5 * kSecond);
    EXPECT_EQ(map_count_, 2);
    EXPECT_EQ(scripts('b'), "extend");
    EXPECT_EQ(state(lease), Lease::kHeld);
  }
}

class HashRwOnClusterTest : public ClusterTest {
 protected:
  // Its next extension has met TRYAGAIN: the part of the lock key is to be answered.
  std::shared_ptr<Lease> extending(protocol::Mode mode) {
    held(name_at('b'));  // so that node is connected
    const auto request = acquire(name_, mode, protocol::Format::kHashRw);
    run();
    reply('a', granted());
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    advance_while_b_confirms();
    EXPECT_EQ(scripts('a'), "extend_shared");
    deadline_ = request->lease->deadline;
    reply('a', try_again());
    EXPECT_EQ(scripts('a'), "extend_shared") << "at once";
    EXPECT_EQ(key_count(next('a')), 1u);
    EXPECT_EQ(argument(next('a'), 2), "k");
    return request->lease;
  }
  Words reader_key(const std::shared_ptr<Lease> &lease) const {
    const std::string key = "{" + settings_.name_space + name_ + "}:" + lease->token;
    return {"SET", key + ":rwlock_timeout:1", "1", "PX", "30000"};
  }

  const std::string name_ = name_at('a');
  Nanos deadline_ = 0;
};

TEST_F(HashRwOnClusterTest, a_reader_is_extended_in_three_parts) {
  const auto lease = extending(protocol::Mode::kRead);
  const Nanos sent_at = now_;
  advance(10 * kMs);
  reply('a', count(2));
  ASSERT_EQ(scripts('a'), "SET");
  EXPECT_EQ(next('a'), reader_key(lease));
  advance(10 * kMs);
  reply('a', MadeReply::text("OK"));
  EXPECT_EQ(lease->deadline, deadline_) << "the readers' key decides";
  ASSERT_EQ(scripts('a'), "extend_shared");
  EXPECT_EQ(key_count(next('a')), 1u);
  EXPECT_EQ(argument(next('a'), 2), "r");
  reply('a', count(2));
  EXPECT_GT(lease->deadline, deadline_);
  EXPECT_LT(lease->deadline, sent_at + 30 * kSecond) << "from the first part on";
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(HashRwOnClusterTest, each_part_is_sent_to_the_node_of_its_key) {
  const auto lease = extending(protocol::Mode::kRead);
  reply('a', count(2));
  reply('a', ask(slot_of(name_), 'b'));
  ASSERT_EQ(scripts('b'), "ASKING SET");
  EXPECT_EQ(sent_['b'][1], reader_key(lease));
  reply('b', MadeReply::text("OK"));
  reply('b', MadeReply::text("OK"));
  ASSERT_EQ(scripts('a'), "extend_shared") << "the next part is asked of the owner first";
  EXPECT_EQ(argument(next('a'), 2), "r");
  reply('a', ask(slot_of(name_), 'b'));
  ASSERT_EQ(scripts('b'), "ASKING extend_shared");
  reply('b', MadeReply::text("OK"));
  reply('b', count(2));
  EXPECT_GT(lease->deadline, deadline_);
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(HashRwOnClusterTest, a_writer_is_extended_with_the_lock_key_alone) {
  const auto lease = extending(protocol::Mode::kWrite);
  reply('a', count(1));
  EXPECT_EQ(scripts('a'), "");
  EXPECT_GT(lease->deadline, deadline_);
}

TEST_F(HashRwOnClusterTest, a_reader_missing_from_the_readers_key_is_lost) {
  const auto lease = extending(protocol::Mode::kRead);
  reply('a', count(2));
  reply('a', MadeReply::text("OK"));
  reply('a', count(0));
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(HashRwOnClusterTest, a_refused_part_is_tried_again_with_the_next_renewal) {
  const auto lease = extending(protocol::Mode::kRead);
  reply('a', count(2));
  reply('a', MadeReply::error("OOM command not allowed"));
  EXPECT_EQ(lease->deadline, deadline_);
  EXPECT_EQ(state(lease), Lease::kHeld);
  advance_to_command('a', 30 * kSecond);
  EXPECT_EQ(scripts('a'), "extend_shared");
}

TEST_F(HashRwOnClusterTest, an_extension_by_the_caller_has_three_parts) {
  const auto lease = extending(protocol::Mode::kRead);
  reply('a', count(2));
  reply('a', MadeReply::text("OK"));
  reply('a', count(2));
  const auto request = extend(lease, 25 * kSecond);
  ASSERT_EQ(scripts('a'), "extend_shared");
  reply('a', try_again());
  reply('a', count(2));
  ASSERT_EQ(scripts('a'), "SET");
  EXPECT_EQ(next('a')[4], "25000");
  reply('a', MadeReply::text("OK"));
  EXPECT_EQ(request->status.load(), Status::kPending);
  reply('a', count(2));
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
}

TEST_F(ClusterTest, a_lease_that_neither_node_of_a_moving_slot_has_is_lost) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto lease = held(name);
  advance_while_b_confirms();
  reply('a', ask(slot_of(name), 'b'));
  ASSERT_EQ(scripts('a'), "extend");
  reply('a', ask(slot_of(name), 'b'));
  ASSERT_EQ(scripts('b'), "ASKING extend");
  reply('b', MadeReply::text("OK"));
  reply('b', count(0));
  EXPECT_EQ(state(lease), Lease::kLost);
}

TEST_F(ClusterTest, an_extension_that_needs_asking_without_the_right_is_denied) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto lease = held(name);
  const auto request = extend(lease);
  reply('a', ask(slot_of(name), 'b'));
  reply('a', ask(slot_of(name), 'b'));
  ASSERT_EQ(scripts('b'), "ASKING extend");
  reply('b', MadeReply::error("NOPERM User a has no permissions to run the 'asking' command"));
  EXPECT_EQ(request->status.load(), Status::kDenied);
  EXPECT_NE(request->message.find("asking"), std::string::npos) << request->message;
  reply('b', MadeReply::error("MOVED " + std::to_string(slot_of(name)) + " a:6379"));
  EXPECT_EQ(state(lease), Lease::kHeld);
}

TEST_F(ClusterTest, a_disconnect_of_the_asked_node_leaves_the_lease_held) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto lease = held(name);
  advance_while_b_confirms();
  reply('a', try_again());
  reply('a', ask(slot_of(name), 'b'));
  ASSERT_EQ(scripts('b'), "ASKING extend");
  disconnect('b');
  EXPECT_EQ(state(lease), Lease::kHeld);
  advance_to_command('a', 5 * kSecond);
  ASSERT_EQ(scripts('a'), "extend") << "it is tried again";
  reply('a', count(1));
  EXPECT_EQ(state(lease), Lease::kHeld);
}

// Sent without a connection, the command would be answered by what belongs to the next one.
TEST_F(ClusterTest, a_script_unknown_to_the_asked_node_is_sent_after_a_reconnect) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto lease = held(name);
  const auto request = extend(lease, 60 * kSecond);
  reply('a', ask(slot_of(name), 'b'));
  reply('a', ask(slot_of(name), 'b'));
  ASSERT_EQ(scripts('b'), "ASKING extend");
  disconnect('a');
  reply('b', MadeReply::text("OK"));
  reply('b', MadeReply::error("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_EQ(scripts('a'), "");
  advance_to_command('a', 5 * kSecond);
  ASSERT_EQ(scripts('a'), "extend extend") << "for the lease, and for its caller";
  reply('a', count(1));
  reply('a', count(1));
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
}

}  // namespace
}  // namespace redlatch
