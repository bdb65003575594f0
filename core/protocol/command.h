// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Command: the arguments of one command, ready to be sent. Text is borrowed from the caller,
// numbers are written into the command itself: building one allocates nothing.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/keys.h"
#include "protocol/scripts.h"
#include "protocol/token.h"

namespace redlatch::protocol {

class Command {
 public:
  Command() = default;
  Command(const Command &) = delete;
  Command &operator=(const Command &) = delete;

  // A temporary would be gone before the command is sent.
  Command &add(std::string &&text) = delete;
  Command &add(const char *text) { return add(std::string_view(text)); }
  Command &add(std::string_view text) {
    if (count_ < argv_.size()) argv_[count_++] = text;
    return *this;
  }
  Command &add(int64_t number) {
    char *begin = digits_.data() + digit_count_;
    const auto result = std::to_chars(begin, digits_.data() + digits_.size(), number);
    digit_count_ = static_cast<size_t>(result.ptr - digits_.data());
    return add(std::string_view(begin, static_cast<size_t>(result.ptr - begin)));
  }
  std::span<const std::string_view> argv() const { return {argv_.data(), count_}; }

 private:
  std::array<std::string_view, 24> argv_;
  std::array<char, 96> digits_;
  size_t count_ = 0;
  size_t digit_count_ = 0;
};

// The features of a server on which the arguments of scripts depend.
struct ServerFeatures {
  bool is_sharded = false;
  std::string_view prefix;  // of channels; outlives the features
  // A script of several keys names one more, which never exists. While a slot is being moved, a
  // node refuses every script that names an absent key, before it begins. Without it the script
  // would run, be refused in the middle, or take a key that is at the other node for absent
  // (docs/wire.md, "Cluster").
  bool is_cluster = false;
  bool can_track = false;  // it reports changes of keys, see track()
};

// EVALSHA, or EVAL after NOSCRIPT.
enum class EvalMode : uint8_t { kDigest, kText };

// The keys that an extension names. While their slot moves only one at a time: the lock key, and
// if several hold the lock, behind it the readers' key, after the reader key of a format that has
// one.
enum class Extent : uint8_t { kAll, kLock, kReaderKey, kReaders };

struct HolderInfo {
  std::string_view who, label;
  int64_t since_ms = 0;  // on the server's clock
  // Of a leader; else empty.
  std::string_view candidate = {};
  int64_t fence = 0;
};

// Each fills `out`, which borrows from the arguments.

// Track the key: the server reports its next change. Three commands, to be sent together.
void track(Command &on, Command &next, Command &find, const LockKeys &keys);
// A holder of a lock, or a caller that requests it.
struct Proof {
  std::string_view token;
  // The owner, in a format with owners; claim_of(), in one with permits.
  std::string_view claim;
};
struct AcquireCall {
  Mode mode;
  Proof identity;
  int64_t ttl_ms;
  std::string_view member, ticket;
  std::string_view sibling = {};  // kRead: a token of the same owner that reads already
  bool is_unfenced = false;       // kWrite
  // kWrite: the id of a candidate, and candidates_key(). Empty: the caller does not campaign.
  std::string_view candidate = {}, candidates_key = {};
};
// ACQUIRE, VOTE, ACQUIRE READ or UPGRADE.
void acquire(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             const AcquireCall &call);
// The number of grants in a row after which the lock is left to other libraries, and for how long.
struct YieldPolicy {
  static constexpr int64_t kAutomatic = -1;
  static constexpr int64_t kSearching = -2;
  // 0: never. kAutomatic: only after a foreign holder was seen. kSearching: also a search for one.
  int64_t every = 0;
  int64_t for_ms = 0;
};
// The note of a release: the success of a run of once, or the value or failure of a flight. The
// script writes it and frees the lock in one step, if the token still has the lock.
struct Note {
  enum class Kind : char {
    // text: that names the period; number: local hand-offs before this run.
    kRun = 'o',
    // text: flight_text(); number: when it ends by the server's clock (ms since 1970), or, up to
    // kMaxTtlMs, in how many ms.
    kValue = 'v',
  };
  Kind kind;
  std::string key;  // mark_key() or value_key()
  std::string text;
  int64_t number = 0;
};
// `grant_count`: the number of callers that had the lock with this token, one after the other.
// `note`: may be null.
void release(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             const Proof &identity, const YieldPolicy &yield_policy, int64_t grant_count,
             const Note *note = nullptr);
struct RunCall {
  std::string_view text;  // that names the period; empty: none
  // Local ones, before the caller got the lease: with the token they tell the run.
  int64_t handoff_count = 0;
  int64_t remembered_ms = 0;
  int64_t tries = 1;
  int64_t waited_ms = 0;  // of the caller, for the lock
};
// The results of ONCE BEGIN for a holder.
enum class RunAnswer : uint8_t { kRun = 1, kSucceeded, kTriesUsed, kTooManyTexts };
void once_begin(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                std::string_view mark_key, std::string_view token, const RunCall &call);
void once_forget(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                 std::string_view mark_key);
void cancel(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            std::string_view member, std::string_view claim);
// `fence`: of the writer, so that a late copy does not end a later upgrade; 0 for any writer.
void downgrade(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
               std::string_view token, int64_t ttl_ms, int64_t fence);
// Extend one of several holders. `is_marked`: it was attached.
void extend_shared(Command &out, const ServerFeatures &features, EvalMode eval,
                   const LockKeys &keys, const Proof &identity, int64_t ttl_ms, bool is_marked);
void serve_queue(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys);
// `is_described`: the holder wrote its info, whose expiry is extended, too; `info`: write it now.
void extend(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            std::string_view token, int64_t ttl_ms, bool is_described, const HolderInfo *info);
// The same with one key, for a slot that is being moved, where scripts of several keys are refused.
// The description of the holder is not extended.
void extend_alone(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                  std::string_view token, int64_t ttl_ms);
// EXTEND SHARED in two parts, each with one key. The lock key says that a client has the lock, and
// the readers' key who: a lease of one of several holders lasts as long as both say so. So the part
// of the lock key comes first, and its answer alone promises nothing to a reader.
enum class Part : uint8_t {
  kLock,     // 1: the token has it alone, extended; 2: several have it, send kReaders; 0: lost
  kReaders,  // 2: extended, from the time at which kLock was sent; 0: lost
};
struct PartCall {
  Part part;
  Proof identity;
  int64_t ttl_ms;
};
void extend_shared_alone(Command &out, const ServerFeatures &features, EvalMode eval,
                         const LockKeys &keys, const PartCall &call);
// A format with reader keys: between the two, the key by which Redisson knows that the reader is
// alive.
void extend_reader_key(Command &out, const std::string &key, int64_t ttl_ms);
// `count`: the number of earlier detaches and attaches of the lease, as ATTACH answered.
void detach(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            const Proof &identity, int64_t count);
// `call`: a name of this call alone, so that the command can be repeated.
void attach(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            const Proof &identity, int64_t ttl_ms, std::string_view call);
// `fence`: the highest of those that the nodes of a quorum gave this token.
void raise_fence(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
                 std::string_view token, int64_t fence);
// Next step of a listing: `pattern` is a glob over lock keys. SCAN finds all strings; look() reads
// as much of one as shows whether a client of ours holds it. No script: a server that wants the
// keys of a script to be declared would refuse to show it what SCAN finds.
void list(Command &out, std::string_view cursor, std::string_view pattern);
void look(Command &out, const std::string &key);
void inspect(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             std::string_view mark_key, std::string_view candidates_key);
// `cap`: of a semaphore; nullopt: it has none from now on. `for_ms`: 0: without an end of its own.
void set_cap(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
             std::optional<int64_t> cap, int64_t for_ms);
// The value of a flight.
void get_value(Command &out, const std::string &value_key);
void stats(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys);
// The name of a client, for people: `key` is that of its channel.
void announce(Command &out, const std::string &key, const std::string &text, int64_t expiry_ms);
void withdraw_name(Command &out, const std::string &key);
void ask_name(Command &out, const std::string &key);
// At least `timeout_ms` 1: 0 is no limit.
void wait_for_replicas(Command &out, int64_t replicas, int64_t timeout_ms);
void force_release(Command &out, const ServerFeatures &features, EvalMode eval,
                   const LockKeys &keys, std::string_view token);
// `reason`: for people.
void recall(Command &out, const ServerFeatures &features, EvalMode eval, const LockKeys &keys,
            std::string_view reason);
// `own`, `unused`: channels. Some servers refuse a script without a key: it names the one that has
// the name of the client, which is the name of the own channel.
enum class ProbeKey : uint8_t { kNamed, kNone };
void probe(Command &out, const ServerFeatures &features, ProbeKey key, std::string_view own,
           std::string_view unused);

}  // namespace redlatch::protocol
