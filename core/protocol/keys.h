// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Names of keys and channels (docs/wire.md, "Keys").
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "protocol/scripts.h"

namespace redlatch::protocol {

// The keys of one lock, all in the slot of the lock key. Formats share nothing but the lock key and
// the fence: a queue never mixes them.
class LockKeys {
 public:
  Format format;
  std::string_view lock;     // the lock itself, which other lock libraries see
  std::string_view queue;    // zset of waiters
  std::string_view fence;    // last fence
  std::string_view readers;  // zset of the readers, and when each lease ends
  std::string_view info;     // the description of the holder, for people
  std::string_view turn;  // whose turn it is, ours or that of other libraries; of a semaphore: its
                          // cap
  std::string_view absent;  // never exists: see ServerFeatures::is_cluster

  LockKeys(std::string_view name_space, std::string_view name, Format lock_format);
  LockKeys(const LockKeys &) = delete;
  LockKeys &operator=(const LockKeys &) = delete;

  const FormatTraits &traits() const { return protocol::traits(format); }

 private:
  std::string text_;  // all of them: one allocation, because most acquires make them anew
};

// The key of the marks of once, and that of the value of a flight. No format has its own.
std::string mark_key(const LockKeys &keys);
std::string value_key(const LockKeys &keys);
std::string candidates_key(const LockKeys &keys);

// The key by which Redisson knows that a reader is alive, in a format with reader keys.
std::string reader_key(const LockKeys &keys, std::string_view token);

// True if a key ends like the auxiliary keys of a lock.
bool is_auxiliary(std::string_view key);

// True if a key ends like those that hold the names of clients.
bool is_client_name(std::string_view key);

// 1 to kMaxNameBytes bytes that cannot be taken for an auxiliary key.
Outcome check_name(std::string_view name);

// The glob that finds the lock keys of `name_space` whose names match the glob `pattern`.
std::string key_pattern(std::string_view name_space, std::string_view pattern);

// Channels of clients begin with this; a client's own is prefix + cid.
std::string channel_prefix(std::string_view name_space);

}  // namespace redlatch::protocol
