// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Answers of the scripts, decoded. A reply that none of our scripts gives is an error: it never
// counts as a grant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/reply.h"
#include "base/status.h"
#include "protocol/format.h"
#include "protocol/token.h"

namespace redlatch::protocol {

// The meaning of an error reply for its request.
struct Refusal {
  enum class Kind : uint8_t {
    kNone,       // no error
    kNoScript,   // send the text
    kTransient,  // LOADING, BUSY, OOM, READONLY ..: may pass
    kDenied,     // user, password, rights
    kWrongType,  // of a key that the command uses
    kOther,      // anything else, and malformed replies
  };
  Kind kind = Kind::kNone;
  std::string message;  // the text of the server
  // kTransient: TRYAGAIN, ASK, MOVED. Not at this node now; nothing was done.
  bool is_of_slot = false;

  explicit operator bool() const { return kind != Kind::kNone; }
  Status status() const {
    if (kind == Kind::kWrongType) return Status::kWrongType;
    return kind == Kind::kDenied ? Status::kDenied : Status::kServer;
  }
};

// .. `secret` is not shown: some servers and proxies quote the command that they refuse.
Refusal refusal_of(const Reply &reply, std::string_view secret = {});
// EVALSHA met a server that does not know the script.
bool is_unknown_script(const Reply &reply);
// A refused write of a replica.
bool is_of_replica(const Reply &reply);
// A write that the server refuses because of its min-replicas-to-write.
bool lacks_replicas(const Reply &reply);
// A refused write of a replica, or a refused WAIT of one, also if it became one meanwhile.
bool is_not_primary(const Reply &reply);

// Scripts expect any type at the lock key itself, so a refusal is about another key of the lock.
// `name`: empty if it is about no lock.
std::string refusal_message(std::string_view name, const Refusal &refusal);
// Why a key of `type`, which no lock has, is refused.
std::string wrong_type_message(std::string_view name, std::string_view type);

struct AcquireAnswer {
  bool is_granted = false;
  bool is_lost = false;      // UPGRADE: its lease as a reader has ended, too
  bool is_deadlock = false;  // UPGRADE: another reader waits for the same
  int64_t server_ms = 0;
  int64_t fence = 0;       // granted
  int64_t hold_count = 1;  // granted: of the owner, this one included
  // Granted: how many fences the client may give to its callers, from this one on, while it retains
  // the lock. 0: others may wait for it.
  int64_t fence_count = 0;
  int64_t pttl_ms = 0;          // refused: of the holder; -1 no expiry, -2 no key
  std::string_view ticket;      // refused: empty when not queued
  int64_t rank = -1;            // refused: -1 not queued
  std::string_view key_digest;  // refused: of the lock key
  std::string_view holder;      // refused: the value of the key, shortened
  std::string_view type;        // refused: type of the key
  std::string_view reader;      // refused: the token of the only reader
  bool has_more = false;        // refused: more dead waiters in front than one call looks at
  bool is_recalled = false;     // refused: the client of the holder knows that another one waits
  bool is_shared() const;       // held by readers
  bool has_permits() const;     // permits are out
  bool is_capped() const;       // .. and an operator has capped them
  // The token of the only holder; empty if not known.
  std::string_view token() const { return is_token(holder) ? holder : reader; }
  bool is_foreign() const;  // held by another lock library
  // .. or by locks of another format, which send no message to a waiter of this one.
  bool is_foreign_to(Format format) const;
  // The key holds data: no lock has its type, and nothing was queued.
  bool is_wrong_type() const;
  bool is_left_to_others() const { return !is_granted && type == "none" && pttl_ms >= 0; }
};

// Answers of the other scripts, except INSPECT and LIST. `result`: see protocol/scripts/.
struct CountAnswer {
  int64_t result = 0;
  int64_t server_ms = 0;
  bool has_more = false;        // send SERVE QUEUE
  bool is_unnoted = false;      // RELEASE: the success of a run could not be noted
  int64_t ends_ms = 0;          // ONCE BEGIN: when the period ends
  int64_t attach_count = 0;     // ATTACH: how often the lease was detached and attached
  std::string_view wrong_type;  // FORCE RELEASE, -2: the type of the key, which no lock has
};

struct InspectAnswer {
  struct Waiter {
    std::string token;
    Mode mode;
    int64_t since_ms;
    std::string who = {};
    std::string candidate = {};
  };
  struct Holder {
    std::string token;
    int64_t expiry_ms;
    int64_t permits = 0;  // of a semaphore
    std::string who = {};
  };
  // A period of once in which a run has begun.
  struct Mark {
    std::string text;  // that names it
    bool is_done = false;
    int64_t since_ms = 0;
    int64_t tries = 0;
    int64_t ends_ms = 0;
  };
  int64_t server_ms = 0;
  std::string type, value;
  int64_t pttl_ms = 0;
  int64_t fence = 0;
  int64_t waiter_count = 0;
  std::vector<Waiter> waiters;
  int64_t holder_count = 0;     // readers, or holds of an owner
  std::vector<Holder> holders;  // at most kMaxInfoRows of them
  int64_t hold_count = 0;       // hash format: the value in the key
  // Of a semaphore.
  int64_t used = 0;          // permits that are out
  int64_t limit = 0;         // of the last caller that got permits
  int64_t cap = -1;          // -1: none
  int64_t cap_left_ms = -1;  // -1: it has no end of its own
  std::string who, label;
  std::string candidate;  // the id of the leader; empty: none
  int64_t since_ms = 0;
  int64_t position = 0;  // see operate::Leader
  std::vector<Mark> marks;

  bool has_permits() const { return value.starts_with(kPermitsPrefix); }  // it is a semaphore
};

// True if a redlatch client holds the lock, as far as its key shows it.
inline bool is_held_by_client(const InspectAnswer &info) {
  const bool is_known_type = info.type == "string" || !info.value.empty();
  if (info.type == "none" || !is_known_type) return false;
  const bool may_be_shared = info.value == kShared || info.has_permits();
  const bool has_expired_readers = may_be_shared && info.holder_count == 0;
  return !has_expired_readers && (!info.holders.empty() || is_token(info.value));
}

// The result of a flight: the value, or why its caller failed.
struct FlightValue {
  bool is_failure = false;
  std::string bytes;  // of a failure: its text
  std::string type;   // of a failure: its name
  int64_t fence = 0;  // of the caller
};
// How it is kept on the server.
std::string flight_text(const FlightValue &value, int64_t fence);

struct ListAnswer {
  std::string cursor;  // "0": this was the last step
  std::vector<std::string> keys;
};

// The value of a client's name key. It begins with a version, so that the text can grow, and can
// never be taken for a token.
inline constexpr std::string_view kNameVersion = "1 ";
inline constexpr int64_t kMaxNameTextBytes = kNameVersion.size() + kMaxLabelBytes;
std::string name_text(std::string_view holder);
// @return the name; "" if `reply` has no valid one.
std::string decode_name(const Reply &reply);

// The value of `field` in an answer to INFO; empty if it is not there.
std::string_view info_value(std::string_view info, std::string_view field);

// The reply to TIME, as nanoseconds since 1970; nothing if the server sent something else.
std::optional<Nanos> decode_time(const Reply &reply);

// Each fills `answer`, or returns the refusal. Views borrow from the reply.
Refusal decode(const Reply &reply, AcquireAnswer &answer);
Refusal decode(const Reply &reply, CountAnswer &answer);
// The same for VOTE.
Refusal decode_vote(const Reply &reply, AcquireAnswer &answer);
Refusal decode(const Reply &reply, InspectAnswer &answer);
// The answer to STATS, which has the numbers of a semaphore alone.
Refusal decode_stats(const Reply &reply, InspectAnswer &answer);
Refusal decode(const Reply &reply, ListAnswer &answer);
// The reply to get_value(). `answer` stays empty if no value is stored, or not one of ours.
Refusal decode(const Reply &reply, std::optional<FlightValue> &answer);
// The reply to look(). A key that this user may not read, or that is gone, is no lock.
bool is_lock_of_ours(const Reply &reply);

}  // namespace redlatch::protocol
