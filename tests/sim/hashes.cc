// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Commands: those on hashes.
#include <limits>

#include "commands.h"

namespace redlatch::sim {

Value Commands::hset(Argv argv) {
  if (argv.size() % 2 != 0) return wrong_count("hset");
  auto &hash = obtain<Store::Hash>(argv[1]);
  int64_t added = 0;
  for (size_t i = 2; i < argv.size(); i += 2) {
    added += hash.insert_or_assign(std::string(argv[i]), std::string(argv[i + 1])).second;
  }
  changed(argv[1]);
  return Value::of(added);
}

Value Commands::hget(Argv argv) {
  const auto &hash = read<Store::Hash>(argv[1]);
  const auto found = hash.find(argv[2]);
  return found == hash.end() ? Value::nil() : Value::of(found->second);
}

Value Commands::hgetall(Argv argv) {
  Value reply = Value::list({});
  for (const auto &[field, value] : read<Store::Hash>(argv[1])) {
    reply.items.push_back(Value::of(field));
    reply.items.push_back(Value::of(value));
  }
  return reply;
}

Value Commands::hexists(Argv argv) {
  return Value::of(int64_t{read<Store::Hash>(argv[1]).contains(argv[2])});
}

Value Commands::hlen(Argv argv) {
  return Value::of(static_cast<int64_t>(read<Store::Hash>(argv[1]).size()));
}

Value Commands::hdel(Argv argv) {
  auto *hash = lookup<Store::Hash>(argv[1]);
  int64_t count = 0;
  for (const std::string_view field : argv.subspan(2)) {
    const auto found = hash ? hash->find(field) : Store::Hash::iterator();
    if (!hash || found == hash->end()) continue;
    hash->erase(found);
    count++;
  }
  if (count > 0) shrunk(argv[1], hash->empty());
  return Value::of(count);
}

Value Commands::hincrby(Argv argv) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  int64_t by = 0;
  if (!parse_integer(argv[3], by)) return not_an_integer();
  const auto &hash = read<Store::Hash>(argv[1]);
  int64_t number = 0;
  const auto found = hash.find(argv[2]);
  if (found != hash.end() && !parse_integer(found->second, number)) {
    return Value::error("ERR hash value is not an integer");
  }
  if (by < 0 ? number < kMin - by : number > kMax - by) {
    return Value::error("ERR increment or decrement would overflow");
  }
  obtain<Store::Hash>(argv[1]).insert_or_assign(std::string(argv[2]), std::to_string(number + by));
  changed(argv[1]);
  return Value::of(number + by);
}

// A server draws random fields; this one takes the first, so that equal runs are equal. Scripts
// must not depend on which fields they get.
Value Commands::hrandfield(Argv argv) {
  int64_t count = 1;
  if (argv.size() > 2 && !parse_integer(argv[2], count)) return not_an_integer();
  if (argv.size() > 3) return syntax_error();
  const auto &hash = read<Store::Hash>(argv[1]);
  if (argv.size() == 2) return hash.empty() ? Value::nil() : Value::of(hash.begin()->first);
  Value reply = Value::list({});
  for (const auto &[field, value] : hash) {
    if (count-- <= 0) break;
    reply.items.push_back(Value::of(field));
  }
  return reply;
}

}  // namespace redlatch::sim
