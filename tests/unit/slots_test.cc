// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: slots, the slot table and redirections are read as the cluster specification says, and
// answers of hostile servers are refused. Method: plain values.
#include "protocol/slots.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lock_client_world.h"
#include "protocol/keys.h"
#include "protocol/token.h"

namespace redlatch::protocol {

namespace {

const HostPort kAsked{"10.0.0.9", "7000"};

MadeReply number(int64_t value) { return MadeReply::integer(value); }

MadeReply node(std::string host, int64_t port) {
  return MadeReply::list(MadeReply::text(std::move(host)), number(port), MadeReply::text("id"));
}

MadeReply range(int64_t first, int64_t last, int64_t port = 7001) {
  return MadeReply::list(number(first), number(last), node("10.0.0.1", port), node("replica", 1));
}

template <class... Ranges>
bool can_read(Ranges... ranges) {
  std::vector<SlotRange> found = {{1, 2, kAsked}};
  const MadeReply reply = MadeReply::list(std::move(ranges)...);
  const bool is_read = read_slots(reply.get(), kAsked, found);
  EXPECT_TRUE(is_read || found.size() == 1) << "a bad answer must change nothing";
  return is_read;
}

Redirect redirect_of(const std::string &text) {
  const MadeReply reply = MadeReply::error(text);
  return read_redirect(reply.get(), kAsked);
}

}  // namespace

TEST(SlotsTest, slots_of_keys_match_cluster_keyslot) {
  // As CLUSTER KEYSLOT of Redis 7.0 and Valkey 9 answers.
  EXPECT_EQ(slot_of("123456789"), 0x31c3) << "the check value of CRC16/XMODEM";
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("somekey"), 11058);
  EXPECT_EQ(slot_of("foo{hash_tag}"), 2515);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar")) << "an empty tag does not count";
  EXPECT_NE(slot_of("a{b"), slot_of("b"));
}

TEST(SlotsTest, all_keys_of_a_usable_name_share_a_slot) {
  for (const char *name_space : {"", "app:"}) {
    for (const char *name : {"a", "{a}", "b{a}c", "a{b", "{", "}{a}", "{a}}", "{a}{}", "{{a}", "a}",
                             "}", "{}", "a{}b", "{}{a}", "}{", "a}{b"}) {
      for (const Format format : kFormats) {
        const LockKeys keys(name_space, name, format);
        bool is_one_slot = true;
        const std::string reader = reader_key(keys, "t");
        std::vector<std::string_view> others = {keys.queue, keys.fence, keys.readers, keys.info,
                                                keys.turn};
        if (format == Format::kHashRw) others.emplace_back(reader);
        for (const std::string_view key : others) is_one_slot &= slot_of(key) == slot_of(keys.lock);
        EXPECT_EQ(check_cluster_name(name_space, name, format).ok(), is_one_slot)
            << name_space << name << " " << static_cast<int>(format);
      }
    }
  }
  EXPECT_EQ(check_cluster_name("", "a}", Format::kString).message,
            "name must have a hash tag such as '{a}', or be without '}', so that all keys of the "
            "lock share a slot of the cluster (got 'a}')");
}

TEST(SlotsTest, the_slot_table_is_read_in_order) {
  const MadeReply reply = MadeReply::list(
      range(101, 16383, 7002),
      MadeReply::list(number(0), number(99), MadeReply::list(MadeReply(), number(7003))),
      MadeReply::list(number(100), number(100), node("?", 65535)));
  std::vector<SlotRange> ranges;
  ASSERT_TRUE(read_slots(reply.get(), kAsked, ranges));
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].last, 99);
  EXPECT_EQ(ranges[0].primary, (HostPort{"10.0.0.9", "7003"})) << "nil is the node that was asked";
  EXPECT_EQ(ranges[1].first, 100);
  EXPECT_EQ(ranges[1].primary, (HostPort{"10.0.0.9", "65535"}));
  EXPECT_EQ(ranges[2].primary, (HostPort{"10.0.0.1", "7002"}));
  EXPECT_TRUE(ranges[2].contains(16383));
  EXPECT_FALSE(ranges[2].contains(100));
  EXPECT_TRUE(can_read()) << "no node has a slot";
}

TEST(SlotsTest, an_answer_that_is_no_slot_table_is_refused) {
  EXPECT_TRUE(can_read(range(0, 5), range(6, 6)));
  EXPECT_FALSE(can_read(range(0, 5), range(5, 6))) << "overlap";
  EXPECT_FALSE(can_read(range(6, 9), range(0, 16383)));
  EXPECT_FALSE(can_read(range(2, 1)));
  EXPECT_FALSE(can_read(range(-1, 1)));
  EXPECT_FALSE(can_read(range(0, 16384)));
  EXPECT_FALSE(can_read(range(0, INT64_MAX)));
  EXPECT_FALSE(can_read(range(0, 65536)));
  for (const int64_t port : {int64_t{0}, int64_t{-1}, int64_t{65536}, INT64_MAX}) {
    EXPECT_FALSE(can_read(range(0, 1, port))) << port;
  }
  EXPECT_FALSE(can_read(number(1)));
  EXPECT_FALSE(can_read(MadeReply::list(number(0), number(1))));
  EXPECT_FALSE(can_read(MadeReply::list(number(0), number(1), MadeReply::list())));
  EXPECT_FALSE(
      can_read(MadeReply::list(number(0), number(1), MadeReply::list(MadeReply::text("a")))));
  EXPECT_FALSE(
      can_read(MadeReply::list(MadeReply::text("0"), MadeReply::text("1"), node("10.0.0.1", 1))));
  for (const char *host : {"a b", "a\r\nb", "a/b", "u@h", "a,b", "[::1]"}) {
    EXPECT_FALSE(can_read(MadeReply::list(number(0), number(1), node(host, 1)))) << host;
  }
  EXPECT_FALSE(can_read(MadeReply::list(number(0), number(1), node(std::string(254, 'a'), 1))));
  std::vector<SlotRange> ranges;
  EXPECT_FALSE(read_slots(MadeReply().get(), kAsked, ranges));
  EXPECT_FALSE(read_slots(MadeReply::error("ERR This instance has cluster support disabled").get(),
                          kAsked, ranges));
}

TEST(SlotsTest, moved_and_ask_are_parsed) {
  const Redirect moved = redirect_of("MOVED 3999 127.0.0.1:6381");
  EXPECT_EQ(moved.kind, Redirect::Kind::kMoved);
  EXPECT_EQ(moved.slot, 3999);
  EXPECT_EQ(moved.to, (HostPort{"127.0.0.1", "6381"}));
  const Redirect ask = redirect_of("ASK 16383 ::1:7000");
  EXPECT_EQ(ask.kind, Redirect::Kind::kAsk);
  EXPECT_EQ(ask.to, (HostPort{"::1", "7000"}));
  EXPECT_EQ(redirect_of("MOVED 0 :7001").to, (HostPort{"10.0.0.9", "7001"}));
  EXPECT_EQ(redirect_of("MOVED 0 ?:7001").to, (HostPort{"10.0.0.9", "7001"}));
  EXPECT_EQ(redirect_of("MOVED 0 node-1.example:7001").to.host, "node-1.example");
  for (const char *text :
       {"MOVED",         "MOVED ",          "ASK 1",        "MOVED 1 ",        "MOVED 1 host",
        "MOVED 1 host:", "MOVED x h:1",     "MOVED -1 h:1", "MOVED 16384 h:1", "MOVED 65537 h:1",
        "MOVED 1 h:0",   "MOVED 1 h:65536", "MOVED 1 h:1x", "MOVED 1:2 h",     "MOVED 1 a b:1",
        "MOVED  1 h:1",  "ASKING 1 h:1",    "MOVEDX 1 h:1", "MOVED 1 a@b:1",   ""}) {
    EXPECT_EQ(redirect_of(text).kind, Redirect::Kind::kNone) << text;
  }
  EXPECT_EQ(read_redirect(MadeReply::text("MOVED 1 h:1").get(), kAsked).kind, Redirect::Kind::kNone)
      << "no error";
}

TEST(SlotsTest, other_cluster_errors_are_classified) {
  using Kind = Redirect::Kind;
  EXPECT_EQ(redirect_of("TRYAGAIN Multiple keys request during rehashing of slot").kind,
            Kind::kTryAgain);
  EXPECT_EQ(redirect_of("CLUSTERDOWN Hash slot not served").kind, Kind::kDown);
  EXPECT_EQ(redirect_of("MASTERDOWN Link with MASTER is down").kind, Kind::kDown);
  EXPECT_EQ(redirect_of("READONLY You can't write against a read only replica.").kind, Kind::kDown);
  EXPECT_EQ(redirect_of("LOADING Redis is loading the dataset in memory").kind, Kind::kDown);
  for (const char *text :
       {"ERR Script attempted to access a non local key in a cluster node script: 1, on "
        "@user_script:150.",
        "ERR Attempted to access a non local key in a cluster node",
        "ERR Error running script (call to f_1): @user_script:1: Lua script attempted to access a "
        "non local key in a cluster node"}) {
    EXPECT_EQ(redirect_of(text).kind, Kind::kNonLocal) << text;
  }
  EXPECT_EQ(redirect_of("ERR the fence key Attempted to access a non local key must be ..").kind,
            Kind::kNone);
  EXPECT_EQ(redirect_of("ERR The user executing the script can't publish to the channel").kind,
            Kind::kNone);
  EXPECT_EQ(redirect_of("NOPERM non local").kind, Kind::kNone);
}

TEST(SlotsTest, a_client_id_is_drawn_so_that_its_channel_is_in_given_slots) {
  std::array<uint8_t, 16> random{};
  std::set<std::string> seen;
  for (uint8_t i = 0; i < 20; i++) {
    random[i % 16] = static_cast<uint8_t>(i * 13 + 1);
    // One slot of all, and two ranges.
    const std::vector<std::vector<SlotRange>> owners = {
        {{static_cast<uint16_t>(i * 800), static_cast<uint16_t>(i * 800), kAsked}},
        {{0, 5, kAsked}, {9000, 9100, kAsked}}};
    for (const auto &own : owners) {
      const std::string cid = make_cid_within("app:rl1:", own, random);
      ASSERT_TRUE(is_token(make_token(cid, 1))) << cid;
      const uint16_t slot = slot_of("app:rl1:" + cid);
      EXPECT_TRUE(own.front().contains(slot) || own.back().contains(slot)) << slot;
      EXPECT_EQ(make_cid_within("app:rl1:", own, random), cid);
      seen.insert(cid);
    }
  }
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(make_cid_within("app:rl1:", {}, random), "");
}

}  // namespace redlatch::protocol
