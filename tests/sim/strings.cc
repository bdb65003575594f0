// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Commands: those on strings.
#include <limits>

#include "commands.h"

namespace redlatch::sim {

namespace {

struct SetOptions {
  bool is_new_only = false, is_old_only = false, does_get = false, keeps_expiry = false;
  bool has_expiry = false, is_in_seconds = false, is_absolute = false;
  std::string_view expiry;
};

bool parse(Argv options, SetOptions &set) {
  for (size_t i = 0; i < options.size(); i++) {
    const std::string_view word = options[i];
    const bool is_at = is_equal_ignoring_case(word, "pxat");
    const bool is_px = is_at || is_equal_ignoring_case(word, "px");
    if (is_equal_ignoring_case(word, "nx") && !set.is_old_only) {
      set.is_new_only = true;
    } else if (is_equal_ignoring_case(word, "xx") && !set.is_new_only) {
      set.is_old_only = true;
    } else if (is_equal_ignoring_case(word, "get")) {
      set.does_get = true;
    } else if (is_equal_ignoring_case(word, "keepttl") && !set.has_expiry) {
      set.keeps_expiry = true;
    } else if ((is_px || is_equal_ignoring_case(word, "ex")) && !set.keeps_expiry &&
               !set.has_expiry && i + 1 < options.size()) {
      set.has_expiry = true;
      set.is_in_seconds = !is_px;
      set.is_absolute = is_at;
      set.expiry = options[++i];
    } else {
      return false;
    }
  }
  return true;
}

// @return false: `error` says why.
bool expiry_of(const SetOptions &set, int64_t now_ms, int64_t &expires_ms, Value &error) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t time = 0;
  if (!parse_integer(set.expiry, time)) {
    error = not_an_integer();
    return false;
  }
  const int64_t unit = set.is_in_seconds ? 1000 : 1;
  if (set.is_absolute) now_ms = 0;
  if (time <= 0 || time > kMax / unit || time * unit > kMax - now_ms) {
    error = Value::error("ERR invalid expire time in 'set' command");
    return false;
  }
  expires_ms = now_ms + time * unit;
  return true;
}

}  // namespace

Value Commands::get(Argv argv) {
  const auto *text = lookup<std::string>(argv[1]);
  return text ? Value::of(*text) : Value::nil();
}

Value Commands::set(Argv argv) {
  SetOptions options;
  if (!parse(argv.subspan(3), options)) return syntax_error();
  int64_t expires_ms = -1;
  Value reply;
  if (options.has_expiry && !expiry_of(options, now_ms(), expires_ms, reply)) return reply;
  Store::Entry *entry = lookup(argv[1]);
  if (options.does_get && entry) {
    const auto *old = std::get_if<std::string>(&entry->data);
    if (!old) return wrong_type();
    reply = Value::of(*old);
  }
  if (entry ? options.is_new_only : options.is_old_only) return reply;
  if (!entry) entry = &store_.keys_[std::string(argv[1])];
  if (auto *old = std::get_if<std::string>(&entry->data)) {
    old->assign(argv[2]);
  } else {
    entry->data.emplace<std::string>(argv[2]);
  }
  if (!options.keeps_expiry) entry->expires_ms = expires_ms;
  changed(argv[1]);
  return options.does_get ? reply : Value::status("OK");
}

Value Commands::strlen(Argv argv) {
  return Value::of(static_cast<int64_t>(read<std::string>(argv[1]).size()));
}

Value Commands::getrange(Argv argv) {
  int64_t first = 0, last = 0;
  if (!parse_integer(argv[2], first) || !parse_integer(argv[3], last)) return not_an_integer();
  const auto &text = read<std::string>(argv[1]);
  // The last two negative and crossed stay crossed, where both would become 0 below.
  if (text.empty() || (first < 0 && last < 0 && first > last)) return Value::of("");
  const auto size = static_cast<int64_t>(text.size());
  if (first < 0) first = std::max<int64_t>(first + size, 0);
  if (last < 0) last = std::max<int64_t>(last + size, 0);
  last = std::min(last, size - 1);
  if (first > last) return Value::of("");
  return Value::of(text.substr(static_cast<size_t>(first), static_cast<size_t>(last - first + 1)));
}

}  // namespace redlatch::sim
