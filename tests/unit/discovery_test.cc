// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a discovery finds the primary whatever some sentinels say or do not say, believes no server
// that is none, ends within its time, and says what is wrong.
// Method: replies made by hand; check() after every step.
#include "sentinel/discovery.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lock_client_world.h"

namespace redlatch::sentinel {
namespace {

using Stage = Discovery::Stage;

constexpr Nanos kSecond = 1000 * kMs;
const HostPort kS1{"s1", "26379"}, kS2{"s2", "26379"}, kS3{"s3", "26379"};
const HostPort kA{"10.0.0.1", "6379"}, kB{"10.0.0.2", "6379"};

Outcome refusal() { return failure(Status::kUnavailable, "cannot reach it: Connection refused"); }

MadeReply hello(const char *mode = "sentinel") {
  return MadeReply::list(MadeReply::text("server"), MadeReply::text("redis"),
                         MadeReply::text("mode"), MadeReply::text(mode));
}
MadeReply address(const HostPort &primary) {
  return MadeReply::list(MadeReply::text(primary.host), MadeReply::text(primary.port));
}
MadeReply other(const HostPort &one) {
  return MadeReply::list(MadeReply::text("name"), MadeReply::text("x"), MadeReply::text("ip"),
                         MadeReply::text(one.host), MadeReply::text("port"),
                         MadeReply::text(one.port));
}
MadeReply master(int epoch) {
  return MadeReply::list(MadeReply::text("flags"), MadeReply::text("master"),
                         MadeReply::text("config-epoch"), MadeReply::text(std::to_string(epoch)));
}

Knowledge seen(int epoch, const HostPort &primary) {
  Knowledge known;
  known.epoch = epoch;
  known.primary = primary;
  return known;
}

class DiscoveryTest : public ::testing::Test {
 protected:
  DiscoveryTest() {
    settings_.sentinel.addresses = {kS1, kS2, kS3};
    settings_.sentinel.primary_name = "main";
    settings_.connect_timeout = 2 * kSecond;
    settings_.user = "app";
    settings_.password = "of-the-server";
  }

  void begin(Knowledge known = {}) {
    discovery_ = std::make_unique<Discovery>(settings_, std::move(known), now_);
  }
  void dialled() {
    ASSERT_EQ(discovery_->stage(), Stage::kDialling);
    discovery_->on_dialled([this](std::span<const std::string_view> argv) {
      std::string line;
      for (const std::string_view word : argv)
        line += (line.empty() ? "" : " ") + std::string(word);
      sent_.push_back(line);
    });
    ASSERT_STREQ(discovery_->check(), nullptr);
  }
  void reply(const MadeReply &reply) {
    discovery_->on_reply(reply.get(), now_ += kMs);
    ASSERT_STREQ(discovery_->check(), nullptr);
  }
  // The sentinel that is dialled names `primary`.
  void answer(const HostPort &primary, int epoch) {
    dialled();
    const HostPort me = asked();
    reply(hello());
    reply(address(primary));
    std::vector<HostPort> rest;
    for (const HostPort &one : {kS1, kS2, kS3}) {
      if (one != me) rest.push_back(one);
    }
    reply(MadeReply::list(other(rest[0]), other(rest[1])));
    reply(master(epoch));
  }
  void is_ignorant() {
    dialled();
    reply(hello());
    reply(MadeReply());
  }
  void fails(const Outcome &why = refusal(), Nanos later = kMs) {
    discovery_->on_failed(why, now_ += later);
    ASSERT_STREQ(discovery_->check(), nullptr);
  }
  void refute(const Outcome &why) {
    discovery_->on_refuted(why, now_ += kMs);
    ASSERT_STREQ(discovery_->check(), nullptr);
  }
  HostPort asked() const { return {discovery_->sentinel().host, discovery_->sentinel().port}; }
  bool names(const HostPort &primary) const {
    return discovery_->stage() == Stage::kNamed && discovery_->primary() == primary;
  }
  void expect_end(Status status, const std::string &text) const {
    ASSERT_TRUE(discovery_->is_over());
    EXPECT_EQ(discovery_->outcome().status, status) << discovery_->outcome().message;
    EXPECT_NE(discovery_->outcome().message.find(text), std::string::npos)
        << discovery_->outcome().message;
  }

  Settings settings_;
  Nanos now_ = 100 * kSecond;
  std::unique_ptr<Discovery> discovery_;
  std::vector<std::string> sent_;
};

TEST_F(DiscoveryTest, most_sentinels_are_enough) {
  begin();
  EXPECT_EQ(asked(), kS1);
  answer(kA, 3);
  EXPECT_EQ(asked(), kS2) << "one of three may be cut off from the others";
  answer(kA, 3);
  ASSERT_TRUE(names(kA));
  discovery_->on_confirmed();
  EXPECT_TRUE(discovery_->is_over() && discovery_->outcome().ok());
  EXPECT_EQ(discovery_->knowledge().epoch, 3);
  EXPECT_EQ(discovery_->knowledge().primary, kA);
}

TEST_F(DiscoveryTest, sentinels_never_get_the_password_of_the_server) {
  begin();
  dialled();
  for (const std::string &line : sent_) EXPECT_EQ(line.find("of-the-server"), line.npos) << line;
  EXPECT_EQ(sent_[0], "HELLO 3 SETNAME redlatch");
  EXPECT_EQ(sent_[1], "SENTINEL GET-MASTER-ADDR-BY-NAME main");
  settings_.sentinel.password = "of-sentinels";
  settings_.sentinel.user = "watcher";
  begin();
  sent_.clear();
  dialled();
  EXPECT_EQ(sent_[0], "HELLO 3 AUTH watcher of-sentinels SETNAME redlatch");
}

TEST_F(DiscoveryTest, a_single_answer_counts_if_the_other_sentinels_fail) {
  begin();
  fails();
  answer(kA, 3);
  fails();
  EXPECT_TRUE(names(kA));
}

TEST_F(DiscoveryTest, after_the_first_answer_the_other_sentinels_have_little_time) {
  begin();
  answer(kA, 3);
  EXPECT_EQ(asked(), kS2);
  EXPECT_LE(discovery_->limit() - now_, 100 * kMs);
  fails(refusal(), 100 * kMs);
  EXPECT_TRUE(names(kA)) << "the third sentinel has no time left";
}

TEST_F(DiscoveryTest, the_answer_with_the_highest_epoch_counts) {
  begin();
  answer(kA, 3);
  answer(kB, 4);
  EXPECT_EQ(asked(), kS3);
  fails();
  EXPECT_TRUE(names(kB));
}

TEST_F(DiscoveryTest, an_answer_with_an_older_epoch_is_not_believed) {
  begin(seen(4, kB));
  answer(kA, 3);
  fails();
  fails();
  expect_end(Status::kUnavailable, "behind: s1:26379 names 10.0.0.1:6379 in the epoch 3");
}

TEST_F(DiscoveryTest, epoch_zero_of_most_sentinels_is_believed) {
  begin(seen(4, kB));
  answer(kA, 0);
  answer(kA, 0);
  ASSERT_TRUE(names(kA));
  discovery_->on_confirmed();
  EXPECT_EQ(discovery_->knowledge().epoch, 0);
}

TEST_F(DiscoveryTest, sentinels_that_disagree_are_named) {
  begin();
  answer(kA, 3);
  answer(kB, 3);
  fails();
  expect_end(Status::kUnavailable, "disagree: s1:26379 names 10.0.0.1:6379, s2:26379 names");
}

TEST_F(DiscoveryTest, the_majority_counts_if_sentinels_disagree) {
  begin();
  answer(kA, 3);
  answer(kB, 3);
  answer(kB, 3);
  EXPECT_TRUE(names(kB));
}

TEST_F(DiscoveryTest, a_server_that_is_no_primary_is_not_believed) {
  begin();
  answer(kA, 3);
  answer(kA, 3);
  refute(failure(Status::kUnavailable, "redis://10.0.0.1:6379 is a replica"));
  ASSERT_EQ(asked(), kS3) << "the last one may know better";
  answer(kB, 4);
  ASSERT_TRUE(names(kB));
  refute(failure(Status::kUnavailable, "redis://10.0.0.2:6379 is a replica"));
  expect_end(Status::kUnavailable, "10.0.0.2:6379 is a replica (named by sentinel s3:26379)");
}

TEST_F(DiscoveryTest, a_wrong_password_of_the_server_is_final) {
  begin();
  answer(kA, 3);
  answer(kA, 3);
  refute(failure(Status::kDenied, "WRONGPASS"));
  expect_end(Status::kDenied, "WRONGPASS");
}

TEST_F(DiscoveryTest, a_name_unknown_to_most_sentinels_is_invalid) {
  begin();
  is_ignorant();
  is_ignorant();
  fails();
  expect_end(Status::kInvalid, "'main': no sentinel names the primary; not known to s1:26379, s2");
  EXPECT_NE(discovery_->outcome().message.find("Connection refused"), std::string::npos);
  begin();
  is_ignorant();
  fails();
  fails();
  expect_end(Status::kUnavailable, "not known to s1:26379");
}

TEST_F(DiscoveryTest, one_sentinel_that_knows_the_name_is_enough) {
  begin();
  is_ignorant();
  is_ignorant();
  answer(kA, 1);
  EXPECT_TRUE(names(kA));
}

TEST_F(DiscoveryTest, the_error_names_all_unreachable_sentinels) {
  begin();
  fails();
  fails();
  fails(failure(Status::kUnavailable, "no answer"));
  expect_end(Status::kUnavailable, "Connection refused; cannot reach it: Connection refused; no a");
}

TEST_F(DiscoveryTest, a_sentinel_that_refuses_the_login_is_an_error_of_type_denied) {
  settings_.sentinel.addresses = {kS1};
  for (const char *text : {"NOAUTH Authentication required.", "WRONGPASS invalid", "NOPERM this"}) {
    begin();
    dialled();
    reply(MadeReply::error(text));
    expect_end(Status::kDenied, "s1:26379 refused: ");
  }
}

TEST_F(DiscoveryTest, a_server_in_the_list_of_sentinels_is_invalid) {
  settings_.sentinel.addresses = {kS1};
  begin();
  dialled();
  reply(hello("standalone"));
  expect_end(Status::kInvalid, "s1:26379 is no sentinel but a server (mode standalone): its URL");
}

TEST_F(DiscoveryTest, the_time_is_divided_between_the_sentinels_and_the_server) {
  begin();
  const Nanos start = now_;
  EXPECT_EQ(discovery_->limit() - start, kSecond / 2);
  fails(refusal(), kSecond / 2);
  EXPECT_EQ(discovery_->limit() - now_, kSecond / 2);
  fails(refusal(), kSecond / 2);
  EXPECT_EQ(discovery_->limit() - now_, kSecond / 2);
  answer(kA, 1);
  ASSERT_TRUE(names(kA));
  EXPECT_EQ(discovery_->limit(), start + 2 * kSecond);
}

TEST_F(DiscoveryTest, discovery_ends_at_its_time_limit) {
  begin();
  fails(refusal(), 3 * kSecond);
  expect_end(Status::kUnavailable, "no sentinel names the primary");
  expect_end(Status::kUnavailable, "no time was left for s2:26379, s3:26379");
}

TEST_F(DiscoveryTest, discovery_learns_of_other_sentinels_and_asks_them) {
  settings_.sentinel.addresses = {kS1};
  begin();
  answer(kA, 3);
  EXPECT_EQ(asked(), kS2);
  answer(kA, 3);
  ASSERT_TRUE(names(kA));
  discovery_->on_confirmed();
  EXPECT_EQ(discovery_->knowledge().others, (std::vector<HostPort>{kS2, kS3}));
  begin(discovery_->knowledge());
  fails();
  EXPECT_EQ(asked(), kS2);
}

TEST_F(DiscoveryTest, a_silent_sentinel_is_asked_last) {
  begin();
  fails();
  answer(kA, 3);
  answer(kA, 3);
  discovery_->on_confirmed();
  begin(discovery_->knowledge());
  EXPECT_EQ(asked(), kS2);
  answer(kA, 3);
  fails();
  EXPECT_TRUE(names(kA)) << "s1 was silent, and there is an answer";
  discovery_->on_confirmed();
  begin(discovery_->knowledge());
  fails();
  EXPECT_EQ(asked(), kS1) << "now all are tried";
  fails();
  EXPECT_EQ(asked(), kS3);
  fails();
  EXPECT_TRUE(discovery_->is_over());
}

TEST_F(DiscoveryTest, a_primary_that_a_failover_replaced_is_not_believed) {
  Knowledge known = seen(3, kA);
  Opinion news;
  news.sentinel = kS2;
  news.primary = kB;
  news.is_switch = true;
  note_switch(known, news, 3, now_);
  begin(known);
  EXPECT_EQ(asked(), kS2) << "the sentinel that reported the switch is asked first";
  answer(kB, 4);
  answer(kA, 3);
  answer(kA, 3);
  EXPECT_TRUE(names(kB)) << "most sentinels are not yet informed";
  begin(known);
  fails();
  answer(kA, 3);
  answer(kA, 3);
  expect_end(Status::kUnavailable, "still names 10.0.0.1:6379, which is no longer the primary");
  begin(known);
  answer(kA, 5);
  answer(kA, 5);
  EXPECT_TRUE(names(kA)) << "it has become the primary again";
  now_ += 20 * kSecond;
  begin(known);
  answer(kA, 3);
  answer(kA, 3);
  EXPECT_TRUE(names(kA)) << "the switch was revoked";
  begin(known);
  answer(kA, 3);
  fails();
  fails();
  EXPECT_FALSE(names(kA)) << "that takes more than half";
}

TEST_F(DiscoveryTest, the_sentinel_that_reported_an_aborted_promotion_can_revoke_it) {
  Knowledge known = seen(3, kA);
  Opinion news;
  news.sentinel = kS2;
  news.primary = kB;
  news.is_switch = true;
  note_switch(known, news, 3, now_);
  begin(known);
  EXPECT_EQ(asked(), kS2);
  answer(kA, 3);
  EXPECT_FALSE(names(kA));
  answer(kA, 3);
  ASSERT_TRUE(names(kA));
  discovery_->on_confirmed();
  EXPECT_TRUE(discovery_->knowledge().left.host.empty());
}

TEST_F(DiscoveryTest, a_malformed_address_is_not_used) {
  settings_.sentinel.addresses = {kS1};
  begin();
  dialled();
  reply(hello());
  reply(MadeReply::list(MadeReply::text("host name"), MadeReply::text("6379")));
  expect_end(Status::kUnavailable, "named no address");
  begin();
  dialled();
  reply(hello());
  reply(address({"h", "65536"}));
  expect_end(Status::kUnavailable, "named no address");
}

TEST_F(DiscoveryTest, a_sentinel_without_a_readable_epoch_is_believed) {
  settings_.sentinel.addresses = {kS1};
  begin(seen(7, kA));
  dialled();
  reply(hello());
  reply(address(kB));
  reply(MadeReply::error("NOPERM"));
  reply(MadeReply::error("NOPERM"));
  ASSERT_TRUE(names(kB));
  discovery_->on_confirmed();
  EXPECT_EQ(discovery_->knowledge().epoch, 7);
}

}  // namespace
}  // namespace redlatch::sentinel
