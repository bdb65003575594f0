// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: URLs and options mean what they say, and errors name the input without the password.
// Method: tables.
#include "client/options.h"

#include <gtest/gtest.h>

namespace redlatch::client {

Settings parsed(std::string_view url) {
  Settings settings;
  const auto outcome = parse_url(url, {}, settings);
  EXPECT_TRUE(outcome.ok()) << url << ": " << outcome.message;
  return settings;
}

TEST(OptionsTest, urls_give_server_user_and_options) {
  EXPECT_EQ(parsed("redis://localhost").port, "6379");
  EXPECT_EQ(parsed("valkey://h:7000/3").database, 3);
  const Settings full = parsed("redis://us%40er:p%3Aw@h:1/2?timeout=500ms&namespace=a%3A");
  EXPECT_EQ(full.user, "us@er");
  EXPECT_EQ(full.password, "p:w");
  EXPECT_EQ(full.timeout, 500 * kMs);
  EXPECT_EQ(full.name_space, "a:");
  EXPECT_EQ(parsed("redis://:secret@h").password, "secret");
  EXPECT_EQ(parsed("redis://[::1]:7000").host, "::1");
  EXPECT_EQ(parsed("unix:///run/r.sock?db=4").database, 4);
  EXPECT_EQ(parsed("unix://u:p@/run/r.sock").socket_path, "/run/r.sock");
  EXPECT_EQ(parsed("redis://h?connect_timeout=3").connect_timeout, 3'000 * kMs);
}

TEST(OptionsTest, wrong_urls_name_the_input_and_what_is_allowed) {
  struct Row {
    const char *url;
    Status status;
    const char *says;
  };
  for (const Row &row : {
           Row{"", Status::kInvalid, "scheme"},
           Row{"localhost:6379", Status::kInvalid, "redis"},
           Row{"redsi://h", Status::kInvalid, "'redis://'"},
           Row{"rediss://h", Status::kUnsupported, "rediss"},
           Row{"redis://", Status::kInvalid, "host"},
           Row{"redis://h:0", Status::kInvalid, "port"},
           Row{"redis://h:99999", Status::kInvalid, "65535"},
           Row{"redis://h:1x", Status::kInvalid, "port"},
           Row{"redis://h/abc", Status::kInvalid, "database"},
           Row{"redis://h/-1", Status::kInvalid, "16383"},
           Row{"redis://[::1", Status::kInvalid, "]"},
           Row{"redis://h?time_out=5", Status::kInvalid, "'timeout'"},
           Row{"redis://h?timeout=5x", Status::kInvalid, "500ms"},
           Row{"redis://h?timeout=0", Status::kInvalid, "1ms"},
           Row{"redis://h?timeout=99999999999999999999h", Status::kInvalid, "1h"},
           Row{"redis://h?db", Status::kInvalid, "="},
           Row{"redis://h?protocol=2", Status::kUnsupported, "protocol"},
           Row{"redis://%zz@h", Status::kInvalid, "%-code"},
           Row{"redis://h?namespace=a{b", Status::kInvalid, "brace"},
           Row{"redis://h#x", Status::kInvalid, "fragment"},
           Row{"unix://relative", Status::kInvalid, "absolute"},
       }) {
    Settings settings;
    const auto outcome = parse_url(row.url, {}, settings);
    EXPECT_EQ(outcome.status, row.status) << row.url;
    EXPECT_NE(outcome.message.find(row.says), std::string::npos) << outcome.message;
  }
}

TEST(OptionsTest, password_is_in_no_message) {
  for (const char *url :
       {"redsi://u:canary@h", "redis://u:canary@h:0", "redis://u:can@ary@h:0",
        "redis://h:0?password=canary", "redis://u:canary", "redis://u:canary@h?bad=1",
        "redis://u:canary/x@h:0", "u:canary@h", "redis://u:12/canary@localhost:1",
        "redis://u/:canary@h:1/2", "redis://h?password=abc&canary", "redis://u:canaryh:1/2",
        "unix://:canaryf/tmp/x", "valkey://h/0namespace=x&password=canary", "redis://h?canary"}) {
    Settings settings;
    const auto outcome = parse_url(url, {}, settings);
    EXPECT_FALSE(outcome.ok()) << url;
    EXPECT_EQ(outcome.message.find("canary"), std::string::npos) << outcome.message;
  }
}

TEST(OptionsTest, option_wins_over_the_url) {
  Options options;
  EXPECT_TRUE(options.set("db", "5").ok());
  EXPECT_TRUE(options.set("timeout", "1m").ok());
  Settings settings;
  ASSERT_TRUE(parse_url("redis://h/2?timeout=3s", options, settings).ok());
  EXPECT_EQ(settings.database, 5);
  EXPECT_EQ(settings.timeout, 60'000 * kMs);
  EXPECT_EQ(options.set("db", "x").status, Status::kInvalid);
  EXPECT_EQ(options.set("tiemout", "1").status, Status::kInvalid);
}

}  // namespace redlatch::client
