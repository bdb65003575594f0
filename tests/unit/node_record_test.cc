// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a log has changes only, and a status says what is known: why a server is away, and that its
// waiters poll.
// Method: outcomes and facts made by hand.
#include "driver/node_record.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace redlatch::driver {
namespace {

class NodeRecordTest : public ::testing::Test, private Log {
 protected:
  NodeRecordTest() { settings_.host = "h"; }
  void connect(const ServerFacts &facts = {}, bool is_only = true) {
    record_.on_connected(facts);
    record_.note_success(facts, is_only);
  }
  void fail(const std::string &why) { record_.note_failure(failure(Status::kUnavailable, why)); }
  static ServerFacts polled(const std::string &why) {
    ServerFacts facts;
    facts.is_push_trusted = false;
    facts.why_not_trusted = why;
    return facts;
  }

  Settings settings_;
  std::vector<std::string> lines_;
  NodeRecord record_{settings_, *this};

 private:
  void add(LogLevel, std::string_view text) noexcept override { lines_.emplace_back(text); }
};

TEST_F(NodeRecordTest, an_outage_is_one_line_and_its_end_another) {
  EXPECT_EQ(record_.status(false).state, NodeState::kUnknown);
  connect();
  EXPECT_TRUE(lines_.empty()) << lines_.front();
  EXPECT_EQ(record_.status(true).state, NodeState::kUp);
  EXPECT_EQ(record_.status(false).reason, "the connection has ended");
  for (const char *why : {"first", "second", "third"}) fail(why);
  EXPECT_EQ(lines_, std::vector<std::string>{"first"});
  EXPECT_EQ(record_.status(false).state, NodeState::kAway);
  EXPECT_EQ(record_.status(false).reason, "third");
  connect();
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_NE(lines_[1].find("again"), std::string::npos) << lines_[1];
  EXPECT_EQ(record_.status(true).state, NodeState::kUp);
}

TEST_F(NodeRecordTest, that_waiters_poll_is_logged_once_for_each_reason) {
  connect(polled("no right"));
  connect(polled("no right"));
  EXPECT_EQ(lines_.size(), 1u);
  EXPECT_EQ(record_.status(true).state, NodeState::kPolled);
  EXPECT_EQ(record_.status(true).reason, "no right");
  connect(polled("a proxy"));
  EXPECT_EQ(lines_.size(), 2u);
  connect();
  connect(polled("a proxy"));
  EXPECT_EQ(lines_.size(), 3u) << "it was trusted meanwhile";
}

TEST_F(NodeRecordTest, one_of_several_does_not_log_that_waiters_poll) {
  connect(polled("no right"), false);
  EXPECT_TRUE(lines_.empty()) << lines_.front();
}

TEST_F(NodeRecordTest, messages_have_the_channels_of_this_connection_at_once) {
  ServerFacts facts;
  facts.is_sharded = true;
  record_.on_connected(facts);
  EXPECT_TRUE(record_.facts().is_sharded);
  facts.is_sharded = false;
  record_.on_connected(facts);
  EXPECT_FALSE(record_.facts().is_sharded);
}

}  // namespace
}  // namespace redlatch::driver
