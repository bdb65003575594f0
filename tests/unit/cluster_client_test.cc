// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: calls reach the node of their lock; redirects end, channels follow their nodes; listings,
// shutdown and missing memory are as with one server. Method: the client alone, made replies.
#include "cluster/cluster_client.h"

#include "cluster_world.h"

namespace redlatch {
namespace {

TEST_F(ClusterTest, a_request_before_the_slot_map_opens_no_node) {
  const std::string name = name_at('b');
  answers_map_ = false;
  const auto request = acquire(name);
  run();
  EXPECT_EQ(hosts_, "") << "no node is known";
  answers_map_ = true;
  run();
  EXPECT_EQ(hosts_, "b") << "only the node that is needed is opened";
  EXPECT_EQ(scripts('b'), "acquire");
  reply('b', granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(map_count_, 1);
}

TEST_F(ClusterTest, the_map_is_not_polled) {
  const auto lease = held(name_at('a'));
  for (int i = 0; i < 10; i++) {
    advance_to_command('a');
    reply('a', count(1));
  }
  EXPECT_EQ(map_count_, 1);
  EXPECT_EQ(hosts_, "a");
}

TEST_F(ClusterTest, connect_succeeds_when_the_slot_map_is_known) {
  const auto first = start(Request::Op::kConnect, "");
  EXPECT_EQ(first->status.load(), Status::kPending);
  run();
  EXPECT_EQ(first->status.load(), Status::kOk);
  EXPECT_EQ(start(Request::Op::kConnect, "")->status.load(), Status::kOk);
}

TEST_F(ClusterTest, a_name_whose_keys_have_different_slots_is_refused) {
  const auto request = acquire("a}b");
  EXPECT_TRUE(request->is_finished());
  EXPECT_NE(request->status.load(), Status::kOk);
  EXPECT_NE(request->message, "");
  EXPECT_EQ(hosts_, "");
}

TEST_F(ClusterTest, the_channel_of_a_node_is_in_one_of_its_slots) {
  for (const char host : {'a', 'b', 'c'}) {
    held(name_at(host));
    EXPECT_EQ(owner_of(channel_slot(host)), host);
  }
}

// ---- redirects that do not help -----------------------------------------------------------------

TEST_F(ClusterTest, more_than_five_redirects_in_a_second_wait) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto request = acquire(name);
  run();
  answers_map_ = false;
  char host = 'a';
  int count = 0;
  for (; count < 20 && scripts(host) == "acquire"; count++) {
    const char other = host == 'a' ? 'b' : 'a';
    reply(host, moved(slot_of(name), other));
    run();
    host = other;
  }
  EXPECT_EQ(count, 6) << "five are followed at once";
  EXPECT_EQ(scripts('a') + scripts('b'), "");
  advance_to_command(host, kSecond);
  EXPECT_EQ(scripts(host), "acquire");
  reply(host, granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
}

// Found by seed 1051 of cluster-clocks: a renewal waited as long as after eight redirects in a row,
// and its lease ended.
TEST_F(ClusterTest, commands_redirected_together_wait_no_longer_than_one) {
  const std::string tag = "{" + name_at('a') + "}";
  held(name_at('b'));
  std::vector<std::shared_ptr<Request>> requests;
  for (int i = 0; i < 8; i++) requests.push_back(acquire(tag + std::to_string(i)));
  run();
  answers_map_ = false;
  char host = owner_of(slot_of(tag + "0"));
  for (int count = 0; count < 20 && !scripts(host).empty(); count++) {
    const char other = host == 'a' ? 'b' : 'a';
    while (!sent_[host].empty()) reply(host, moved(slot_of(tag + "0"), other));
    run();
    host = other;
  }
  EXPECT_EQ(scripts('a') + scripts('b'), "");
  advance_to_command(host, 25 * kMs);
}

TEST_F(ClusterTest, endless_redirects_end_a_request_in_time) {
  settings_.connect_timeout = kSecond;
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto tried = acquire(name, 0);
  const auto waiting = acquire(name, 2000);
  const auto redirect_until = [&](Nanos end) {
    while (now_ < end) {
      for (const char host : {'a', 'b'}) {
        if (!sent_[host].empty()) reply(host, moved(slot_of(name), host == 'a' ? 'b' : 'a'));
      }
      advance(5 * kMs);
    }
  };
  const Nanos began = now_;
  redirect_until(began + 1900 * kMs);
  EXPECT_EQ(waiting->status.load(), Status::kPending);
  redirect_until(began + settings_.connect_timeout + settings_.command_timeout + 100 * kMs);
  for (const auto &request : {tried, waiting}) {
    EXPECT_EQ(request->status.load(), Status::kUnavailable) << request->message;
    EXPECT_NE(request->message.find("redirected"), std::string::npos) << request->message;
  }
}

TEST_F(ClusterTest, a_node_that_is_not_in_cluster_hosts_is_not_used) {
  settings_.cluster.allowed_hosts = "a,b";
  const std::string name = name_at('a');
  const auto lease = held(name);
  const auto request = acquire(name_at('c'), 0);
  advance(kSecond);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_NE(
      request->message.find("cluster_hosts must name all nodes of the cluster (got a node at "),
      std::string::npos)
      << request->message;
  give(slot_of(name), 'c');
  const auto forced = start(Request::What::ask<operate::Force>(), name);
  ASSERT_EQ(scripts('a'), "force_release");
  reply('a', moved(slot_of(name), 'c'));
  advance(kSecond);
  EXPECT_EQ(forced->status.load(), Status::kUnavailable) << forced->message;
  EXPECT_EQ(state(lease), Lease::kHeld) << "it may come back within its ttl";
  EXPECT_EQ(hosts_, "a");
  for (const HostPort &server : cluster().known_servers()) EXPECT_NE(server.host, "c");
  advance(60 * kSecond);
  EXPECT_EQ(state(lease), Lease::kLost);
}

// A broken node may name another address in each answer.
TEST(ClusterLimitsTest, endless_new_node_addresses_use_bounded_memory) {
  struct Counter : lock::Output {
    void send(size_t, std::span<const std::string_view>) override {}
    void finished(lock::Request &) override {}
    void lease_ended(lock::Lease &) override {}
    void drop_link(size_t) override {}
    void open_node(size_t, const Settings &) override { opened++; }
    int opened = 0;
  };
  Settings settings;
  settings.cluster.addresses = {{"a", "1"}};
  const std::array<uint8_t, 16> random{1, 2, 3};
  Counter output;
  cluster::ClusterClient client(settings, random, 7, output);
  const auto request = std::make_shared<lock::Request>(lock::Request::Op::kAcquire);
  request->name = "x";
  request->lease = std::make_shared<lock::Lease>();
  request->wait_ms = -1;
  client.start(request, kSecond);
  constexpr int kMost = 4096;  // kMaxNodes
  for (int i = 0; i < kMost + 500; i++) {
    const HostPort server{"h" + std::to_string(i), "1"};
    client.on_slots_read(std::vector<protocol::SlotRange>{{0, 16383, server}}, kSecond);
  }
  EXPECT_EQ(client.check(), nullptr);
  EXPECT_EQ(output.opened, kMost);
  EXPECT_EQ(request->status.load(), Status::kPending);
  const auto tried = std::make_shared<lock::Request>(lock::Request::Op::kAcquire);
  tried->name = "y";
  tried->lease = std::make_shared<lock::Lease>();
  tried->wait_ms = 0;
  client.start(tried, kSecond);
  client.on_slots_read(std::vector<protocol::SlotRange>{{0, 16383, {"more", "1"}}}, kSecond);
  EXPECT_EQ(tried->status.load(), Status::kUnavailable);
  EXPECT_NE(tried->message.find("4096 nodes"), std::string::npos) << tried->message;
}

TEST_F(ClusterTest, a_waiter_waits_until_its_slot_has_an_owner) {
  const std::string name = name_at('c');
  const auto all = ranges_;
  ranges_.pop_back();
  const auto tried = acquire(name, 0);
  const auto waiting = acquire(name);
  advance(kSecond);
  EXPECT_EQ(tried->status.load(), Status::kUnavailable);
  EXPECT_EQ(waiting->status.load(), Status::kPending);
  EXPECT_EQ(hosts_, "");
  ranges_ = all;
  advance_to_command('c', 10 * kSecond);
  ASSERT_EQ(scripts('c'), "acquire");
  reply('c', granted());
  EXPECT_EQ(waiting->status.load(), Status::kOk);
}

TEST_F(ClusterTest, an_unreachable_cluster_fails_a_try) {
  answers_map_ = false;
  const auto request = acquire(name_at('a'), 0);
  ASSERT_TRUE(cluster().begin_connect(0, now_));
  cluster().on_connect_failed(0, failure(Status::kUnavailable, "no node answers"), now_);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_EQ(request->message, "no node answers");
}

// ---- channels -----------------------------------------------------------------------------------

// Found by the simulation of clusters: the node that is asked for the map may not know of the move.
TEST_F(ClusterTest, a_redirected_channel_is_replaced_even_if_the_map_is_stale) {
  for (const bool is_map_stale : {false, true}) {
    start_again();
    channel_owner_ = 'b';
    const auto request = acquire(name_at('a', 3));
    run();
    const std::string channel = cluster().channel(node_of('a'));
    const uint16_t slot = channel_slot('a');
    if (!is_map_stale) give(slot, 'b');
    EXPECT_EQ(dropped_, "a") << "no message comes on this connection";
    channel_owner_ = 0;
    disconnect('a');
    advance(5 * kSecond);
    EXPECT_NE(cluster().channel(node_of('a')), channel);
    EXPECT_NE(channel_slot('a'), slot);
    EXPECT_EQ(owner_of(channel_slot('a')), 'a');
    EXPECT_EQ(dropped_, "") << "the stale map is no reason to drop it again";
  }
}

TEST_F(ClusterTest, a_refused_channel_does_not_make_the_client_read_the_map) {
  refuses_channels_ = true;
  const auto request = acquire(name_at('a', 3));
  run();
  reply('a', queued());
  advance(kSecond);
  EXPECT_EQ(map_count_, 1);
  EXPECT_EQ(dropped_, "");
}

TEST_F(ClusterTest, an_unsubscribed_channel_drops_the_connection) {
  held(name_at('a'));
  cluster().on_unsubscribed(node_of('a'), now_);
  EXPECT_EQ(dropped_, "a");
  disconnect('a');
  advance(kSecond);
  EXPECT_EQ(map_count_, 2) << "it may be no primary";
}

TEST_F(ClusterTest, a_channel_whose_slot_moves_is_replaced_after_a_reconnect) {
  const std::string name = name_at('a', 3);
  const auto request = acquire(name);
  run();
  const std::string token = argument(next('a'), 0), member = argument(next('a'), 2);
  reply('a', queued());
  const std::string channel = cluster().channel(node_of('a'));
  ASSERT_NE(channel_slot('a'), slot_of(name));
  give(channel_slot('a'), 'b');
  cluster().on_unsubscribed(node_of('a'), now_);
  EXPECT_EQ(cluster().channel(node_of('a')), channel) << "as long as it is connected";
  disconnect('a');
  for (int i = 0; i < 20 && scripts('a').empty(); i++) {
    advance(50 * kMs);
    if (!dropped_.empty()) disconnect('a');
  }
  EXPECT_NE(cluster().channel(node_of('a')), channel);
  EXPECT_EQ(owner_of(channel_slot('a')), 'a');
  ASSERT_EQ(scripts('a'), "acquire cancel");
  EXPECT_NE(argument(next('a'), 0), token);
  EXPECT_TRUE(cluster().channel(node_of('a')).ends_with(argument(next('a'), 0).substr(0, 22)));
  EXPECT_EQ(argument(next('a'), 3), kTicket);
  EXPECT_EQ(argument(sent_['a'][1], 0), member);
  reply('a', granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
}

// With plain channels a notice reaches a waiter whose node did not count it.
TEST_F(ClusterTest, a_notice_whose_receiver_was_not_counted_is_answered_at_once) {
  const auto request = acquire(name_at('a'));
  run();
  const std::string token = argument(next('a'), 0);
  reply('a', queued());
  cluster().on_push(node_of('a'), "n" + token.substr(22) + "03000", now_);
  advance(kMs);
  EXPECT_EQ(scripts('a'), "acquire");
  reply('a', granted());
  EXPECT_EQ(request->status.load(), Status::kOk);
}

// ---- all nodes ----------------------------------------------------------------------------------

TEST_F(ClusterTest, a_listing_asks_one_node_after_the_other) {
  auto request = std::make_shared<Request>(Request::What::ask<operate::List>());
  request->as<operate::List>().listing = std::make_shared<operate::Listing>();
  request->as<operate::List>().listing->pattern = "*";
  cluster().start(request, now_);
  run();
  const auto keys = [](const char *cursor, auto... names) {
    return MadeReply::list(MadeReply::text(cursor), MadeReply::list(MadeReply::text(names)...));
  };
  EXPECT_EQ(scripts('a'), "SCAN");
  EXPECT_EQ(hosts_, "a");
  reply('a', keys("7"));
  EXPECT_EQ(next('a').at(1), "7");
  reply('a', keys("0"));
  run();
  EXPECT_EQ(scripts('b'), "SCAN");
  EXPECT_EQ(next('b').at(1), "0");
  const std::string gone = settings_.name_space + name_at('b');
  const std::string left = settings_.name_space + name_at('b', 1);
  const std::string token = protocol::make_token(std::string(21, 'c') + "Q", 1);
  reply('b', keys("0", gone, "data", left, "far"));
  ASSERT_EQ(sent_['b'].size(), 4U) << "all at once";
  reply('b', MadeReply::text(token));
  reply('b', MadeReply::text(token + "x"));
  reply('b', MadeReply::text("rl:shared"));
  reply('b', moved(slot_of("far"), 'b'));
  ASSERT_EQ(scripts('b'), "inspect");
  reply('b', moved(slot_of(name_at('b', 1)), 'c'));
  ASSERT_EQ(scripts('b'), "inspect") << "a lock that has left the node is passed over";
  reply('b', inspected());
  run();
  EXPECT_EQ(scripts('c'), "SCAN");
  EXPECT_EQ(request->status.load(), Status::kPending);
  reply('c', keys("0"));
  EXPECT_EQ(request->status.load(), Status::kEnd) << request->message;
  EXPECT_EQ(scripts('a') + scripts('b') + scripts('c'), "");
}

TEST_F(ClusterTest, a_listing_keeps_no_more_than_a_million_keys) {
  auto request = std::make_shared<Request>(Request::What::ask<operate::List>());
  const auto listing = std::make_shared<operate::Listing>();
  request->as<operate::List>().listing = listing;
  for (int i = 0; i < 999'999; i++) listing->seen_keys.insert(std::to_string(i));
  cluster().start(request, now_);
  run();
  const std::string last = settings_.name_space + name_at('a');
  const std::string more = settings_.name_space + name_at('a', 1);
  const std::string token = protocol::make_token(std::string(21, 'c') + "Q", 1);
  for (const auto &[key, status] : {std::pair(last, Status::kPending), {more, Status::kServer}}) {
    ASSERT_EQ(scripts('a'), "SCAN");
    reply('a', MadeReply::list(MadeReply::text("7"), MadeReply::list(MadeReply::text(key))));
    reply('a', MadeReply::text(token));
    EXPECT_EQ(request->status.load(), status) << request->message;
    EXPECT_EQ(listing->seen_keys.size(), 1'000'000U);
    if (status == Status::kPending) reply('a', inspected());
  }
}

class CheckOnClusterTest : public ClusterTest {
 protected:
  // The questions of a check, and no script of its trial: their number does not matter here.
  void answer_all(char host) {
    EXPECT_FALSE(sent_[host].empty()) << host << " was asked nothing";
    while (!sent_[host].empty()) reply(host, MadeReply::error("ERR no"));
  }
  bool was_asked(char host, const Words &words) {
    const auto &sent = sent_[host];
    return std::find(sent.begin(), sent.end(), words) != sent.end();
  }
};

TEST_F(CheckOnClusterTest, all_primaries_are_asked_for_their_health) {
  const auto request = start(Request::Op::kCheck, "", 0);
  run();
  run();
  EXPECT_EQ(hosts_, "abc");
  for (const char host : {'a', 'b', 'c'}) {
    EXPECT_TRUE(was_asked(host, {"CLUSTER", "INFO"})) << host;
    EXPECT_EQ(request->status.load(), Status::kPending) << host;
    answer_all(host);
  }
  EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
  EXPECT_EQ(finished_count_, 1) << "callers see one request";
  EXPECT_EQ(start(Request::Op::kCheck, "", 0)->status.load(), Status::kPending);
}

TEST_F(CheckOnClusterTest, an_unreachable_primary_does_not_fail_the_check) {
  down_ = "b";
  const auto request = start(Request::Op::kCheck, "", -1);
  run();
  run();
  answer_all('a');
  answer_all('c');
  EXPECT_EQ(request->status.load(), Status::kPending);
  ASSERT_TRUE(cluster().begin_connect(node_of('b'), now_));
  cluster().on_connect_failed(node_of('b'), failure(Status::kUnavailable, "b is away"), now_);
  EXPECT_EQ(request->status.load(), Status::kOk) << "also without a limit of the wait";
}

TEST_F(CheckOnClusterTest, a_check_without_any_answer_fails_with_the_reason) {
  down_ = "abc";
  const auto request = start(Request::Op::kCheck, "", 0);
  run();
  for (const char host : {'a', 'b', 'c'}) {
    ASSERT_TRUE(cluster().begin_connect(node_of(host), now_));
    cluster().on_connect_failed(node_of(host), failure(Status::kUnavailable, "it is away"), now_);
  }
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_EQ(request->message, "it is away");
}

TEST_F(CheckOnClusterTest, a_check_is_cancelled_at_all_primaries) {
  const auto request = start(Request::Op::kCheck, "", 0);
  run();
  run();
  answer_all('a');
  EXPECT_EQ(cluster().cancel(*request, now_), Status::kCancelled);
  EXPECT_EQ(request->status.load(), Status::kCancelled);
  answer_all('b');
  EXPECT_EQ(finished_count_, 1);
}

TEST_F(CheckOnClusterTest, a_client_can_end_during_a_check_and_an_upgrade) {
  const auto reader = acquire(name_at('a'), protocol::Mode::kRead, protocol::Format::kString);
  run();
  reply('a', granted());
  const auto upgrade = std::make_shared<Request>(Request::Op::kUpgrade);
  upgrade->lease = reader->lease;
  cluster().start(upgrade, now_);
  start(Request::Op::kCheck, "", -1);
  cluster_.reset();
  EXPECT_EQ(upgrade->status.load(), Status::kLost) << upgrade->message;
}

TEST_F(ClusterTest, shutdown_releases_at_all_nodes) {
  const auto first = held(name_at('a')), second = held(name_at('b'));
  cluster().shut_down(now_);
  ASSERT_EQ(scripts('a'), "release");
  ASSERT_EQ(scripts('b'), "release");
  EXPECT_EQ(cluster().drained_count(), 1u) << "node 0";
  reply('a', count(1));
  EXPECT_EQ(cluster().drained_count(), 2u);
  reply('b', count(1));
  EXPECT_EQ(cluster().drained_count(), 3u);
  EXPECT_EQ(acquire(name_at('a'))->status.load(), Status::kClosed);
}

TEST_F(ClusterTest, shutdown_waits_for_an_unreachable_node) {
  const auto first = held(name_at('a')), second = held(name_at('b'));
  disconnect('a');
  cluster().shut_down(now_);
  reply('b', count(1));
  EXPECT_EQ(cluster().drained_count(), 2u) << "as with one server: it may be back at once";
  advance_to_command('a');
  ASSERT_EQ(scripts('a'), "release");
  reply('a', count(1));
  EXPECT_EQ(cluster().drained_count(), 3u);
}

TEST_F(ClusterTest, shutdown_releases_a_lease_whose_slot_moves) {
  const std::string name = name_at('a');
  held(name_at('b'));
  const auto lease = held(name);
  cluster().shut_down(now_);
  reply('b', count(1));
  ASSERT_EQ(scripts('a'), "release");
  reply('a', moved(slot_of(name), 'b'));
  advance_to_command('b', 2 * kSecond);
  ASSERT_EQ(scripts('b'), "release");
  EXPECT_EQ(argument(next('b'), 0), lease->token);
}

// ---- memory -------------------------------------------------------------------------------------

// As core/runtime: an event that ran out of memory drops the connection.
TEST_F(ClusterTest, out_of_memory_during_a_slot_move_loses_nothing) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    const auto truth = ranges_;
    start_again();
    const std::string name = name_at('a');
    held(name_at('b'));
    const auto lease = held(name);
    const auto waiting = acquire(name);
    ASSERT_EQ(scripts('a'), "acquire");
    give(slot_of(name), 'b');
    const MadeReply answer = moved(slot_of(name), 'b');
    sent_['a'].pop_front();
    bool has_thrown = false;
    allocation_countdown = nth;
    try {
      cluster().on_reply(node_of('a'), answer.get(), now_);
    } catch (const std::bad_alloc &) {
      has_thrown = true;
    }
    // What is planned is tried again later, without an exception.
    has_failed = std::exchange(allocation_countdown, 0) == 0;
    ASSERT_TRUE(has_failed || !has_thrown);
    if (has_thrown) disconnect('a');
    for (const char host : std::exchange(dropped_, {})) disconnect(host);
    std::string seen;
    for (int i = 0; i < 200 && seen.find("acquire") == std::string::npos; i++) {
      advance(20 * kMs);
      for (const char host : {'a', 'b'}) {
        while (!scripts(host).empty() && seen.find("acquire") == std::string::npos) {
          const std::string script = script_of(next(host));
          const bool is_of_move = next(host)[3] == settings_.name_space + name;
          if (is_of_move && host == 'a') {
            reply('a', moved(slot_of(name), 'b'));
            continue;
          }
          if (is_of_move) seen += script + " ";
          script == "acquire" ? reply(host, queued()) : reply(host, count(1));
        }
      }
    }
    EXPECT_NE(seen.find("acquire"), std::string::npos) << seen;
    EXPECT_EQ(state(lease), Lease::kHeld);
    EXPECT_EQ(waiting->status.load(), Status::kPending);
    EXPECT_EQ(ended_count_, 0);
    ranges_ = truth;
  }
  EXPECT_GE(nth, 10) << "a move allocates";
}

// ASKING counts for the next command: no other one may be behind it.
TEST_F(ClusterTest, out_of_memory_never_sends_asking_without_its_command) {
  int64_t nth = 1;
  bool has_asked = false;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    const std::string name = name_at('a');
    held(name_at('b'));
    const auto lease = held(name);
    extend(lease);
    reply('a', ask(slot_of(name), 'b'));
    ASSERT_EQ(scripts('a'), "extend");
    const MadeReply answer = ask(slot_of(name), 'b');
    sent_['a'].pop_front();
    bool has_thrown = false;
    allocation_countdown = nth;
    try {
      cluster().on_reply(node_of('a'), answer.get(), now_);
    } catch (const std::bad_alloc &) {
      has_thrown = true;
    }
    has_failed = std::exchange(allocation_countdown, 0) == 0;
    ASSERT_TRUE(has_failed || !has_thrown);
    if (has_thrown) disconnect('a');
    for (const char host : std::exchange(dropped_, {})) disconnect(host);
    // Until the client extends its own lock at `b`, or `b` has not answered ASKING.
    const auto is_extended = [&] {
      return std::any_of(sent_['b'].begin(), sent_['b'].end(), [&](const Words &words) {
        return words.size() > 3 && words[3] == settings_.name_space + name_at('b');
      });
    };
    for (int i = 0; i < 1'000 && !is_extended() && dropped_.find('b') == dropped_.npos; i++)
      advance(20 * kMs);
    ASSERT_FALSE(sent_['b'].empty());
    for (size_t i = 0; i < sent_['b'].size(); i++) {
      if (sent_['b'][i][0] != "ASKING") continue;
      has_asked = true;
      ASSERT_LT(i + 1, sent_['b'].size());
      EXPECT_EQ(sent_['b'][i + 1].at(3), settings_.name_space + name)
          << script_of(sent_['b'][i + 1]);
    }
    EXPECT_EQ(state(lease), Lease::kHeld);
  }
  EXPECT_TRUE(has_asked);
  EXPECT_GT(nth, 3);
}

}  // namespace
}  // namespace redlatch
