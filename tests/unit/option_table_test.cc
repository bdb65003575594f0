// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: each row of options.def is an option with its default, range and messages.
// Method: all rows, and tables of values.
#include "config/option_table.h"

#include <gtest/gtest.h>

#include "config/option_values.h"
#include "config/options.h"

namespace redlatch::config {

TEST(OptionTableTest, each_row_is_found_by_its_name) {
  int count = 0;
  for (const char *name : {
#define RL_CLIENT_OPTION(name, ...) #name,
#define RL_TLS_OPTION(name, ...) #name,
#define RL_SENTINEL_OPTION(name, ...) #name,
#define RL_SENTINEL_TLS_OPTION(name, ...) #name,
#define RL_CLUSTER_OPTION(name, ...) #name,
#define RL_QUORUM_OPTION(name, ...) #name,
#define RL_ACQUIRE_OPTION(name, ...) #name,
#define RL_LOCK_OPTION(name, ...) #name,
#define RL_KIND_OPTION(name, ...) #name,
#include "config/options.def"
       }) {
    const Option *option = find_option(name);
    ASSERT_NE(option, nullptr) << name;
    EXPECT_EQ(option->name, name);
    EXPECT_LE(option->least, option->most) << name;
    count++;
  }
  EXPECT_GE(count, 32);
  EXPECT_EQ(find_option("url"), nullptr);
  EXPECT_EQ(find_option(""), nullptr);
}

TEST(OptionTableTest, settings_begin_with_the_defaults_of_the_table) {
  const Settings settings;
  EXPECT_EQ(option_of(settings, "connect_timeout"), "2000ms");
  EXPECT_EQ(option_of(settings, "command_timeout"), "2000ms");
  EXPECT_EQ(option_of(settings, "protocol"), "3");
  EXPECT_EQ(option_of(settings, "client_name"), "redlatch");
  EXPECT_EQ(option_of(settings, "tls_verify"), "full");
  const QuorumSettings quorum;
  EXPECT_EQ(option_of(quorum, "restart_guard"), "60000ms");
  EXPECT_EQ(option_of(quorum, "node_timeout"), "auto");
  EXPECT_EQ(option_of(quorum, "min_validity"), "0");
  EXPECT_EQ(option_of(quorum, "durable"), "no");
  const AcquireSettings acquire;
  EXPECT_EQ(acquire.ttl, kDefaultTtlMs * kMs);
  EXPECT_EQ(acquire.yield_for, 150 * kMs);
  EXPECT_EQ(acquire.max_local_handoffs, 16);
  EXPECT_LT(acquire.yield_every, 0) << "the library chooses";
  EXPECT_TRUE(acquire.is_renewed);
}

TEST(OptionTableTest, acquire_options_are_set_by_name) {
  AcquireSettings settings;
  ASSERT_TRUE(set_option(settings, "ttl", "7d").ok());
  ASSERT_TRUE(set_option(settings, "renew", "no").ok());
  ASSERT_TRUE(set_option(settings, "max_hold", "0").ok());
  ASSERT_TRUE(set_option(settings, "max_hold", "0ms").ok());
  ASSERT_TRUE(set_option(settings, "yield_for", "1m").ok());
  ASSERT_TRUE(set_option(settings, "max_local_handoffs", "31").ok());
  ASSERT_TRUE(set_option(settings, "format", "hash-rw").ok());
  ASSERT_TRUE(set_option(settings, "owner", "o").ok());
  EXPECT_EQ(settings.ttl, kMaxTtlMs * kMs);
  EXPECT_FALSE(settings.is_renewed);
  EXPECT_EQ(settings.max_hold, 0);
  EXPECT_EQ(settings.yield_for, 60'000 * kMs);
  EXPECT_EQ(settings.max_local_handoffs, 31);
  EXPECT_EQ(settings.format_number, 3);
  EXPECT_EQ(settings.owner, "o");
}

TEST(OptionTableTest, messages_name_the_allowed_and_the_given_value) {
  struct Row {
    const char *name;
    std::string value;
    const char *says;
  };
  const std::string long_text(257, 'x');
  for (const Row &row : {
           Row{"ttl", "5ms", "option 'ttl' must be 10 ms to 7 days (got '5ms')"},
           Row{"ttl", "8d", "option 'ttl' must be 10 ms to 7 days (got '8d')"},
           Row{"ttl", "99999999999999999999d",
               "must be 10 ms to 7 days (got '99999999999999999999d')"},
           Row{"ttl", "500",
               "option 'ttl' must be a duration with a unit, such as 500ms or 500s (got '500')"},
           Row{"ttl", "", "option 'ttl' must be 10 ms to 7 days, such as 500ms"},
           Row{"ttl", "-5ms", "option 'ttl' must be 10 ms to 7 days (got '-5ms')"},
           Row{"ttl", "1.5s", "(got '1.5s')"},
           Row{"max_hold", "8d", "option 'max_hold' must be 0 or 1 ms to 7 days (got '8d')"},
           Row{"renew", "maybe", "option 'renew' must be yes or no (got 'maybe')"},
           Row{"max_local_handoffs", "32", "must be 0 to 31 (got '32')"},
           Row{"yield_every", "-1", "must be 0 to 1000000 (got '-1')"},
           Row{"format", "list", "must be auto, string, hash or hash-rw (got 'list')"},
           Row{"label", long_text, "option 'label' must be at most 256 bytes (got 257 bytes)"},
           Row{"owner", "", "option 'owner' must be 1 to 256 bytes (got 0 bytes)"},
           Row{"lease", "5s", "unknown option 'lease' (known are ttl, renew"},
           Row{"max_hodl", "5s", "unknown option 'max_hodl' (did you mean 'max_hold'?)"},
           Row{"yield_ms", "5", "unknown option 'yield_ms' (did you mean 'yield_for'?)"},
           Row{"timeout", "5s", "unknown option 'timeout' (known are ttl, renew"},
           Row{"db", "1", "unknown option 'db': it is an option of a client"},
       }) {
    AcquireSettings settings;
    const auto outcome = set_option(settings, row.name, row.value);
    EXPECT_EQ(outcome.status, Status::kInvalid) << row.name << "=" << row.value;
    EXPECT_NE(outcome.message.find(row.says), std::string::npos) << outcome.message;
  }
}

TEST(OptionTableTest, client_options_are_limited_to_their_ranges) {
  struct Row {
    const char *name;
    std::string value;
    const char *says;  // nullptr: it is allowed
  };
  for (const Row &row : {
           Row{"db", "0", nullptr},
           Row{"db", "16383", nullptr},
           Row{"db", "16384", "16383"},
           Row{"db", "-1", "(got '-1')"},
           Row{"db", "1x", "(got '1x')"},
           Row{"db", "99999999999999999999", "16383"},
           Row{"command_timeout", "1ms", nullptr},
           Row{"command_timeout", "1h", nullptr},
           Row{"command_timeout", "3600s", nullptr},
           Row{"command_timeout", "5m", nullptr},
           Row{"command_timeout", "0ms", "1 ms to 1 hour"},
           Row{"command_timeout", "3600001ms", "1 hour"},
           Row{"command_timeout", "-1s", "(got '-1s')"},
           Row{"command_timeout", "soon", "(got 'soon')"},
           Row{"command_timeout", "2 s", "(got '2 s')"},
           Row{"command_timeout", "9223372036854775807h", "1 hour"},
           Row{"connect_timeout", "2d", "(got '2d')"},
           Row{"protocol", "2", nullptr},
           Row{"namespace", "a}b", "brace"},
           Row{"namespace", std::string(128, 'n'), nullptr},
           Row{"namespace", std::string(129, 'n'), "128"},
           Row{"holder", std::string(256, 'h'), nullptr},
           Row{"holder", std::string(257, 'h'), "256"},
           Row{"password", "", nullptr},
           Row{"name_space", "x", "'namespace'"},
       }) {
    Options options;
    const auto outcome = options.set(row.name, row.value);
    EXPECT_EQ(outcome.ok(), row.says == nullptr) << row.name << "=" << row.value;
    if (row.says == nullptr) continue;
    EXPECT_NE(outcome.message.find(row.says), std::string::npos) << outcome.message;
  }
}

TEST(OptionTableTest, numbers_set_by_name_have_the_ranges_of_the_text) {
  AcquireSettings settings;
  EXPECT_TRUE(set_number(settings, "ttl", 10).ok());
  EXPECT_EQ(set_number(settings, "ttl", 9).message,
            "option 'ttl' must be 10 ms to 7 days (got 9 ms)");
  EXPECT_FALSE(set_number(settings, "ttl", INT64_MAX).ok());
  EXPECT_EQ(settings.ttl, 10 * kMs) << "a mistake changes nothing";
  EXPECT_TRUE(set_number(settings, "max_hold", 0).ok());
  EXPECT_FALSE(set_number(settings, "max_hold", -1).ok());
  EXPECT_EQ(set_number(settings, "renew", 2).message, "option 'renew' must be 0 or 1 (got 2)");
  EXPECT_EQ(set_number(settings, "yield_every", -1).message,
            "option 'yield_every' must be 0 to 1000000 (got -1)");
  EXPECT_EQ(check_ttl(5).message, "ttl must be 10 ms to 7 days (got 5 ms)");
}

TEST(OptionTableTest, the_format_follows_from_the_other_options_in_any_order) {
  using protocol::Format;
  const auto settled = [](uint8_t format, bool is_reentrant, const char *owner, Format &result) {
    AcquireSettings settings;
    settings.format_number = format;
    settings.is_reentrant = is_reentrant;
    settings.owner = owner;
    return choose_format(settings, result).message;
  };
  Format format{};
  EXPECT_EQ(settled(0, false, "", format), "");
  EXPECT_EQ(format, Format::kString);
  EXPECT_EQ(settled(0, true, "o", format), "");
  EXPECT_EQ(format, Format::kHash);
  EXPECT_EQ(settled(2, true, "o", format), "");
  EXPECT_EQ(settled(1, true, "o", format),
            "option 'format' must be auto or hash for a reentrant lock (got string)");
  EXPECT_EQ(settled(3, true, "o", format),
            "option 'format' must be auto or hash for a reentrant lock (got hash-rw)");
  EXPECT_EQ(settled(0, true, "", format), "option 'owner' must be set for a reentrant lock");
  EXPECT_EQ(settled(2, false, "o", format),
            "option 'reentrant' must be yes for an owner with the format hash");
  EXPECT_EQ(settled(2, false, "", format), "");
  EXPECT_EQ(format, Format::kHash);
  AcquireSettings settings;
  settings.format_number = 3;
  settings.ttl = 30'001 * kMs;
  EXPECT_EQ(choose_format(settings, format).message,
            "option 'ttl' must be 10 ms to 30 s with the format hash-rw (got 30001 ms)");
}

TEST(OptionTableTest, the_mode_is_an_option_of_the_kind_of_a_lock) {
  const Option *option = find_option("mode");
  ASSERT_NE(option, nullptr);
  EXPECT_EQ(option->scope, Scope::kKind);
  EXPECT_TRUE(option->is_of_acquisitions());
  AcquireSettings settings;
  EXPECT_EQ(option_of(settings, "mode"), "write");
  EXPECT_EQ(mode_of(settings), protocol::Mode::kWrite);
  ASSERT_TRUE(set_option(settings, "mode", "read").ok());
  EXPECT_EQ(mode_of(settings), protocol::Mode::kRead);
  EXPECT_EQ(set_option(settings, "mode", "reed").message,
            "option 'mode' must be write or read (got 'reed')");
  EXPECT_EQ(option_of(settings, "mode"), "read") << "a mistake changes nothing";
  ASSERT_TRUE(set_option(settings, "mode", "write").ok());
  EXPECT_EQ(mode_of(settings), protocol::Mode::kWrite);
  Options of_client;
  EXPECT_EQ(of_client.set("mode", "read").message,
            "unknown option 'mode': it is an option of an acquisition");
}

TEST(OptionTableTest, secrets_are_in_no_message_and_cannot_be_read) {
  for (const char *name : {"user", "password", "password_file"}) {
    const Option *option = find_option(name);
    ASSERT_NE(option, nullptr);
    EXPECT_EQ(got(*option, "canary"), "") << name;
    EXPECT_FALSE(is_shown_value(*option, "canary")) << name;
  }
  Settings settings;
  settings.password = "canary";
  EXPECT_EQ(option_of(settings, "password"), "");
  EXPECT_EQ(option_of(settings, "password_file"), "");
}

TEST(OptionTableTest, an_option_of_an_acquisition_is_read_back) {
  AcquireSettings settings;
  EXPECT_EQ(option_of(settings, "ttl"), "30000ms");
  EXPECT_EQ(option_of(settings, "format"), "auto");
  EXPECT_EQ(option_of(settings, "yield_every"), "") << "the library chooses";
  ASSERT_TRUE(set_option(settings, "yield_every", "0").ok());
  EXPECT_EQ(option_of(settings, "yield_every"), "0");
  EXPECT_EQ(option_of(settings, "db"), "");
}

TEST(OptionTableTest, an_option_of_a_client_is_read_back) {
  Options options;
  EXPECT_EQ(options.get("command_timeout"), "") << "a URL may set it";
  ASSERT_TRUE(options.set("command_timeout", "2s").ok());
  ASSERT_TRUE(options.set("tls_ca", ".").ok());
  ASSERT_TRUE(options.set("node_timeout", "auto").ok());
  ASSERT_TRUE(options.set("password", "secret").ok());
  EXPECT_EQ(options.get("command_timeout"), "2000ms");
  EXPECT_TRUE(options.get("tls_ca").starts_with('/')) << options.get("tls_ca");
  EXPECT_EQ(options.get("node_timeout"), "auto");
  EXPECT_EQ(options.get("password") + options.get("ttl") + options.get("url"), "");
}

TEST(OptionTableTest, zero_as_a_duration_means_off_if_the_option_has_that_word) {
  Option option{Scope::kAcquire, "x", Kind::kDURATION, 5, 10, "off"};
  Nanos value = 1;
  EXPECT_TRUE(read_value(option, "0ms", value).ok());
  EXPECT_EQ(value, 0);
  option.words = "";
  EXPECT_FALSE(read_value(option, "0ms", value).ok());
  option = {Scope::kQuorum, "x", Kind::kDURATION, 5, 10, "off"};
  EXPECT_FALSE(read_value(option, "0ms", value).ok());
}

TEST(OptionTableTest, messages_quote_the_given_value_unless_it_may_be_secret) {
  const Option *ttl = find_option("ttl");
  EXPECT_EQ(got(*ttl, "5 s"), " (got '5 s')");
  EXPECT_EQ(got(*ttl, ""), " (got '')");
  EXPECT_EQ(got(*find_option("format"), "hash_rw"), " (got 'hash_rw')");
  EXPECT_EQ(got(*ttl, "a&b"), " (got 'a&b')");
  EXPECT_EQ(got(*find_option("tls_verify"), "none;/"), " (got 'none;/')");
  EXPECT_EQ(got(*find_option("protocol"), std::string(33, '3')),
            " (got '" + std::string(32, '3') + "'..)");
  EXPECT_EQ(got(*find_option("tls_sni"), "redis://:secret@h"), "") << "a URL with its password";
  EXPECT_EQ(got(*find_option("tls_ca"), "secret"), "") << "the key, not its path";
}

}  // namespace redlatch::config
