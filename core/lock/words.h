// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words: the texts that users read: messages of results, reasons of a loss, lines of the log. Other
// files name a reason and give facts. No function fails: without memory its text is empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "operate/client_names.h"
#include "protocol/token.h"

namespace redlatch::lock {

// Why a lease was lost. The numbers are those of redlatch.h.
enum class LossReason : int32_t {
  kNone,
  kExpired,
  kTakenOver,
  kForced,  // and granted to the same token again: others held in between
  kMaxHold,
  kNoMajority,
  kClosed,
  kDefect,
  kGone,  // no other holder was seen
};

// A machine that met an event that its state does not allow.
enum class Machine : uint8_t { kAcquisition, kWaitlist, kHeldLease, kUpgrade, kCleanup };

// Why a caller did not get the lock.
struct Obstacle {
  enum class Kind : uint8_t {
    kNone,
    kHolder,
    kReaders,
    kPermits,  // too few permits are free, or waiters want them first
    kCap,      // the same, with the cap of an operator
    kOtherLibrary,
    kLeftToOthers,  // to other lock libraries, for a moment
    kWaiters,
    kOtherFormat,
  };
  Kind kind = Kind::kNone;
  std::string key_type = {};  // kOtherFormat: of the lock key
  int64_t pttl_ms = -1;       // until it ends; negative: no limit
};

namespace words {

inline constexpr std::string_view kShutDown = "the client was shut down";
inline constexpr std::string_view kCancelled = "the request was cancelled";
inline constexpr std::string_view kEndedMeanwhile = "released or detached meanwhile";
inline constexpr std::string_view kDowngradedMeanwhile = "downgraded meanwhile";
inline constexpr std::string_view kDetachedMeanwhile = "detached meanwhile";
// No answer, or one that came too late.
inline constexpr std::string_view kUnansweredAtShutdown =
    "no answer before the client was shut down";
inline constexpr std::string_view kUnansweredAtLeaseEnd = "no answer until the lease had ended";
inline constexpr std::string_view kReleaseUnanswered =
    "no answer within command_timeout; the release continues in the background until the lease "
    "would have ended";
inline constexpr std::string_view kNoteUnknown =
    "the connection broke during the release: the result may have been stored, or not";
inline constexpr std::string_view kDetachUnanswered =
    "the connection broke while the lease was detached: it may have been detached, attached "
    "elsewhere and ended since";
inline constexpr std::string_view kAttachTooLate = "the answer came after the lease had ended";
inline constexpr std::string_view kExtensionTooLate =
    "the answer to an extension came after the lease had ended";

using Text = std::string_view;

// A copy.
std::string same(Text text) noexcept;
// See clean().
std::string cleaned(Text text) noexcept;
// `what` is possible with one server only, such as "listing locks".
std::string needs_one_server(Text what) noexcept;
std::string unanswered(const Settings &server) noexcept;
// For the log.
Text defect(Machine machine) noexcept;

// ---- the end of a lease
// Where there is nothing more to say. Constant.
Text loss(LossReason reason) noexcept;
// `trouble`: the last refusal; `connection`: why it is down. Each may be empty.
std::string not_renewed(bool is_renewed, Text trouble, Text connection) noexcept;
std::string lost(Text lock, Text reason) noexcept;
std::string ended_before(Text lock) noexcept;

// ---- acquire
std::string_view name_of(const operate::Holder &holder) noexcept;
std::string busy(Text lock, const Obstacle &obstacle, const operate::Holder &holder) noexcept;
std::string not_granted(Text lock, int64_t wait_ms, const Obstacle &obstacle,
                        const operate::Holder &holder) noexcept;
// The slot of the lock is being moved.
std::string not_granted_in_move(Text lock, int64_t wait_ms) noexcept;
std::string not_acquired_in_move(Text lock) noexcept;
std::string acquire_unanswered(const Settings &server) noexcept;
std::string redirected_in_vain(Text lock, const Settings &server) noexcept;
// Its owner has the lock already.
std::string owner_has_it(Text lock, protocol::Mode has, protocol::Mode wants) noexcept;
std::string ttl_too_short(int64_t answer_ms, int64_t ttl_ms) noexcept;

// ---- upgrade, downgrade
std::string upgrades_already(Text lock) noexcept;
std::string owner_reads_as_well(Text lock) noexcept;
std::string others_read(Text lock, bool is_deadlock) noexcept;
std::string not_upgraded(Text lock) noexcept;
std::string not_upgraded_in_move(Text lock) noexcept;
std::string has_no_readers(Text lock, bool is_semaphore) noexcept;

// ---- runs of once
std::string has_run(Text lock, int64_t left_ms) noexcept;
std::string tries_used(Text lock, int64_t tries, int64_t left_ms) noexcept;
std::string too_many_periods(Text lock) noexcept;
std::string needs_mutex(Text lock) noexcept;
std::string not_noted(Text lock) noexcept;

// ---- attach, extend, inspect and others
std::string not_attached(Text lock, bool is_held) noexcept;
std::string ttl_of_format(int64_t longest_ms, Text format, int64_t got_ms) noexcept;
std::string slot_not_served(Text lock, const Settings &server) noexcept;

// ---- replicas
// Of `replicas` that must confirm, `count` have.
std::string too_few_replicas(int64_t count, int replicas, int64_t timeout_ms) noexcept;
std::string no_replica_asked(int64_t timeout_ms) noexcept;
std::string no_connection_for_wait(Text why) noexcept;
std::string wait_refused(const Settings &server, Text why) noexcept;
// `why` is one of those above, or a refusal of the server.
std::string not_replicated(Text lock, Text why) noexcept;
std::string not_replicated_in_time(Text lock, int replicas) noexcept;
std::string lost_unreplicated(Text lock, Text reason) noexcept;
// For the log.
std::string held_unreplicated(Text lock, Text why) noexcept;

// ---- a semaphore
// For the log.
std::string other_limit(Text lock, int64_t own, int64_t other) noexcept;

// ---- a cluster
// For the log.
std::string clock_behind(const Settings &server, int64_t ms) noexcept;

}  // namespace words

}  // namespace redlatch::lock
