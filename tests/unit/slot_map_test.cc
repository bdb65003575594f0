// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the map says which server has a slot, servers keep their numbers, and the answers of a node
// about its cluster are read or refused. Method: plain values and made replies.
#include "cluster/slot_map.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "failing_memory.h"
#include "lock_client_world.h"
#include "protocol/cluster_info.h"

namespace redlatch::cluster {
namespace {

const HostPort kA{"a", "1"}, kB{"b", "2"}, kC{"c", "3"};
using Ranges = std::vector<protocol::SlotRange>;

TEST(SlotMapTest, a_new_map_has_no_owners) {
  const SlotMap map;
  EXPECT_EQ(map.owner(0), SlotMap::kNone);
  EXPECT_EQ(map.owner(16383), SlotMap::kNone);
  EXPECT_EQ(map.server_count(), 0u);
}

TEST(SlotMapTest, both_ends_of_a_range_belong_to_it) {
  SlotMap map;
  map.replace(Ranges{{0, 100, kA}, {102, 16383, kB}});
  EXPECT_EQ(map.server(map.owner(0)), kA);
  EXPECT_EQ(map.server(map.owner(100)), kA);
  EXPECT_EQ(map.owner(101), SlotMap::kNone) << "a slot without an owner";
  EXPECT_EQ(map.server(map.owner(102)), kB);
  EXPECT_EQ(map.server(map.owner(16383)), kB);
}

TEST(SlotMapTest, a_server_keeps_its_number) {
  SlotMap map;
  map.replace(Ranges{{0, 8000, kA}, {8001, 16383, kB}});
  const uint16_t a = map.owner(0), b = map.owner(16383);
  map.replace(Ranges{{0, 16383, kC}});
  EXPECT_FALSE(map.is_primary(a));
  EXPECT_FALSE(map.is_primary(b));
  map.replace(Ranges{{0, 8000, kB}, {8001, 16383, kA}});
  EXPECT_EQ(map.owner(0), b);
  EXPECT_EQ(map.owner(16383), a);
  EXPECT_TRUE(map.is_primary(a));
  EXPECT_EQ(map.server_count(), 3u);
}

TEST(SlotMapTest, a_server_is_a_primary_while_it_has_a_slot) {
  SlotMap map;
  map.replace(Ranges{{0, 1, kA}, {2, 16383, kB}});
  const uint16_t a = map.owner(0), b = map.owner(2);
  map.set(0, kB);
  EXPECT_TRUE(map.is_primary(a));
  map.set(1, kB);
  EXPECT_FALSE(map.is_primary(a));
  map.set(1, kA);
  EXPECT_TRUE(map.is_primary(a));
  map.replace(Ranges{{0, 7, kC}});
  EXPECT_FALSE(map.is_primary(a));
  EXPECT_FALSE(map.is_primary(b));
}

TEST(SlotMapTest, servers_beyond_the_limit_get_no_slot) {
  SlotMap map;
  map.replace(Ranges{{0, 16383, kA}});
  for (size_t i = 0; i < 2 * SlotMap::kMaxServers; i++) map.set(7, {"h" + std::to_string(i), "1"});
  EXPECT_EQ(map.server_count(), SlotMap::kMaxServers);
  EXPECT_EQ(map.owner(7), SlotMap::kNone);
  map.replace(Ranges{{0, 7, kB}, {8, 16383, kA}});
  EXPECT_EQ(map.owner(0), SlotMap::kNone);
  EXPECT_EQ(map.server(map.owner(8)), kA) << "one that is known";
}

TEST(SlotMapTest, setting_one_slot_leaves_its_neighbours) {
  SlotMap map;
  map.replace(Ranges{{0, 16383, kA}});
  map.set(7, kB);
  EXPECT_EQ(map.server(map.owner(6)), kA);
  EXPECT_EQ(map.server(map.owner(7)), kB);
  EXPECT_EQ(map.server(map.owner(8)), kA);
  const auto ranges = map.ranges_of(map.owner(6));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].last, 6);
  EXPECT_EQ(ranges[1].first, 8);
  EXPECT_EQ(ranges[1].last, 16383);
  EXPECT_EQ(ranges[1].primary, kA);
}

TEST(SlotMapTest, out_of_memory_changes_no_slot) {
  const Ranges next = {{0, 8000, kB}, {8001, 16383, kC}};
  int64_t nth = 1;
  for (bool has_failed = true; has_failed; nth++) {
    SlotMap map;
    map.replace(Ranges{{0, 16383, kA}});
    has_failed = false;
    allocation_countdown = nth;
    try {
      map.replace(next);
    } catch (const std::bad_alloc &) {
      has_failed = true;
    }
    allocation_countdown = 0;
    const HostPort &owner = map.server(map.owner(0));
    EXPECT_EQ(owner, has_failed ? kA : kB) << "allocation " << nth;
    EXPECT_EQ(map.server(map.owner(16383)), has_failed ? kA : kC) << "allocation " << nth;
  }
  EXPECT_GE(nth, 3) << "a table and the servers are allocated";
}

// ---- what a node says about its cluster ---------------------------------------------------------

Outcome read(const MadeReply &info, const MadeReply &slots, Ranges &ranges) {
  return protocol::read_cluster(protocol::is_cut_off(info.get()), slots.get(), kA, ranges);
}

MadeReply info(const std::string &state) {
  return MadeReply::text("cluster_state:" + state + "\r\ncluster_slots_assigned:16384\r\n");
}

MadeReply all_slots() {
  auto server = MadeReply::list(MadeReply::text("b"), MadeReply::integer(2), MadeReply::text("id"));
  return MadeReply::list(
      MadeReply::list(MadeReply::integer(0), MadeReply::integer(16383), std::move(server)));
}

TEST(ClusterInfoTest, a_slot_query_is_cluster_info_and_cluster_slots) {
  std::vector<std::string> asked;
  protocol::ask_slots([&](std::span<const std::string_view> argv) {
    ASSERT_EQ(argv.size(), 2u);
    asked.push_back(std::string(argv[0]) + " " + std::string(argv[1]));
  });
  EXPECT_EQ(asked, (std::vector<std::string>{"CLUSTER INFO", "CLUSTER SLOTS"}));
  EXPECT_EQ(asked.size(), protocol::kSlotQuestions);
}

TEST(ClusterInfoTest, slots_are_read) {
  Ranges ranges;
  EXPECT_TRUE(read(info("ok"), all_slots(), ranges).ok());
  ASSERT_EQ(ranges.size(), 1u);
  EXPECT_EQ(ranges[0].last, 16383);
  EXPECT_EQ(ranges[0].primary, kB);
}

TEST(ClusterInfoTest, a_user_without_the_right_to_cluster_info_reads_the_slots) {
  Ranges ranges;
  const auto refused = MadeReply::error("NOPERM this user has no permissions");
  EXPECT_TRUE(read(refused, all_slots(), ranges).ok());
  EXPECT_EQ(ranges.size(), 1u);
}

TEST(ClusterInfoTest, a_malformed_answer_is_refused) {
  Ranges ranges;
  const auto outcome = read(info("ok"), MadeReply::text("hello"), ranges);
  EXPECT_EQ(outcome.status, Status::kServer);
  EXPECT_EQ(outcome.message, "a:1: the answer to CLUSTER SLOTS is malformed");
}

TEST(ClusterInfoTest, slots_of_a_cluster_that_is_down_are_refused) {
  Ranges ranges;
  for (const bool is_empty : {false, true}) {
    const auto slots = is_empty ? MadeReply::list() : all_slots();
    const auto outcome = read(info(is_empty ? "ok" : "fail"), slots, ranges);
    EXPECT_EQ(outcome.status, Status::kUnavailable);
    EXPECT_EQ(outcome.message, "a:1: the cluster is down, says this node (CLUSTER INFO)");
  }
}

TEST(ClusterInfoTest, a_server_without_cluster_mode_is_unsupported) {
  Ranges ranges;
  const auto refused = MadeReply::error("ERR This instance has cluster support disabled");
  const auto outcome = read(refused, refused, ranges);
  EXPECT_EQ(outcome.status, Status::kUnsupported);
  EXPECT_EQ(outcome.message, "a:1 is not in cluster mode: its URL must be redis://a:1");
}

TEST(ClusterInfoTest, another_refusal_keeps_the_words_of_the_server) {
  Ranges ranges;
  const auto denied = MadeReply::error("NOPERM no permissions to run 'cluster|slots'");
  const auto outcome = read(denied, denied, ranges);
  EXPECT_EQ(outcome.status, Status::kDenied);
  EXPECT_NE(outcome.message.find("a:1: "), std::string::npos);
}

}  // namespace
}  // namespace redlatch::cluster
