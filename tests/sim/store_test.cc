// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the store does what the simulator needs and no real server can be compared with. Replies of
// commands are compared with real servers by store_fidelity.
#include "store.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/scripts.h"

namespace redlatch::sim {

namespace {

constexpr int64_t kNow = 1'700'000'000'123'456;
constexpr int64_t kMs = 1000;
const std::string kToken = "AAAAAAAAAAAAAAAAAAAAAA0000000001";
const std::string kMember = kToken + "x050009999999999999";

class Log : public Store::Listener {
 public:
  int64_t published(std::string_view channel, std::string_view message, bool is_sharded) override {
    add(is_sharded ? "spublished" : "published", channel, message);
    return receivers;
  }
  int64_t subscribers(std::string_view) override { return receivers; }
  void changed(std::string_view key) override { add("changed", key, ""); }
  void queued(std::string_view key, std::string_view member, double score) override {
    add("queued", key, std::string(member) + "@" + std::to_string(static_cast<int64_t>(score)));
  }
  void dequeued(std::string_view key, std::string_view member, double score) override {
    add("dequeued", key, std::string(member) + "@" + std::to_string(static_cast<int64_t>(score)));
  }

  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  int64_t receivers = 1;

 private:
  void add(std::string_view what, std::string_view key, std::string_view rest) {
    lines_.push_back(std::string(what).append(" ").append(key));
    if (!rest.empty()) lines_.back().append(" ").append(rest);
  }
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

class StoreTest : public testing::Test {
 protected:
  Value run(std::initializer_list<std::string_view> words) {
    return store.execute({words.begin(), words.size()}, now_us);
  }
  Value acquire(std::string_view token, std::string_view member = "") {
    return run({"EVALSHA", sha1(protocol::Script::kAcquire), "5", "K", "Q", "F", "R", "W", token,
                "5000", member, "", "c:"});
  }
  static std::string_view sha1(protocol::Script script) {
    return protocol::script_text(script, protocol::Format::kString, false).sha1;
  }
  static std::string_view text(protocol::Script script) {
    return protocol::script_text(script, protocol::Format::kString, false).text();
  }
  void load(protocol::Script script) { run({"SCRIPT", "LOAD", text(script)}); }
  // The first word of an error; "" for any other value.
  static std::string code(const Value &value) {
    return value.is_error() ? value.text.substr(0, value.text.find(' ')) : "";
  }

  Log log;
  Store store{log};
  int64_t now_us = kNow;
};

}  // namespace

TEST_F(StoreTest, the_listener_gets_each_write_once_and_no_reads) {
  run({"SET", "k", "v", "PX", "10"});
  EXPECT_EQ(log.take(), Lines({"changed k"}));
  run({"SET", "k", "w", "NX"});
  run({"GET", "k"});
  run({"PTTL", "k"});
  run({"DEL", "other"});
  run({"PEXPIRE", "other", "5"});
  EXPECT_EQ(log.take(), Lines());
  run({"PEXPIRE", "k", "20"});
  EXPECT_EQ(log.take(), Lines({"changed k"}));
  run({"PEXPIRE", "k", "0"});
  EXPECT_EQ(log.take(), Lines({"changed k"}));
  run({"HSET", "h", "a", "1", "b", "2"});
  run({"DEL", "h"});
  EXPECT_EQ(log.take(), Lines({"changed h", "changed h"}));
  run({"HSET", "h", "a", "1", "b"});
  EXPECT_EQ(log.take(), Lines());
}

TEST_F(StoreTest, the_listener_gets_each_member_that_a_queue_gains_or_loses) {
  run({"ZADD", "q", "1", "a", "2", "b"});
  EXPECT_EQ(log.take(), Lines({"queued q a@1", "queued q b@2", "changed q"}));
  run({"ZADD", "q", "NX", "9", "a"});
  run({"ZADD", "q", "1", "a"});
  run({"ZREM", "q", "c"});
  EXPECT_EQ(log.take(), Lines());
  run({"ZADD", "q", "3", "a"});
  EXPECT_EQ(log.take(), Lines({"dequeued q a@1", "queued q a@3", "changed q"}));
  run({"ZPOPMIN", "q"});
  EXPECT_EQ(log.take(), Lines({"dequeued q b@2", "changed q"}));
  run({"ZREM", "q", "a"});
  EXPECT_EQ(log.take(), Lines({"dequeued q a@3", "changed q"}));
  EXPECT_TRUE(store.keys().empty());
  run({"ZADD", "q", "1", "a"});
  log.take();
  run({"DEL", "q"});
  EXPECT_EQ(log.take(), Lines({"changed q"}));
}

TEST_F(StoreTest, the_listener_gets_an_expiry_when_the_store_notices_it) {
  run({"SET", "k", "v", "PX", "10"});
  run({"SET", "l", "v", "PX", "20"});
  log.take();
  now_us += 10 * kMs;
  run({"GET", "k"});
  EXPECT_EQ(log.take(), Lines()) << "the last millisecond counts";
  now_us += 1 * kMs;
  EXPECT_EQ(store.keys().size(), 2u);
  EXPECT_EQ(run({"GET", "k"}), Value::nil());
  EXPECT_EQ(log.take(), Lines({"changed k"}));
  store.expire(now_us);
  EXPECT_EQ(log.take(), Lines());
  store.expire(now_us + 10 * kMs);
  EXPECT_EQ(log.take(), Lines({"changed l"}));
  EXPECT_TRUE(store.keys().empty());
}

TEST_F(StoreTest, publish_returns_the_receiver_count_of_the_listener) {
  log.receivers = 3;
  EXPECT_EQ(run({"PUBLISH", "c", "m"}), Value::of(int64_t{3}));
  EXPECT_EQ(run({"SPUBLISH", "c", "m"}), Value::of(int64_t{3}));
  EXPECT_EQ(log.take(), Lines({"published c m", "spublished c m"}));
  store.set_may_publish(false);
  EXPECT_EQ(code(run({"PUBLISH", "c", "m"})), "NOPERM");
  const Value probe = run({"EVAL", text(protocol::Script::kProbe), "0", "a", "b"});
  EXPECT_EQ(probe, Value::list({Value::of(int64_t{-1}), Value::of(int64_t{-1})}));
  EXPECT_EQ(log.take(), Lines());
}

TEST_F(StoreTest, a_script_runs_under_its_hash_until_it_is_flushed) {
  EXPECT_EQ(code(acquire(kToken)), "NOSCRIPT");
  load(protocol::Script::kAcquire);
  EXPECT_EQ(acquire(kToken).items[0], Value::of(int64_t{1}));
  store.flush_scripts();
  EXPECT_EQ(code(acquire(kToken)), "NOSCRIPT");
  EXPECT_EQ(store.keys().size(), 2u);
  load(protocol::Script::kAcquire);
  store.clear();
  EXPECT_EQ(code(acquire(kToken)), "NOSCRIPT");
  EXPECT_TRUE(store.keys().empty());
  run({"EVAL", text(protocol::Script::kAcquire), "5", "K", "Q", "F", "R", "W", kToken, "5000", "",
       "", "c:"});
  EXPECT_EQ(acquire(kToken).items[0], Value::of(int64_t{1})) << "EVAL registers as well";
}

TEST_F(StoreTest, a_hash_can_be_defined_to_run_another_script) {
  store.define(sha1(protocol::Script::kAcquire), "return ARGV[1]");
  EXPECT_EQ(acquire(kToken), Value::of(kToken));
  load(protocol::Script::kAcquire);
  EXPECT_EQ(acquire(kToken), Value::of(kToken)) << "nobody who loads the text undoes it";
}

TEST_F(StoreTest, out_of_memory_refuses_commands_that_may_allocate) {
  run({"ZADD", "q", "1", "a"});
  store.set_out_of_memory(true);
  EXPECT_EQ(code(run({"SET", "k", "v"})), "OOM");
  EXPECT_EQ(code(run({"ZADD", "q", "1", "a"})), "OOM");
  EXPECT_EQ(code(run({"HSET", "h", "f", "v"})), "OOM");
  EXPECT_EQ(run({"ZPOPMIN", "q"}).items.size(), 2u);
  EXPECT_EQ(run({"DEL", "q"}), Value::of(int64_t{0}));
  EXPECT_EQ(code(run({"EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k"})), "OOM");
  EXPECT_EQ(
      run({"EVAL", "redis.call('del', 'x') return redis.call('set', KEYS[1], 'v')", "1", "k"}),
      Value::status("OK"))
      << "a script that has written may go on";
  EXPECT_EQ(code(run({"EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k"})), "OOM")
      << "that was another script's write";
  store.set_out_of_memory(false);
  EXPECT_EQ(run({"SET", "k", "v"}), Value::status("OK"));
}

TEST_F(StoreTest, the_clock_is_set_by_the_test_and_may_jump_back) {
  const Value time = Value::list({Value::of("1700000000"), Value::of("123456")});
  EXPECT_EQ(run({"TIME"}), time);
  EXPECT_EQ(run({"TIME"}), time);
  run({"SET", "k", "v", "PX", "10"});
  now_us += 5 * kMs;
  EXPECT_EQ(run({"PTTL", "k"}), Value::of(int64_t{5}));
  now_us -= 55 * kMs;
  EXPECT_EQ(run({"PTTL", "k"}), Value::of(int64_t{60}));
}

TEST_F(StoreTest, the_listener_gets_queue_changes_made_by_scripts) {
  load(protocol::Script::kAcquire);
  load(protocol::Script::kRelease);
  const std::string holder = "BAAAAAAAAAAAAAAAAAAAAA0000000001";
  acquire(holder);
  log.take();
  EXPECT_EQ(acquire(kToken, kMember).items[0], Value::of(int64_t{0}));
  EXPECT_EQ(log.take(),
            Lines({"queued Q " + kMember + "@" + std::to_string(kNow), "changed Q", "changed Q"}));
  now_us += kMs;
  const Value reply = run({"EVALSHA", sha1(protocol::Script::kRelease), "5", "K", "Q", "F", "R",
                           "W", holder, "c:", "-1", "150", "1"});
  EXPECT_EQ(reply.items[0], Value::of(int64_t{2}));
  EXPECT_EQ(log.take()[0], "dequeued Q " + kMember + "@" + std::to_string(kNow));
  EXPECT_EQ(run({"GET", "K"}), Value::of(kToken));
}

TEST_F(StoreTest, a_script_error_keeps_earlier_writes_and_begins_with_its_code) {
  run({"SET", "k", "v"});
  const Value reply =
      run({"EVAL", "redis.call('set', 'a', 1)\nreturn redis.call('zcard', 'k')", "0"});
  EXPECT_EQ(code(reply), "WRONGTYPE");
  EXPECT_NE(reply.text.find("on @user_script:2."), std::string::npos) << reply.text;
  EXPECT_EQ(run({"GET", "a"}), Value::of("1"));
  EXPECT_EQ(code(run({"EVAL", "return misspelt", "0"})), "ERR");
  EXPECT_EQ(code(run({"EVAL", "misspelt = 1", "0"})), "ERR");
  EXPECT_EQ(code(run({"EVAL", "this is no Lua", "0"})), "ERR");
}

}  // namespace redlatch::sim
