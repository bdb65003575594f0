// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: URLs of clusters and the options for them. Method: texts in, settings and messages out.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/options.h"

namespace redlatch::config {

namespace {

Settings parsed(const std::string &url) {
  Settings settings;
  const auto outcome = Options().resolve(url, settings);
  EXPECT_TRUE(outcome.ok()) << url << ": " << outcome.message;
  return settings;
}

}  // namespace

TEST(ClusterOptionsTest, cluster_urls_give_nodes) {
  const Settings one = parsed("redis+cluster://us:pw@a:1,b,[::1]:3/0?cluster_hosts=a%2C::1");
  EXPECT_TRUE(one.is_cluster());
  EXPECT_EQ(one.cluster.addresses,
            (std::vector<HostPort>{{"a", "1"}, {"b", "6379"}, {"::1", "3"}}));
  EXPECT_EQ(one.user + std::string(one.password), "uspw");
  EXPECT_EQ(one.address(), "redis+cluster://a:1,b:6379,[::1]:3");
  EXPECT_EQ(one.shown_url, "redis+cluster://us:***@a:1,b,[::1]:3/0?cluster_hosts=a%2C::1");
  EXPECT_TRUE(one.cluster.allows("a") && one.cluster.allows("::1"));
  EXPECT_FALSE(one.cluster.allows("") || one.cluster.allows("b") || one.cluster.allows("a,::1"));
  EXPECT_TRUE(parsed("redis+cluster://h").cluster.allows("any"));
  for (const char *url : {"rediss+cluster://h", "valkeys+cluster://h/"}) {
    EXPECT_TRUE(parsed(url).tls.is_on) << url;
  }
  EXPECT_FALSE(parsed("valkey+cluster://h").tls.is_on);
  EXPECT_FALSE(parsed("redis://h").is_cluster());
  const Settings node = parsed("rediss+cluster://us:pw@a").of_node({"10.0.0.7", "7000"});
  EXPECT_EQ(node.address(), "rediss://10.0.0.7:7000");
  EXPECT_EQ(node.user + std::string(node.password), "uspw");
  EXPECT_FALSE(node.is_cluster());
}

TEST(ClusterOptionsTest, wrong_cluster_urls_are_named) {
  struct Row {
    std::string url;
    const char *says;
  };
  std::string many = "redis+cluster://h0";
  for (int i = 1; i <= 64; i++) many += ",h" + std::to_string(i);
  for (const Row &row : {
           Row{"redis+cluster://h/3", "db must be 0 on a cluster (got 3)"},
           Row{"redis+cluster://h?db=3", "db must be 0 on a cluster (got 3)"},
           Row{"redis+cluster://h/x", "database must be a number of 0 to 16383"},
           Row{"redis+cluster://h/name/0", "database must be a number of 0 to 16383"},
           Row{"redis+cluster://", "host must be 1 to 253"},
           Row{"redis+cluster://h,", "host must be 1 to 253"},
           Row{"redis+cluster://h,::1", "IPv6 address in brackets"},
           Row{"redis+cluster://h:0", "port must be a number of 1 to 65535"},
           Row{"redis+cluster://h,h:6379", "node h:6379 must be named once"},
           Row{many, "the nodes must be 1 to 64 (got more)"},
           Row{"redis+cluster://h?cluster_hosts=a%2C%2Cb", "with ',' between them (got '')"},
           Row{"redis+cluster://h?cluster_hosts=a:1", "with ',' between them (got 'a:1')"},
           Row{"redis+cluster://h?cluster_host=a", "did you mean 'cluster_hosts'?"},
           Row{"redis://h?cluster_hosts=a", "must be used with redis+cluster:// only"},
           Row{"redis+cluster://h?sentinel_user=u", "must be used with redis-sentinel:// only"},
       }) {
    Settings settings;
    const auto outcome = Options().resolve(row.url, settings);
    EXPECT_EQ(outcome.status, Status::kInvalid) << row.url;
    EXPECT_NE(outcome.message.find(row.says), std::string::npos) << outcome.message;
  }
  std::vector<Settings> nodes;
  QuorumSettings quorum;
  const auto outcome = Options().resolve("redis://a\nredis+cluster://b\nredis://c", nodes, quorum);
  EXPECT_EQ(outcome.status, Status::kInvalid);
  EXPECT_NE(outcome.message.find("a node of a Redlock must be one server"), std::string::npos);
}

}  // namespace redlatch::config
