// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Tokens and queue members: fixed-width text that the scripts take apart by position.
//
//   token  = cid (22, base64url of 16 random bytes) rid (10 lower-case hex)
//   member = token (32) mode (1) provisional ms (5; `+` for the first digit: the waiter polls)
//            wait ms (13; 9999999999999 = no limit), and in the hash format the owner, unless that
//            is the token itself
//
// Everything in a member is known before the first send and never changes, so that enqueueing again
// after a lost reply finds the same place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace redlatch::protocol {

inline constexpr size_t kCidSize = 22;
using redlatch::kTokenSize;
inline constexpr size_t kMemberSize = 51;

// The mode that a waiter requests. kUpgrade: a reader that keeps its lease while it waits.
enum class Mode : char { kWrite = 'x', kRead = 's', kUpgrade = 'u' };

// The value of the lock key while readers share it.
inline constexpr std::string_view kShared = "rl:shared";
// .. while permits are out: before their number.
inline constexpr std::string_view kPermitsPrefix = "rl:permits:";

std::string make_cid(std::span<const uint8_t, 16> random);
// The first digit of its rid says that the client answers a recall: it may retain the lock when its
// caller has released it. Numbers of tokens stay below.
inline constexpr uint64_t kRecallable = uint64_t{1} << 39;
std::string make_token(std::string_view cid, uint64_t rid, bool is_recallable = false);
bool is_recallable(std::string_view token);
// `wait_ms` < 0: no limit.
std::string make_member(std::string_view token, Mode mode, int64_t provisional_ms, int64_t wait_ms,
                        std::string_view owner = {});
// The text by which a request asks for permits: how many, and the limit that it allows.
std::string claim_of(int64_t permits, int64_t limit);
// The number of permits in a claim, or behind the token of an entry; 0: it has none.
int64_t permits_in(std::string_view claim);
// The limit in a claim, or in the value of the lock key; 0: it has none.
int64_t limit_in(std::string_view claim);
// Marks the waiter as one that polls, because messages do not reach it, or as one that does not. A
// script grants the lock to a waiter that polls whether or not its message arrives.
void set_polls(std::string &member, bool polls);
bool polls(std::string_view member);

// True if `value` has the form of our tokens. A holder of another form is foreign.
bool is_token(std::string_view value);

// The token and the mode of a waiter; nullopt if the member is not of our form.
struct QueueEntry {
  std::string_view token;  // borrowed from the member
  Mode mode;
};
std::optional<QueueEntry> parse_member(std::string_view member);
// A waiter that waits to write, or for the value of a flight. Its mode is `v`.
void await_value(std::string &member);

// A message on a client's channel.
struct Push {
  enum class Kind : uint8_t {
    kGrant,
    kHead,
    kValue,   // that of a flight is there
    kRecall,  // the holder is asked to finish
  };
  Kind kind;
  uint64_t rid;  // without kRecallable
  bool is_recallable = false;
  Mode mode = Mode::kWrite;  // grant
  int64_t ms;                // grant: ttl of the provisional lease; head: poll when this has passed
  int64_t fence = 0;         // grant
  int64_t server_ms = 0;
  std::string_view key_digest;  // of the lock key; borrowed from the message
  bool is_by_user = false;      // recall: else a waiter has sent it
  std::string_view reason;  // .. by a user: any bytes of another party; borrowed from the message
};
std::optional<Push> parse_push(std::string_view message);
// A message that grants nothing.
inline bool is_notice(std::string_view message) {
  return message.starts_with('n') || message.starts_with('v') || message.starts_with('r');
}

}  // namespace redlatch::protocol
