// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/keys.h"

#include <algorithm>
#include <cassert>

#include "base/limits.h"
#include "base/text.h"
#include "protocol/slots.h"
#include "protocol/token.h"

namespace redlatch::protocol {

bool is_auxiliary(std::string_view key) {
  while (!key.empty() && ((key.back() | 0x20) >= 'a' && (key.back() | 0x20) <= 'z')) {
    key.remove_suffix(1);
  }
  return key.ends_with(":rl1:") || key.ends_with(":rl1.");
}

bool is_client_name(std::string_view key) {
  constexpr std::string_view kMark = "rl1:";
  if (key.size() < kMark.size() + kCidSize) return false;
  const std::string_view end = key.substr(key.size() - kMark.size() - kCidSize);
  return end.starts_with(kMark) && std::all_of(end.begin() + kMark.size(), end.end(), [](char c) {
           const bool is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
           return is_letter || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

// The suffixes of both forms differ, so that the locks `a` and `{a}` share no key.
LockKeys::LockKeys(std::string_view name_space, std::string_view name, Format lock_format)
    : format(lock_format) {
  constexpr size_t kParts = 6;
  constexpr size_t kMostAdded = 9;  // to both names: "{" and "}:rl1:hq"
  const size_t lock_size = name_space.size() + name.size();
  const size_t most = lock_size + kParts * (name_space.size() + lock_size + kMostAdded);
  text_.reserve(most);
  text_.append(name_space).append(name);
  if (hash_tag(text_).size() < lock_size) {
    text_.append(text_, 0, lock_size).append(":rl1.");
  } else {
    text_.append(name_space).append("{").append(text_, 0, lock_size).append("}:rl1:");
  }
  const size_t stem_size = text_.size() - lock_size;
  text_ += 'f';
  const auto add = [&](char suffix, bool is_of_format) {
    const size_t begin = text_.size();
    text_.append(text_, lock_size, stem_size);
    if (is_of_format) text_ += traits().letter;
    return std::string_view(text_ += suffix).substr(begin);
  };
  const std::string_view text = text_;
  lock = text.substr(0, lock_size);
  fence = text.substr(lock_size);
  absent = add('n', false);
  queue = add('q', true);
  readers = add('r', true);
  info = add('i', true);
  turn = add(traits().has_permits ? 'c' : 'w', true);
  assert(text_.size() <= most && "a second allocation would move the keys");
}

namespace {

std::string key_beside(const LockKeys &keys, char suffix) {
  assert(keys.fence.ends_with('f'));
  std::string key(keys.fence);
  key.back() = suffix;
  return key;
}

}  // namespace

std::string mark_key(const LockKeys &keys) { return key_beside(keys, 'o'); }
std::string value_key(const LockKeys &keys) { return key_beside(keys, 'v'); }
std::string candidates_key(const LockKeys &keys) { return key_beside(keys, 'e'); }

std::string reader_key(const LockKeys &keys, std::string_view token) {
  const bool has_brace = keys.lock.find('{') != std::string_view::npos;
  std::string key(has_brace ? "" : "{");
  key.append(keys.lock).append(has_brace ? ":" : "}:");
  return key.append(token).append(":rwlock_timeout:1");
}

Outcome check_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return failure(Status::kInvalid, "name must be 1 to " + std::to_string(kMaxNameBytes) +
                                         " bytes (got " + std::to_string(name.size()) + " bytes)");
  }
  if (is_auxiliary(name)) {
    return failure(Status::kInvalid,
                   "name must not end in ':rl1:' or ':rl1.' and letters, as the "
                   "keys of redlatch do (got " +
                       quoted(name) + ")");
  }
  return {};
}

std::string key_pattern(std::string_view name_space, std::string_view pattern) {
  std::string glob;
  for (const char c : name_space) {
    if (std::string_view("*?[]\\^-").find(c) != std::string_view::npos) glob += '\\';
    glob += c;
  }
  return glob.append(pattern);
}

std::string channel_prefix(std::string_view name_space) { return std::string(name_space) + "rl1:"; }

}  // namespace redlatch::protocol
