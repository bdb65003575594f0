// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Commands: those on sorted sets.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "commands.h"

namespace redlatch::sim {

void Commands::put(Store::SortedSet &set, std::string_view key, std::string_view member,
                   double score) {
  auto found = set.scores.find(member);
  if (found != set.scores.end()) {
    const double old = found->second;
    found->second = score;
    set.order.erase({old, found->first});
    set.order.emplace(score, found->first);
    store_.listener_.dequeued(key, member, old);
  } else {
    set.scores.emplace(member, score);
    set.order.emplace(score, member);
  }
  store_.listener_.queued(key, member, score);
}

void Commands::take(Store::SortedSet &set, std::string_view key, std::string_view member) {
  const auto found = set.scores.find(member);
  const double score = found->second;
  auto node = set.scores.extract(found);
  set.order.erase({score, node.key()});
  store_.listener_.dequeued(key, node.key(), score);
}

Value Commands::zadd(Argv argv) {
  const bool is_new_only = is_equal_ignoring_case(argv[2], "nx");
  const bool is_rise_only = is_equal_ignoring_case(argv[2], "gt");
  const Argv pairs = argv.subspan(is_new_only || is_rise_only ? 3 : 2);
  if (pairs.empty() || pairs.size() % 2 != 0) return syntax_error();
  std::vector<double> scores(pairs.size() / 2);
  for (size_t i = 0; i < scores.size(); i++) {
    if (!parse_score(pairs[2 * i], scores[i])) {
      return Value::error("ERR value is not a valid float");
    }
  }
  auto &set = obtain<Store::SortedSet>(argv[1]);
  int64_t added = 0, updated = 0;
  for (size_t i = 0; i < scores.size(); i++) {
    const std::string_view member = pairs[2 * i + 1];
    const auto found = set.scores.find(member);
    const bool is_there = found != set.scores.end();
    if (is_there && (is_new_only || found->second == scores[i])) continue;
    if (is_there && is_rise_only && found->second > scores[i]) continue;
    put(set, argv[1], member, scores[i]);
    (is_there ? updated : added)++;
  }
  if (added + updated > 0) changed(argv[1]);
  return Value::of(added);
}

Value Commands::zrem(Argv argv) {
  auto *set = lookup<Store::SortedSet>(argv[1]);
  if (!set) return Value::of(int64_t{0});
  int64_t count = 0;
  for (const std::string_view member : argv.subspan(2)) {
    if (set->scores.find(member) == set->scores.end()) continue;
    take(*set, argv[1], member);
    count++;
  }
  if (count > 0) shrunk(argv[1], set->scores.empty());
  return Value::of(count);
}

Value Commands::zrange(Argv argv) {
  const bool has_scores = argv.size() > 4;
  if (argv.size() > 5 || (has_scores && !is_equal_ignoring_case(argv[4], "withscores"))) {
    return syntax_error();
  }
  int64_t first = 0, last = 0;
  if (!parse_integer(argv[2], first) || !parse_integer(argv[3], last)) return not_an_integer();
  const auto &set = read<Store::SortedSet>(argv[1]);
  Value reply = Value::list({});
  const auto size = static_cast<int64_t>(set.order.size());
  if (first < 0) first = std::max<int64_t>(first + size, 0);
  if (last < 0) last += size;
  last = std::min(last, size - 1);
  if (first > last) return reply;
  reply.items.reserve(static_cast<size_t>(last - first + 1) * (has_scores ? 2 : 1));
  // A queue may be long, and scripts read its end as often as its beginning.
  auto at = first < size / 2 ? std::next(set.order.begin(), first)
                             : std::prev(set.order.end(), size - first);
  for (int64_t i = first; i <= last; i++, ++at) {
    reply.items.push_back(Value::of(at->second));
    if (has_scores) reply.items.push_back(Value::of(format_score(at->first)));
  }
  return reply;
}

Value Commands::zscore(Argv argv) {
  const auto &scores = read<Store::SortedSet>(argv[1]).scores;
  const auto found = scores.find(argv[2]);
  return found == scores.end() ? Value::nil() : Value::of(format_score(found->second));
}

Value Commands::zrank(Argv argv) {
  const auto &set = read<Store::SortedSet>(argv[1]);
  const auto found = set.scores.find(argv[2]);
  if (found == set.scores.end()) return Value::nil();
  int64_t rank = 0;
  for (const auto &[score, member] : set.order) {
    if (score == found->second && member == found->first) break;
    rank++;
  }
  return Value::of(rank);
}

Value Commands::zcard(Argv argv) {
  return Value::of(static_cast<int64_t>(read<Store::SortedSet>(argv[1]).scores.size()));
}

Value Commands::zpopmin(Argv argv) {
  if (argv.size() > 3) return syntax_error();
  int64_t count = 1;
  if (argv.size() == 3 && (!parse_integer(argv[2], count) || count < 0)) {
    return Value::error("ERR value is out of range, must be positive");
  }
  auto *set = lookup<Store::SortedSet>(argv[1]);
  Value reply = Value::list({});
  if (!set || count == 0) return reply;
  for (; count > 0 && !set->order.empty(); count--) {
    auto node = set->order.extract(set->order.begin());
    const auto &[score, member] = node.value();
    set->scores.erase(set->scores.find(member));
    store_.listener_.dequeued(argv[1], member, score);
    reply.items.push_back(Value::of(member));
    reply.items.push_back(Value::of(format_score(score)));
  }
  shrunk(argv[1], set->order.empty());
  return reply;
}

// ---- by score ----------------------------------------------------------------------------------

namespace {

// One end of a range: "5", "(5" without 5 itself, "-inf".
struct Bound {
  double score = 0;
  bool is_excluded = false;

  bool parse(std::string_view text) {
    is_excluded = text.starts_with('(');
    const std::string copy(text.substr(is_excluded));  // strtod wants an end
    char *end = nullptr;
    score = std::strtod(copy.c_str(), &end);
    return *end == '\0' && end == copy.c_str() + copy.size() && !std::isnan(score);
  }
};

struct Range {
  Bound low, high;

  bool holds(double score) const {
    return (low.is_excluded ? score > low.score : score >= low.score) &&
           (high.is_excluded ? score < high.score : score <= high.score);
  }
};

Value not_a_float() { return Value::error("ERR min or max is not a float"); }

}  // namespace

Value Commands::zcount(Argv argv) {
  Range range;
  if (!range.low.parse(argv[2]) || !range.high.parse(argv[3])) return not_a_float();
  const auto &order = read<Store::SortedSet>(argv[1]).order;
  return Value::of(int64_t{std::count_if(
      order.begin(), order.end(), [&](const auto &entry) { return range.holds(entry.first); })});
}

Value Commands::zrangebyscore(Argv argv) {
  bool has_scores = false;
  int64_t skipped = 0, count = -1;
  for (Argv words = argv.subspan(4); !words.empty();) {
    const bool is_limit = is_equal_ignoring_case(words[0], "limit") && words.size() > 2;
    if (is_limit && (!parse_integer(words[1], skipped) || !parse_integer(words[2], count))) {
      return not_an_integer();
    }
    if (!is_limit && !is_equal_ignoring_case(words[0], "withscores")) return syntax_error();
    has_scores |= !is_limit;
    words = words.subspan(is_limit ? 3 : 1);
  }
  Range range;
  if (!range.low.parse(argv[2]) || !range.high.parse(argv[3])) return not_a_float();
  const auto &order = read<Store::SortedSet>(argv[1]).order;
  Value reply = Value::list({});
  if (skipped < 0) return reply;
  for (const auto &[score, member] : order) {
    if (!range.holds(score) || skipped-- > 0) continue;
    if (count-- == 0) break;
    reply.items.push_back(Value::of(member));
    if (has_scores) reply.items.push_back(Value::of(format_score(score)));
  }
  return reply;
}

Value Commands::zremrangebyscore(Argv argv) {
  Range range;
  if (!range.low.parse(argv[2]) || !range.high.parse(argv[3])) return not_a_float();
  auto *set = lookup<Store::SortedSet>(argv[1]);
  std::vector<std::string> gone;
  if (set) {
    for (const auto &[score, member] : set->order) {
      if (range.holds(score)) gone.push_back(member);
    }
  }
  for (const std::string &member : gone) take(*set, argv[1], member);
  if (!gone.empty()) shrunk(argv[1], set->scores.empty());
  return Value::of(static_cast<int64_t>(gone.size()));
}

}  // namespace redlatch::sim
