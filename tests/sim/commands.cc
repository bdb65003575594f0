// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "commands.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "lua_host.h"

namespace redlatch::sim {

Value wrong_type() {
  return Value::error("WRONGTYPE Operation against a key holding the wrong kind of value");
}
Value not_an_integer() { return Value::error("ERR value is not an integer or out of range"); }
Value syntax_error() { return Value::error("ERR syntax error"); }
Value wrong_count(std::string_view command) {
  return Value::error("ERR wrong number of arguments for '" + std::string(command) + "' command");
}

bool parse_integer(std::string_view text, int64_t &number) {
  const char *end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return false;
  const bool is_negative = text.front() == '-';
  return text[is_negative] != '0' || text == "0";
}

bool parse_score(std::string_view text, double &score) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front()))) return false;
  const std::string copy(text);  // strtod wants an end
  char *end = nullptr;
  errno = 0;
  score = std::strtod(copy.c_str(), &end);
  if (end != copy.c_str() + copy.size() || std::isnan(score)) return false;
  return errno != ERANGE || (!std::isinf(score) && score != 0);
}

std::string format_score(double score) {
  std::array<char, 40> digits;
  char *end = digits.data();
  // Tickets are whole numbers: the usual case, and printf is slow. It also knows -0.
  const bool is_plain = score != 0 || !std::signbit(score);
  if (score == std::trunc(score) && std::abs(score) < 1e17 && is_plain) {
    end = std::to_chars(end, end + digits.size(), static_cast<int64_t>(score)).ptr;
  } else {
    end += std::snprintf(end, digits.size(), "%.17g", score);
  }
  return {digits.data(), end};
}

bool is_equal_ignoring_case(std::string_view text, std::string_view lower) {
  return std::equal(text.begin(), text.end(), lower.begin(), lower.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a) == b;
  });
}

const Commands::Command *Commands::find(std::string_view name) {
  static constexpr Command kTable[] = {
      {"del", -2, kWrite, &Commands::del},
      {"eval", -3, kNoScript, &Commands::eval},
      {"evalsha", -3, kNoScript, &Commands::evalsha},
      {"exists", -2, 0, &Commands::exists},
      {"get", 2, 0, &Commands::get},
      {"getrange", 4, 0, &Commands::getrange},
      {"hdel", -3, kWrite, &Commands::hdel},
      {"hexists", 3, 0, &Commands::hexists},
      {"hget", 3, 0, &Commands::hget},
      {"hgetall", 2, 0, &Commands::hgetall},
      {"hincrby", 4, kWrite | kDenyOom, &Commands::hincrby},
      {"hlen", 2, 0, &Commands::hlen},
      {"hrandfield", -2, 0, &Commands::hrandfield},
      {"hset", -4, kWrite | kDenyOom, &Commands::hset},
      {"lindex", 3, 0, &Commands::lindex},
      {"pexpire", 3, kWrite, &Commands::pexpire},
      {"pexpireat", 3, kWrite, &Commands::pexpireat},
      {"pttl", 2, 0, &Commands::pttl},
      {"publish", 3, kPublish, &Commands::publish},
      {"pubsub", -2, 0, &Commands::pubsub},
      {"scan", -2, 0, &Commands::scan},
      {"script", -2, kNoScript, &Commands::script},
      {"set", -3, kWrite | kDenyOom, &Commands::set},
      {"spublish", 3, kPublish, &Commands::spublish},
      {"strlen", 2, 0, &Commands::strlen},
      {"time", 1, 0, &Commands::time},
      {"type", 2, 0, &Commands::type},
      {"zadd", -4, kWrite | kDenyOom, &Commands::zadd},
      {"zcard", 2, 0, &Commands::zcard},
      {"zcount", 4, 0, &Commands::zcount},
      {"zpopmin", -2, kWrite, &Commands::zpopmin},
      {"zrange", -4, 0, &Commands::zrange},
      {"zrangebyscore", -4, 0, &Commands::zrangebyscore},
      {"zrank", 3, 0, &Commands::zrank},
      {"zrem", -3, kWrite, &Commands::zrem},
      {"zremrangebyscore", 4, kWrite, &Commands::zremrangebyscore},
      {"zscore", 3, 0, &Commands::zscore},
  };
  std::array<char, 16> lower;
  if (name.size() > lower.size()) return nullptr;
  std::transform(name.begin(), name.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string_view wanted(lower.data(), name.size());
  const Command *found =
      std::lower_bound(std::begin(kTable), std::end(kTable), wanted,
                       [](const Command &a, std::string_view b) { return a.name < b; });
  return found != std::end(kTable) && found->name == wanted ? found : nullptr;
}

Value Commands::execute(Argv argv) {
  if (argv.empty()) return Value::error("ERR no command");
  const Command *command = find(argv[0]);
  if (!command) {
    std::string message = "ERR unknown command '";
    message.append(argv[0]).append("', with args beginning with: ");
    for (const std::string_view argument : argv.subspan(1)) {
      message.append("'").append(argument).append("' ");
    }
    return Value::error(std::move(message));
  }
  if (!command->takes(argv.size())) return wrong_count(command->name);
  if ((command->flags & kPublish) && !store_.may_publish_) {
    return Value::error(
        "NOPERM this user has no permissions to access one of the channels used as arguments");
  }
  if ((command->flags & kWrite) && store_.is_replica_) {
    return Value::error("READONLY You can't write against a read only replica.");
  }
  if ((command->flags & kDenyOom) && store_.is_out_of_memory_) {
    return Value::error("OOM command not allowed when used memory > 'maxmemory'.");
  }
  return run(*command, argv);
}

Value Commands::run(const Command &command, Argv argv) try {
  return (this->*command.action)(argv);
} catch (const WrongType &) {
  return wrong_type();
}

Store::Entry *Commands::lookup(std::string_view key) {
  const auto found = store_.keys_.find(key);
  if (found == store_.keys_.end()) return nullptr;
  if (found->second.expires_ms < 0 || now_ms() <= found->second.expires_ms) return &found->second;
  store_.keys_.erase(found);
  changed(key);
  return nullptr;
}

void Commands::remove(std::string_view key) {
  store_.keys_.erase(store_.keys_.find(key));
  changed(key);
}

Value Commands::del(Argv argv) {
  int64_t count = 0;
  for (const std::string_view key : argv.subspan(1)) {
    if (!lookup(key)) continue;
    remove(key);
    count++;
  }
  return Value::of(count);
}

Value Commands::exists(Argv argv) {
  int64_t count = 0;
  for (const std::string_view key : argv.subspan(1)) count += lookup(key) != nullptr;
  return Value::of(count);
}

Value Commands::pttl(Argv argv) {
  const Store::Entry *entry = lookup(argv[1]);
  if (!entry) return Value::of(int64_t{-2});
  if (entry->expires_ms < 0) return Value::of(int64_t{-1});
  return Value::of(entry->expires_ms - now_ms());
}

Value Commands::pexpire(Argv argv) {
  int64_t ms = 0;
  if (!parse_integer(argv[2], ms)) return not_an_integer();
  if (ms > std::numeric_limits<int64_t>::max() - now_ms()) {
    return Value::error("ERR invalid expire time in 'pexpire' command");
  }
  return expire_at(argv[1], now_ms() + ms);
}

Value Commands::pexpireat(Argv argv) {
  int64_t ms = 0;
  if (!parse_integer(argv[2], ms)) return not_an_integer();
  return expire_at(argv[1], ms);
}

Value Commands::expire_at(std::string_view key, int64_t ms) {
  Store::Entry *entry = lookup(key);
  if (!entry) return Value::of(int64_t{0});
  if (ms <= now_ms()) {
    remove(key);
  } else {
    entry->expires_ms = ms;
    changed(key);
  }
  return Value::of(int64_t{1});
}

Value Commands::type(Argv argv) {
  static constexpr const char *kNames[] = {"string", "hash", "zset"};
  const Store::Entry *entry = lookup(argv[1]);
  return Value::status(entry ? kNames[entry->data.index()] : "none");
}

// The store has no lists.
Value Commands::lindex(Argv argv) { return lookup(argv[1]) ? wrong_type() : Value::nil(); }

Value Commands::time(Argv) {
  const int64_t us = store_.now_us_;
  Value reply = Value::list({});
  reply.items.reserve(2);
  reply.items.push_back(Value::of(std::to_string(us / 1'000'000)));
  reply.items.push_back(Value::of(std::to_string(us % 1'000'000)));
  return reply;
}

Value Commands::publish(Argv argv) {
  return Value::of(store_.listener_.published(argv[1], argv[2], false));
}

Value Commands::spublish(Argv argv) {
  return Value::of(store_.listener_.published(argv[1], argv[2], true));
}

Value Commands::pubsub(Argv argv) {
  if (!is_equal_ignoring_case(argv[1], "numsub")) {
    return Value::error("ERR unknown subcommand '" + std::string(argv[1]) + "'. Try PUBSUB HELP.");
  }
  Value reply = Value::list({});
  for (const std::string_view channel : argv.subspan(2)) {
    reply.items.push_back(Value::of(std::string(channel)));
    reply.items.push_back(Value::of(store_.listener_.subscribers(channel)));
  }
  return reply;
}

Value Commands::eval(Argv argv) { return store_.lua_->eval(argv); }

Value Commands::evalsha(Argv argv) { return store_.lua_->evalsha(argv); }

Value Commands::script(Argv argv) { return store_.lua_->script(argv); }

}  // namespace redlatch::sim
