// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: keys, tokens, members, pushes and answers. Method: plain values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "lock_client_world.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/keys.h"
#include "protocol/token.h"

namespace redlatch::protocol {

TEST(KeysTest, auxiliary_keys_are_in_the_slot_of_the_lock) {
  const LockKeys plain("", "a", Format::kString);
  EXPECT_EQ(plain.lock, "a");
  EXPECT_EQ(plain.queue, "{a}:rl1:q");
  const LockKeys tagged("", "{a}b", Format::kString);
  EXPECT_EQ(tagged.queue, "{a}b:rl1.q");
  const LockKeys spaced("app:", "a", Format::kString);
  EXPECT_EQ(spaced.lock, "app:a");
  EXPECT_EQ(spaced.queue, "app:{app:a}:rl1:q");
  EXPECT_EQ(LockKeys("", "x{}y", Format::kString).queue, "{x{}y}:rl1:q") << "an empty tag is none";
}

TEST(KeysTest, locks_with_and_without_braces_share_nothing) {
  const LockKeys a("", "a", Format::kString);
  const LockKeys b("", "{a}", Format::kString);
  EXPECT_NE(a.queue, b.queue);
  EXPECT_NE(a.fence, b.fence);
}

TEST(KeysTest, formats_share_only_the_lock_key_and_the_fence) {
  const LockKeys string("app:", "a", Format::kString);
  const LockKeys hash("app:", "a", Format::kHash);
  EXPECT_EQ(hash.lock, string.lock);
  EXPECT_EQ(hash.fence, string.fence);
  EXPECT_EQ(hash.queue, "app:{app:a}:rl1:hq");
  EXPECT_EQ(hash.readers, "app:{app:a}:rl1:hr");
  const std::set<std::string_view> keys = {string.queue, string.readers, string.info, string.turn,
                                           hash.queue,   hash.readers,   hash.info,   hash.turn};
  EXPECT_EQ(keys.size(), 8u);
  for (const std::string_view key : keys) EXPECT_TRUE(is_auxiliary(key)) << key;
}

TEST(CommandTest, cluster_scripts_with_several_keys_also_name_an_absent_key) {
  const LockKeys keys("app:", "a", Format::kString);
  EXPECT_EQ(keys.absent, "app:{app:a}:rl1:n");
  EXPECT_TRUE(is_auxiliary(keys.absent));
  // The keys of a command, behind its first three words.
  const auto keys_of = [](const Command &command) {
    int count = 0;
    EXPECT_TRUE(parse_number(command.argv()[2], count));
    const auto words = command.argv().subspan(3, static_cast<size_t>(count));
    return std::vector<std::string>(words.begin(), words.end());
  };
  using Build = std::function<void(Command &, const ServerFeatures &)>;
  const auto mode = EvalMode::kDigest;
  const Proof identity{"token", ""};
  const HolderInfo info{};
  const Note note{Note::Kind::kRun, "mark", "", 1};
  const std::vector<std::pair<Build, size_t>> builds = {
      {[&](auto &c, auto &f) {
         acquire(c, f, mode, keys, {Mode::kWrite, identity, 1, "", ""});
       },
       6},
      {[&](auto &c, auto &f) {
         acquire(c, f, mode, keys, {Mode::kRead, identity, 1, "", ""});
       },
       6},
      {[&](auto &c, auto &f) {
         acquire(c, f, mode, keys, {Mode::kUpgrade, identity, 1, "", ""});
       },
       5},
      {[&](auto &c, auto &f) { release(c, f, mode, keys, identity, {}, 1); }, 6},
      {[&](auto &c, auto &f) {
         acquire(c, f, mode, keys,
                 {.mode = Mode::kWrite,
                  .identity = identity,
                  .ttl_ms = 1,
                  .member = "member",
                  .ticket = "",
                  .candidate = "id",
                  .candidates_key = "ids"});
       },
       7},
      {[&](auto &c, auto &f) { cancel(c, f, mode, keys, "member", ""); }, 5},
      {[&](auto &c, auto &f) { downgrade(c, f, mode, keys, "token", 1, 0); }, 5},
      {[&](auto &c, auto &f) { serve_queue(c, f, mode, keys); }, 5},
      {[&](auto &c, auto &f) { force_release(c, f, mode, keys, "token"); }, 5},
      {[&](auto &c, auto &f) { inspect(c, f, mode, keys, "mark", "ids"); }, 8},
      {[&](auto &c, auto &f) { release(c, f, mode, keys, identity, {}, 1, &note); }, 7},
      {[&](auto &c, auto &f) { once_begin(c, f, mode, keys, "mark", "token", {}); }, 3},
      {[&](auto &c, auto &f) { extend(c, f, mode, keys, "token", 1, true, &info); }, 3},
      {[&](auto &c, auto &f) { extend_shared(c, f, mode, keys, identity, 1, true); }, 4},
      {[&](auto &c, auto &f) { extend_shared(c, f, mode, keys, identity, 1, false); }, 4},
      {[&](auto &c, auto &f) { detach(c, f, mode, keys, identity, 0); }, 4},
      {[&](auto &c, auto &f) { attach(c, f, mode, keys, identity, 1, "call"); }, 4},
      {[&](auto &c, auto &f) { raise_fence(c, f, mode, keys, "token", 1); }, 3},
  };
  for (size_t i = 0; i < builds.size(); i++) {
    Command plain;
    Command clustered;
    builds[i].first(plain, {.is_sharded = true, .prefix = ""});
    builds[i].first(clustered, {.is_sharded = true, .prefix = "", .is_cluster = true});
    const auto with = keys_of(clustered);
    EXPECT_EQ(with.size(), builds[i].second) << i;
    EXPECT_EQ(with.back(), keys.absent) << i;
    const auto without = keys_of(plain);
    EXPECT_TRUE(std::equal(without.begin(), without.end(), with.begin())) << i;
    EXPECT_EQ(std::count(without.begin(), without.end(), keys.absent), 0) << i;
  }
}

TEST(CommandTest, a_lease_can_be_extended_with_one_key) {
  const LockKeys keys("", "a", Format::kHash);
  const ServerFeatures features{.is_sharded = true, .prefix = "", .is_cluster = true};
  const auto words_of = [](const Command &command) {
    return std::vector<std::string>(command.argv().begin() + 2, command.argv().end());
  };
  using Words = std::vector<std::string>;
  Command lock;
  extend_shared_alone(lock, features, EvalMode::kDigest, keys,
                      {Part::kLock, {"token", "owner"}, 50});
  EXPECT_EQ(words_of(lock), (Words{"1", "a", "token", "50", "owner", "k"}));
  Command readers;
  extend_shared_alone(readers, features, EvalMode::kDigest, keys,
                      {Part::kReaders, {"token", "owner"}, 50});
  EXPECT_EQ(words_of(readers), (Words{"1", "{a}:rl1:hr", "token", "50", "owner", "r"}));
  Command plain;
  extend_alone(plain, features, EvalMode::kDigest, keys, "token", 50);
  EXPECT_EQ(words_of(plain), (Words{"1", "a", "token", "50"}));
  Command marked;
  const std::string key = reader_key(keys, "token");
  extend_reader_key(marked, key, 50);
  EXPECT_EQ(words_of(marked), (Words{"1", "PX", "50"}));
  EXPECT_EQ(key, "{a}:token:rwlock_timeout:1");
}

TEST(KeysTest, names_are_any_bytes_except_auxiliary_keys) {
  EXPECT_TRUE(check_name(std::string(1024, '\0')).ok());
  EXPECT_TRUE(check_name("a:rl1:q2").ok());
  EXPECT_TRUE(check_name("rl1:q").ok());
  for (const char *name : {"", "a:rl1:q", "a:rl1.", "{a}:rl1.QQ"}) {
    const auto outcome = check_name(name);
    EXPECT_EQ(outcome.status, Status::kInvalid) << name;
    EXPECT_FALSE(outcome.message.empty());
  }
  EXPECT_EQ(check_name(std::string(1025, 'a')).status, Status::kInvalid);
}

TEST(TokenTest, tokens_are_unique_and_of_fixed_width) {
  std::array<uint8_t, 16> random{};
  std::set<std::string> seen;
  for (int i = 0; i < 256; i++) {
    random[static_cast<size_t>(i) % 16] = static_cast<uint8_t>(i);
    const std::string cid = make_cid(random);
    EXPECT_EQ(cid.size(), kCidSize);
    for (const uint64_t rid : {uint64_t{0}, uint64_t{255}, uint64_t{0xff'ffff'ffff}}) {
      const std::string token = make_token(cid, rid);
      EXPECT_TRUE(is_token(token)) << token;
      seen.insert(token);
    }
  }
  EXPECT_EQ(seen.size(), 256u * 3);
}

TEST(TokenTest, values_of_other_libraries_are_foreign) {
  EXPECT_FALSE(is_token("d41d8cd98f00b204e9800998ecf8427e-"));
  EXPECT_FALSE(is_token("rl:shared"));
  EXPECT_FALSE(is_token(std::string(32, 'Z'))) << "the number is hex";
  EXPECT_FALSE(is_token(""));
  // What redis-py writes: 32 hex digits, too. The head of our queue must poll for its release.
  EXPECT_FALSE(is_token("5e3b2f4ac6d911f0a1b20242ac120002"));
  EXPECT_FALSE(is_token("00000000000000000000000000000000"));
}

TEST(TokenTest, member_has_fixed_width_fields) {
  const std::string token = std::string(21, 'a') + "A0123456789";
  EXPECT_EQ(make_member(token, Mode::kWrite, 3000, -1), token + "x03000" + "9999999999999");
  EXPECT_EQ(make_member(token, Mode::kRead, 10, 1500), token + "s00010" + "0000000001500");
  EXPECT_EQ(make_member(token, Mode::kUpgrade, 10, INT64_MAX),
            make_member(token, Mode::kUpgrade, 10, -1));
  std::string polling = make_member(token, Mode::kWrite, 3000, -1);
  set_polls(polling, true);
  EXPECT_EQ(polling, token + "x+3000" + "9999999999999");
  EXPECT_TRUE(parse_member(polling).has_value());
  EXPECT_TRUE(polls(polling));
  set_polls(polling, false);
  EXPECT_FALSE(polls(polling));
  EXPECT_FALSE(polls(""));
  EXPECT_EQ(polling, make_member(token, Mode::kWrite, 3000, -1));
  const std::string owned = make_member(token, Mode::kWrite, 10, 5, "me");
  EXPECT_EQ(owned, token + "x00010" + "0000000000005" + "me");
  for (const Mode mode : {Mode::kWrite, Mode::kRead, Mode::kUpgrade}) {
    const std::string member = make_member(token, mode, 10, 5);
    const auto waiting = parse_member(member);
    ASSERT_TRUE(waiting.has_value());
    EXPECT_EQ(waiting->token, token);
    EXPECT_EQ(waiting->mode, mode);
  }
  EXPECT_TRUE(parse_member(owned).has_value());
  EXPECT_FALSE(parse_member("short").has_value());
  EXPECT_FALSE(parse_member(token + "y00010" + "0000000000005").has_value());
}

TEST(TokenTest, only_well_formed_pushes_are_parsed) {
  const auto grant = parse_push(
      "g00000000ffx03000"
      "1700000000000001"
      "1700000000000"
      "abcdef01");
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->rid, 255u);
  EXPECT_EQ(grant->ms, 3000);
  EXPECT_EQ(grant->fence, 1'700'000'000'000'001);
  EXPECT_EQ(grant->server_ms, 1'700'000'000'000);
  EXPECT_EQ(grant->key_digest, "abcdef01");
  EXPECT_EQ(grant->mode, Mode::kWrite);
  const auto read = parse_push("g00000000ffs0300017000000000000011700000000000abcdef01");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->mode, Mode::kRead);
  EXPECT_FALSE(parse_push("g00000000ffy0300017000000000000011700000000000abcdef01").has_value());
  const auto polling = parse_push("g00000000ffs+300017000000000000011700000000000abcdef01");
  ASSERT_TRUE(polling.has_value());
  EXPECT_EQ(polling->ms, 3000);
  const auto head = parse_push("n000000000100250");
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->ms, 250);
  for (std::string message :
       {"", "n", "n0000000001", "n0000000001-0001", "g0000000001s03000", "n00000000010025000",
        "g00000000ffx0300017000000000000011700000000000", "n0000000001+0250",
        "g00000000ffx++30017000000000000011700000000000abcdef01"}) {
    EXPECT_FALSE(parse_push(message).has_value()) << message;
  }
}

TEST(TokenTest, a_push_with_a_fence_out_of_range_is_refused) {
  const std::string before = "g00000000ffx03000";
  const std::string after = "1700000000000abcdef01";
  EXPECT_TRUE(parse_push(before + "9007199254740991" + after).has_value());
  EXPECT_FALSE(parse_push(before + "9007199254740992" + after).has_value());
  EXPECT_FALSE(parse_push(before + "9999999999999999" + after).has_value());
}

TEST(AnswerTest, a_grant_with_an_invalid_fence_is_refused) {
  const auto is_granted = [](const char *fence) {
    AcquireAnswer answer;
    return !decode(MadeReply::list(MadeReply::integer(1), MadeReply::text(fence),
                                   MadeReply::integer(1'700'000'000'000))
                       .get(),
                   answer);
  };
  EXPECT_TRUE(is_granted("0"));
  EXPECT_TRUE(is_granted("9007199254740991"));
  for (const char *fence : {"9007199254740992", "9223372036854775807", "9223372036854775808", "-1",
                            "-9223372036854775808", "1e3", "inf", ""}) {
    EXPECT_FALSE(is_granted(fence)) << fence;
  }
}

// Whatever a server says, callers add and subtract what they are shown.
TEST(AnswerTest, inspection_numbers_are_limited_so_that_sums_do_not_overflow) {
  const std::string token = std::string(21, 'a') + "A0123456789";
  for (const int64_t number : {INT64_MAX, INT64_MIN, int64_t{-1}, int64_t{9'999'999'999'999}}) {
    const std::string digits = std::to_string(number);
    InspectAnswer answer;
    const auto refusal = decode(
        MadeReply::list(MadeReply::integer(std::max<int64_t>(number, 1)), MadeReply::text("string"),
                        MadeReply::text(token), MadeReply::integer(number), MadeReply::text(digits),
                        MadeReply::integer(number),
                        MadeReply::list(MadeReply::text(make_member(token, Mode::kWrite, 3000, -1)),
                                        MadeReply::text(digits)),
                        MadeReply::list(MadeReply::text("since"), MadeReply::text(digits)),
                        MadeReply::integer(number),
                        MadeReply::list(MadeReply::text(token), MadeReply::text(digits)),
                        MadeReply::integer(number))
            .get(),
        answer);
    ASSERT_FALSE(refusal);
    ASSERT_EQ(answer.waiters.size(), 1u);
    ASSERT_EQ(answer.holders.size(), 1u);
    for (const int64_t ms : {answer.server_ms, answer.since_ms, answer.waiters[0].since_ms,
                             answer.holders[0].expiry_ms}) {
      EXPECT_GE(ms, 0) << number;
      EXPECT_LE(ms, kMaxServerMs) << number;
    }
    EXPECT_GE(answer.pttl_ms, -2) << number;
    EXPECT_LE(answer.pttl_ms, kMaxServerMs) << number;
    EXPECT_EQ(answer.fence, number == 9'999'999'999'999 ? number : 0);
    for (const int64_t count : {answer.waiter_count, answer.holder_count, answer.hold_count}) {
      EXPECT_GE(count, 0) << number;
    }
  }
}

TEST(AnswerTest, errors_are_classified_by_whether_a_retry_can_help) {
  using Kind = Refusal::Kind;
  const auto kind = [](const char *text) { return refusal_of(MadeReply::error(text).get()).kind; };
  EXPECT_EQ(kind("NOSCRIPT No matching script. Please use EVAL."), Kind::kNoScript);
  for (const char *text : {"LOADING x", "OOM x", "BUSY x", "READONLY x", "MASTERDOWN x",
                           "ERR Error running script (call to f_0): @user_script:1: -OOM x",
                           "@user_script: 1: -OOM x"}) {
    EXPECT_EQ(kind(text), Kind::kTransient) << text;
  }
  for (const char *text :
       {"NOPERM x", "NOAUTH x", "WRONGPASS x",
        "ERR ACL failure in script: User x has no permissions",
        "ERR The user executing the script can't run this command or subcommand"}) {
    EXPECT_EQ(kind(text), Kind::kDenied) << text;
  }
  EXPECT_EQ(kind("ERR something"), Kind::kOther);
  EXPECT_EQ(refusal_of(MadeReply::error("ERR a\r\nb").get()).message, "ERR a  b");
}

TEST(AnswerTest, holders_of_other_libraries_are_foreign) {
  AcquireAnswer answer;
  answer.type = "string";
  answer.holder = "abc";
  EXPECT_TRUE(answer.is_foreign());
  const std::string token = std::string(21, 'a') + "A0123456789";
  answer.holder = token;
  EXPECT_FALSE(answer.is_foreign());
  answer.holder = "rl:shared";
  EXPECT_FALSE(answer.is_foreign());
  EXPECT_TRUE(answer.is_shared());
  answer.type = "hash";
  answer.holder = "b2e1c0de-0000-4000-8000-000000000000:1";
  EXPECT_TRUE(answer.is_foreign()) << "a thread of Redisson's";
  answer.holder = token;
  EXPECT_FALSE(answer.is_foreign()) << "a hold of ours";
  answer.holder = "";
  EXPECT_TRUE(answer.is_foreign()) << "another format";
  answer.type = "none";
  EXPECT_FALSE(answer.is_foreign());
}

TEST(CommandTest, raise_fence_sends_the_lock_key_and_the_holders_token) {
  const LockKeys keys("app:", "a", Format::kString);
  for (const bool is_sharded : {false, true}) {
    const ScriptText &script = script_text(Script::kRaiseFence, Format::kString, is_sharded);
    Command command;
    raise_fence(command, {is_sharded, "app:rl1:"}, EvalMode::kDigest, keys, "token",
                1700000000000032);
    EXPECT_EQ(std::vector(command.argv().begin(), command.argv().end()),
              (std::vector<std::string_view>{"EVALSHA", script.sha1, "2", keys.lock, keys.fence,
                                             "token", "1700000000000032"}));
  }
  for (const Format format : {Format::kHash, Format::kHashRw}) {
    EXPECT_TRUE(script_text(Script::kRaiseFence, format, false).text().empty());
  }
}

}  // namespace redlatch::protocol
