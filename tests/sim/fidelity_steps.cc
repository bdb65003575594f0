// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "fidelity_steps.h"

#include <algorithm>
#include <array>
#include <map>

#include "all_scripts.h"
#include "protocol/token.h"

namespace redlatch::sim {

namespace {

using protocol::Script;

constexpr int64_t kMs = 1000, kSecond = 1'000'000, kMinute = 60 * kSecond;

// Indexes in texts() of the scripts of other libraries.
enum Foreign : size_t {
  kTheirRelease,
  kTheirExtend,
  kCall,
  kPcall,
  kCallBehindDel,
  kErrorOf,
  kNumbers,
  kConversions,
  kErrorReply,
  kStatusReply,
  kRaise,
  kErrorTable,
  kHash,
  kClock,
  kUndefined,
  kForeignCount,
};

constexpr std::array<const char *, kForeignCount> kForeignTexts = {
    "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end\n"
    "local left = redis.call('pttl', KEYS[1])\n"
    "if left < 0 then left = 0 end\n"
    "return redis.call('pexpire', KEYS[1], ARGV[2] + left)",
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "redis.call('del', KEYS[1])\nreturn redis.call(unpack(ARGV))",
    "local reply = redis.pcall(unpack(ARGV))\n"
    "if type(reply) == 'table' and reply.err then return {'error', reply.err} end\n"
    "return {type(reply), reply}",
    "redis.call('set', KEYS[1], ARGV[1] + 0)\n"
    "local text = redis.call('get', KEYS[1])\nredis.call('del', KEYS[1])\nreturn text",
    "return {tonumber(ARGV[1]) or 'none', 2.9, -2.9, 'x', false, true, {ok = ARGV[1]}, {{}},\n"
    "  {err = 'CODE ' .. ARGV[1]}, tostring(1e15), nil, 'never'}",
    "return redis.error_reply(ARGV[1])",
    "return redis.status_reply(ARGV[1])",
    "error(ARGV[1])",
    "return {err = ARGV[1]}",
    "return {redis.sha1hex(ARGV[1]), redis.sha1hex('')}",
    "return redis.call('time')",
    "return misspelt",
};

// Client ids: one has subscribers on both kinds of channel, one on neither, two on one kind each.
constexpr std::array<const char *, 4> kCids = {"aaaaaaaaaaaaaaaaaaaaaA", "bbbbbbbbbbbbbbbbbbbbbQ",
                                               "cccccccccccccccccccccg", "-_09azAZ____________-w"};

Step step(std::vector<std::string> words, Likeness likeness = Likeness::kExact) {
  return {Step::Kind::kCommand, likeness, std::move(words), 0};
}

}  // namespace

const std::vector<LockTexts> &StepMaker::locks(protocol::Format format) {
  const auto make = [](protocol::Format of) {
    return std::vector<LockTexts>{LockTexts({"ns:", "a", of}), LockTexts({"", "b{x}y", of})};
  };
  static const std::vector<LockTexts> strings = make(protocol::Format::kString);
  static const std::vector<LockTexts> hashes = make(protocol::Format::kHash);
  return format == protocol::Format::kHash ? hashes : strings;
}

const std::vector<std::string> &StepMaker::keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all = {"", "other"};
    for (size_t i = 0; i < locks().size(); i++) {
      const LockTexts &lock = locks()[i], &hash = locks(protocol::Format::kHash)[i];
      for (const auto &key : {lock.lock, lock.queue, lock.fence, lock.readers, lock.info, lock.turn,
                              hash.queue, hash.readers, hash.info, hash.turn}) {
        all.push_back(key);
      }
    }
    return all;
  }();
  return keys;
}

const std::vector<std::string> &StepMaker::texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all(kForeignTexts.begin(), kForeignTexts.end());
    for_each_script([&](Script, protocol::Format, const protocol::ScriptText &script) {
      all.emplace_back(script.text());
    });
    return all;
  }();
  return texts;
}

const std::vector<std::string> &StepMaker::channels(bool is_sharded) {
  static const std::string prefix = kPrefix;
  static const std::vector<std::string> plain = {prefix + kCids[0], prefix + kCids[2], "c",
                                                 "redisson_lock__channel:{ns:a}"};
  static const std::vector<std::string> sharded = {prefix + kCids[0], prefix + kCids[3], "s"};
  return is_sharded ? sharded : plain;
}

std::string StepMaker::key() {
  // Mostly the first lock, so that steps meet.
  return is_one_in(3) ? any(keys()) : keys()[2 + below(10)];
}

std::string StepMaker::number() {
  static constexpr const char *kNumbers[] = {"0",
                                             "1",
                                             "2",
                                             "-1",
                                             "-2",
                                             "10",
                                             "-100",
                                             "300",
                                             "1.5",
                                             "0.1",
                                             "1e3",
                                             "007",
                                             " 1",
                                             "",
                                             "abc",
                                             "inf",
                                             "-inf",
                                             "nan",
                                             "1700000000000001",
                                             "9007199254740991",
                                             "9007199254740992",
                                             "9007199254740993",
                                             "-9007199254740993",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "9223372036854775808",
                                             "99999999999999999999"};
  return is_one_in(4) ? any(kNumbers) : std::to_string(below(6));
}

// Whole numbers, for values that scripts compute with: servers before 7.2 write other digits of
// results with fractions.
std::string StepMaker::plain_number() {
  const std::string any_number = number();
  if (any_number == "0.1") return "0.5";
  return any_number.size() > 17 ? "9007199254740993" : any_number;
}

std::string StepMaker::position() {
  static constexpr const char *kPositions[] = {"0", "1", "2", "-1", "-2", "-3", "-100", "300"};
  return is_one_in(8) ? number() : any(kPositions);
}

std::string StepMaker::ms() {
  static constexpr const char *kTimes[] = {"1",    "2",     "50",    "1000",
                                           "5000", "30000", "99999", "100000"};
  return is_one_in(12) ? plain_number() : any(kTimes);
}

std::string StepMaker::token() { return protocol::make_token(any(kCids), 1 + below(3)); }

std::string StepMaker::member() {
  static constexpr int64_t kClaims[] = {0, 1, 500, 5000, 99999};
  static constexpr int64_t kWaits[] = {-1, -1, 0, 1, 3000, 60000};
  if (is_one_in(15)) return text();
  static constexpr protocol::Mode kModes[] = {protocol::Mode::kWrite, protocol::Mode::kWrite,
                                              protocol::Mode::kRead, protocol::Mode::kRead,
                                              protocol::Mode::kUpgrade};
  const int64_t claim = kClaims[below(std::size(kClaims))];
  std::string made =
      protocol::make_member(token(), kModes[below(std::size(kModes))], claim,
                            kWaits[below(std::size(kWaits))], is_one_in(3) ? owner() : "");
  if (claim < 10'000) protocol::set_polls(made, is_one_in(3));
  return made;
}

std::string StepMaker::text() {
  static const std::string texts[] = {"",
                                      "x",
                                      "w",
                                      "0123456789abcdef0123456789abcdef",
                                      std::string("\0\xff\r\n\t", 5),
                                      std::string(300, 'y'),
                                      "-CODE words",
                                      "MANY words, one\r\nline",
                                      "CODE"};
  switch (below(4)) {
    case 0:
      return plain_number();
    case 1:
      return token();
    case 2:
      return member();
    default:
      return any(texts);
  }
}

std::string StepMaker::holder_of(const std::string &key) {
  const auto *value = store_.value_at<std::string>(key);
  return value && !is_one_in(6) ? *value : token();
}

std::string StepMaker::owner() {
  return is_one_in(20) ? text() : any(std::array{"o1", "o2", "another owner"});
}

// A member of the set of those that share this lock: a reader, or a hold of its owner.
std::string StepMaker::sharer_in(const LockTexts &lock) {
  const auto *set = store_.value_at<Store::SortedSet>(lock.readers);
  if (!set || set->order.empty() || is_one_in(5)) return holder_of(lock.lock);
  const auto index = static_cast<int64_t>(below(std::min<size_t>(set->order.size(), 4)));
  return std::next(set->order.begin(), index)->second.substr(0, protocol::kTokenSize);
}

std::string StepMaker::owner_of(const LockTexts &lock) {
  const auto *hash = store_.value_at<Store::Hash>(lock.lock);
  return hash && !hash->empty() && !is_one_in(4) ? hash->begin()->first : owner();
}

std::string StepMaker::queued_in(const std::string &key) {
  const auto *set = store_.value_at<Store::SortedSet>(key);
  if (!set || set->order.empty() || is_one_in(5)) return member();
  const auto index = static_cast<int64_t>(below(std::min<size_t>(set->order.size(), 4)));
  return std::next(set->order.begin(), index)->second;
}

int64_t StepMaker::time(int64_t now_us) {
  switch (below(10)) {
    case 0:
      return now_us + 1;
    case 1:
    case 2:
      return now_us + static_cast<int64_t>(below(10 * kMs));
    case 3:
    case 4:
      return now_us + static_cast<int64_t>(below(2 * kSecond));
    case 5:
      return now_us + static_cast<int64_t>(below(3 * kMinute));
    case 6:
      return now_us - static_cast<int64_t>(below(2 * kMinute));
    default:
      break;
  }
  // Around the end of a key's life.
  std::vector<int64_t> ends;
  for (const auto &[key, entry] : store_.keys()) {
    const int64_t us = entry.expires_ms * kMs;
    if (entry.expires_ms > 0 && us > now_us && us < now_us + 100 * kMinute) ends.push_back(us);
  }
  if (ends.empty()) return now_us;
  static constexpr int64_t kAround[] = {-kMs, -1, 0, kMs - 1, kMs};
  return std::max(now_us, ends[below(ends.size())] + kAround[below(std::size(kAround))]);
}

Step StepMaker::make(int64_t now_us) {
  const size_t choice = below(1000);
  if (choice < 180) return {Step::Kind::kTime, {}, {}, time(now_us)};
  if (choice < 195) return {Step::Kind::kMemory, {}, {}, below(2) != 0};
  if (choice < 205) return {Step::Kind::kPublish, {}, {}, !is_one_in(3)};
  if (choice < 215) return {Step::Kind::kExpire, {}, {}, 0};
  if (choice < 220) return walk();
  if (choice == 220 && is_one_in(2)) {
    return {Step::Kind::kCommand, {}, {"SCRIPT", "FLUSH", "SYNC"}, 0};
  }
  if (choice == 221) return {Step::Kind::kCommand, {}, flood(), 0};
  if (choice < 230) return made_up();
  if (choice < 420) return raw();
  if (choice < 480) return wrapped();
  if (choice < 530) return foreign();
  return script();
}

Step StepMaker::raw() {
  switch (below(8)) {
    case 0:
    case 1:
      return {Step::Kind::kCommand, Likeness::kExact, raw_string(), 0};
    case 2:
    case 3:
      return raw_sorted_set();
    case 4:
      return raw_by_score();
    case 5:
      return raw_hash();
    default:
      return raw_other();
  }
}

StepMaker::Words StepMaker::raw_string() {
  switch (below(13)) {
    case 0:
      return {"GET", key()};
    case 1:
      return {"SET", key(), text()};
    case 2:
      return {"set", key(), token(), "nx", "px", ms()};
    case 3:
      if (is_one_in(2)) return {"SET", key(), text(), "PX", number()};
      return {"SET", key(), text(), "EX", any(std::array{"0", "-1", "1", "60", "x", "1000000"})};
    case 4:
      return {"SET", key(), text(), "PX", ms(), "GET"};
    case 5:
      return {"SET", key(), text(), any(std::array{"NX", "XX", "GET", "KEEPTTL", "BAD", "PX"}),
              any(std::array{"GET", "XX", "NX", "KEEPTTL", "PX"})};
    case 6:
      return {"DEL", key(), key()};
    case 7:
      return {"EXISTS", key(), key()};
    case 8:
      return {"PTTL", key()};
    case 9:
      return {"PEXPIRE", key(), is_one_in(2) ? number() : ms()};
    case 10:
      return {"STRLEN", key()};
    case 11:
      // No ends in the past: servers differ in whether such a key exists for a moment.
      return {is_one_in(2) ? "SET" : "set", key(), text(), "PXAT",
              std::to_string(1'700'100'000'000 + static_cast<int64_t>(below(1'000'000)))};
    default:
      return {"GETRANGE", key(), position(), position()};
  }
}

Step StepMaker::raw_sorted_set() {
  switch (below(11)) {
    case 10:
      return step({"ZADD", key(), "GT", number(), queued_in(locks()[0].queue), number(), member()});
    case 0:
      return step({"ZADD", key(), number(), member()});
    case 1:
      return step({"ZADD", key(), "nx", number(), member(), number(), member()});
    case 2:
      return step({"ZADD", key(), number(), queued_in(locks()[0].queue), number()});
    case 3:
      return step({"ZREM", locks()[0].queue, queued_in(locks()[0].queue), member()});
    case 4:
      return step({"ZRANGE", key(), position(), position()});
    case 5:
      return step({"ZRANGE", locks()[0].queue, position(), position(), "WITHSCORES"},
                  Likeness::kScores);
    case 6:
      return step({"ZSCORE", key(), queued_in(locks()[0].queue)}, Likeness::kScores);
    case 7:
      return step({"ZRANK", key(), queued_in(locks()[0].queue)});
    case 8:
      return step({"ZCARD", key()});
    default:
      if (is_one_in(2)) return step({"ZPOPMIN", key()}, Likeness::kScores);
      return step({"ZPOPMIN", key(), number()}, Likeness::kScores);
  }
}

Step StepMaker::raw_by_score() {
  const auto bound = [&](const char *end) {
    // No blanks: servers differ in whether they accept them here.
    static constexpr const char *kScores[] = {"abc", "(abc", "(1.5", "1700000000001", "-2"};
    if (is_one_in(4)) return any(kScores);
    return is_one_in(3) ? std::string(end) : (is_one_in(2) ? "(" : "") + std::to_string(below(6));
  };
  const std::string low = bound("-inf"), high = bound("+inf");
  switch (below(5)) {
    case 0:
      return step({"ZREMRANGEBYSCORE", key(), low, high});
    case 1:
      return step({"ZCOUNT", key(), low, high});
    case 2:
      return step({"ZRANGEBYSCORE", key(), low, high});
    case 3:
      return step(
          // Servers differ in the meaning of an offset below 0.
          {"ZRANGEBYSCORE", key(), low, high, "WITHSCORES", "LIMIT", std::to_string(below(4)),
           position()},
          Likeness::kScores);
    default:
      return step(
          {"ZRANGEBYSCORE", key(), low, high, any(std::array{"LIMIT", "withscores", "BAD"})},
          Likeness::kScores);
  }
}

Step StepMaker::raw_hash() {
  const std::string &lock = locks()[0].lock;
  const std::string key = is_one_in(2) ? lock : this->key();
  switch (below(10)) {
    case 9:
      return step({"LINDEX", key, "0"});
    case 0:
      return step({"HSET", lock, owner(), std::to_string(1 + below(3))});
    case 1:
      return step({"HEXISTS", key, owner()});
    case 2:
      return step({"HLEN", key});
    case 3:
      return step({"HDEL", key, owner(), text()});
    case 4:
      return step({"HINCRBY", key, owner(), number()});
    case 5: {
      // At least as many as there are: a server draws fewer at random.
      const auto *hash = store_.value_at<Store::Hash>(key);
      return step({"HRANDFIELD", key, hash && hash->size() > 2 ? "300" : "2"}, Likeness::kSet);
    }
    case 6:
      return step({"PUBSUB", "NUMSUB", any(channels(false)), "nobody", any(channels(true))});
    case 7:
      return step({any(std::array{"HRANDFIELD", "PUBSUB", "HLEN", "HEXISTS", "PEXPIREAT"}), key,
                   any(std::array{"x", "1.5"})});
    default:
      return step({"PEXPIREAT", key,
                   is_one_in(4)
                       ? number()
                       : std::to_string(1'699'999'900'000 + static_cast<int64_t>(below(500'000)))});
  }
}

Step StepMaker::raw_other() {
  switch (below(10)) {
    case 0:
      return step({"TYPE", key()});
    case 1:
      return step({"HSET", key(), text(), text(), "token", token()});
    case 2:
      return step({"HSET", key(), text(), text(), text()});
    case 3:
      return step({"HGET", key(), "token"});
    case 4:
      return step({"HGETALL", key()}, Likeness::kPairs);
    case 5:
      return step({"TIME"});
    case 6:
      return step({"PUBLISH", any(channels(is_one_in(2))), text()});
    case 7:
      return step({"SPUBLISH", any(channels(is_one_in(2))), text()});
    case 8:
      return step({any(std::array{"GET", "SET", "ZADD", "HSET", "PTTL", "TIME", "DEL"}), key()});
    default:
      return step({"PEXPIRE", key(), any(std::array{"0", "-1", "1"})});
  }
}

// More waiters than one call examines.
StepMaker::Words StepMaker::flood() {
  Words words = {"ZADD", locks()[0].queue};
  const bool is_one_alive = is_one_in(2);
  for (size_t i = 0; i < 270; i++) {
    words.push_back(std::to_string(1000 + i));
    const auto mode = is_one_alive ? protocol::Mode::kWrite : protocol::Mode::kRead;
    words.push_back(protocol::make_member(protocol::make_token(kCids[1], i), mode, 500, 5));
  }
  if (is_one_alive) {
    words.push_back("5000");
    words.push_back(
        protocol::make_member(protocol::make_token(kCids[0], 1), protocol::Mode::kWrite, 500, -1));
  }
  return words;
}

Step StepMaker::walk() {
  static constexpr const char *kPatterns[] = {
      "*", "ns:*", "?",     "[a-c]*", "",        "*rl1*q", "ns:[^b]*", "\\*",
      "[", "**",   "*{*}*", "b{x}y",  "[z-a]{*", "o",      "a\\",      "n[\\s]:a"};
  Step step = {Step::Kind::kWalk, Likeness::kExact, {"SCAN", "0"}, 1};
  if (!is_one_in(3)) step.words.insert(step.words.end(), {"MATCH", any(kPatterns)});
  if (is_one_in(2)) step.words.insert(step.words.end(), {"COUNT", number()});
  if (is_one_in(3)) {
    step.words.insert(step.words.end(), {"type", any(std::array{"string", "zset", "HASH"})});
  }
  return step;
}

Step StepMaker::called(std::string_view sha1, std::string_view text, Words keys_and_arguments,
                       size_t key_count) {
  Step step;
  if (is_one_in(10)) {
    step.words = {"EVAL", std::string(text)};
  } else {
    step.words = {"EVALSHA", std::string(sha1)};
  }
  step.words.push_back(is_one_in(200) ? number() : std::to_string(key_count));
  step.words.insert(step.words.end(), keys_and_arguments.begin(), keys_and_arguments.end());
  return step;
}

Step StepMaker::called(size_t text, Words keys_and_arguments, size_t key_count) {
  Step step;
  step.words = {"EVAL", kForeignTexts[text], std::to_string(key_count)};
  step.words.insert(step.words.end(), keys_and_arguments.begin(), keys_and_arguments.end());
  return step;
}

// A raw command, called by a script.
Step StepMaker::wrapped() {
  Step inner = raw();
  static constexpr size_t kCallers[] = {kCall, kPcall, kCallBehindDel, kErrorOf};
  const size_t caller = kCallers[below(inner.likeness == Likeness::kExact ? 4 : 3)];
  Words arguments = {key()};
  arguments.insert(arguments.end(), inner.words.begin(), inner.words.end());
  Step step = called(caller, std::move(arguments), 1);
  step.likeness = caller == kErrorOf ? Likeness::kErrorText : inner.likeness;
  return step;
}

// Scripts as other libraries, and mistakes in ours, may be.
Step StepMaker::foreign() {
  const std::string &key = locks()[below(2)].lock;
  switch (below(5)) {
    case 0:
    case 1:
      return called(kTheirRelease, {key, holder_of(key)}, 1);
    case 2:
      return called(kTheirExtend, {key, holder_of(key), ms()}, 1);
    case 3: {
      Step step = called(kNumbers, {this->key(), number()}, 1);
      step.likeness = Likeness::kScores;
      return step;
    }
    default:
      return called(kConversions + below(kForeignCount - kConversions), {text()}, 0);
  }
}

Step StepMaker::made_up() {
  const protocol::ScriptText &known = protocol::script_text(
      static_cast<Script>(below(protocol::kScriptCount)), protocol::Format::kString, is_one_in(2));
  switch (below(8)) {
    case 0:
      return step({"NOSUCHCOMMAND", text()});
    case 1:
      return step({"EVALSHA", std::string(40, 'a'), "0"});
    case 2:
      return step({"EVALSHA", "short", number()});
    case 3:
      return step({"SCRIPT", "LOAD", std::string(known.text())});
    case 4:
      return step({"SCRIPT", "EXISTS", std::string(known.sha1), std::string(40, 'b')});
    case 5:
      return step({any(std::array{"EVAL", "SCRIPT"}), any(std::array{"load", "nosuch"}),
                   any(std::array{"this is no Lua", "0"})});
    case 6:
      return step(
          {"EVAL",
           any(std::array{"return 1", "return +", "return redis.call()", "return redis.call({})",
                          "return redis.call('eval', '', 0)", "return redis.error_reply({})"}),
           number(), "a"});
    default:
      return step({"EVAL"});
  }
}

}  // namespace redlatch::sim
