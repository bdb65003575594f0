// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Commands: SCAN, and its globs.
#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "commands.h"

namespace redlatch::sim {

namespace {

// Match `c` with one `[...]`. `pattern` begins after its opening bracket, and afterwards with the
// text behind its closing one, which may be missing at the end. @return whether `c` matches.
bool takes_class(std::string_view &pattern, char c) {
  const bool is_negated = pattern.starts_with('^');
  if (is_negated) pattern.remove_prefix(1);
  bool is_in = false;
  while (!pattern.empty() && pattern[0] != ']') {
    if (pattern[0] == '\\' && pattern.size() >= 2) {
      is_in |= pattern[1] == c;
      pattern.remove_prefix(2);
    } else if (pattern.size() >= 3 && pattern[1] == '-') {
      const auto [low, high] = std::minmax(pattern[0], pattern[2]);
      is_in |= low <= c && c <= high;
      pattern.remove_prefix(3);
    } else {
      is_in |= pattern[0] == c;
      pattern.remove_prefix(1);
    }
  }
  if (!pattern.empty()) pattern.remove_prefix(1);
  return is_in != is_negated;
}

struct ScanOptions {
  std::string_view pattern = "*", type;
  int64_t count = 10;
};

// @return nil, or an error.
Value parse(Argv words, ScanOptions &options) {
  for (; !words.empty(); words = words.subspan(2)) {
    if (words.size() < 2) return syntax_error();
    if (is_equal_ignoring_case(words[0], "match")) {
      options.pattern = words[1];
    } else if (is_equal_ignoring_case(words[0], "type")) {
      options.type = words[1];
    } else if (is_equal_ignoring_case(words[0], "count")) {
      if (!parse_integer(words[1], options.count)) return not_an_integer();
      if (options.count < 1) return syntax_error();
    } else {
      return syntax_error();
    }
  }
  return Value::nil();
}

// Only these patterns match the empty key; not even `**` does.
bool is_wanted(std::string_view key, std::string_view pattern) {
  return key.empty() ? pattern.empty() || pattern == "*" : matches_glob(pattern, key);
}

// FNV-1a, and never 0, which is the cursor of the start.
uint64_t place_of(std::string_view key) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return std::max<uint64_t>(hash, 1);
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  while (!pattern.empty()) {
    const char c = pattern.front();
    if (c == '*') {
      pattern.remove_prefix(1);
      if (pattern.empty()) return true;
      for (;; text.remove_prefix(1)) {
        if (matches_glob(pattern, text)) return true;
        if (text.empty()) return false;
      }
    }
    if (text.empty()) return false;
    pattern.remove_prefix(1);
    if (c == '[') {
      if (!takes_class(pattern, text.front())) return false;
    } else if (c != '?') {
      char wanted = c;
      if (c == '\\' && !pattern.empty()) {
        wanted = pattern.front();
        pattern.remove_prefix(1);
      }
      if (wanted != text.front()) return false;
    }
    text.remove_prefix(1);
  }
  return text.empty();
}

// Keys are listed in the order of their hashes, and a cursor is such a hash, so that it stays valid
// while keys come and go.
Value Commands::scan(Argv argv) {
  uint64_t cursor = 0;
  const char *end = argv[1].data() + argv[1].size();
  const auto read = std::from_chars(argv[1].data(), end, cursor);
  if (read.ec != std::errc() || read.ptr != end) return Value::error("ERR invalid cursor");
  ScanOptions options;
  if (Value error = parse(argv.subspan(2), options); error.is_error()) return error;

  std::vector<std::pair<uint64_t, std::string>> ahead;
  for (const auto &[key, entry] : store_.keys_) {
    if (const uint64_t place = place_of(key); place >= cursor) ahead.emplace_back(place, key);
  }
  std::sort(ahead.begin(), ahead.end());
  uint64_t next = 0;
  std::vector<Value> keys;
  for (const auto &[place, key] : ahead) {
    if (options.count <= 0 && place != cursor) {
      next = place;
      break;
    }
    options.count--;
    cursor = place;  // Keys with equal hashes are in one reply.
    if (!is_wanted(key, options.pattern)) continue;
    const std::string_view words[] = {"type", key};
    const Value kind = type(words);
    if (kind.text == "none") continue;
    if (!options.type.empty() && !is_equal_ignoring_case(options.type, kind.text)) continue;
    keys.push_back(Value::of(key));
  }
  return Value::list({Value::of(std::to_string(next)), Value::list(std::move(keys))});
}

}  // namespace redlatch::sim
