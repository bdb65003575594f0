// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/words.h"

#include "base/limits.h"
#include "base/message.h"

namespace redlatch::lock::words {

namespace {

constexpr Text kSlotMoves = ": the slot of the lock is being moved to another node of the cluster";
constexpr Text kHolderIs = "; holder: ";

// Without its key_type.
Text text_of(Obstacle::Kind kind) {
  switch (kind) {
    case Obstacle::Kind::kNone:
      return {};
    case Obstacle::Kind::kHolder:
      return "held";
    case Obstacle::Kind::kReaders:
      return "held by readers";
    case Obstacle::Kind::kPermits:
      return "too few of its permits are free";
    case Obstacle::Kind::kCap:
      return "an operator has capped its permits";
    case Obstacle::Kind::kOtherLibrary:
      return "held by another lock library";
    case Obstacle::Kind::kLeftToOthers:
      return "it is left to other lock libraries";
    case Obstacle::Kind::kWaiters:
      return "others wait for it";
    case Obstacle::Kind::kOtherFormat:
      return "its key is a ";
  }
  return {};
}

Text end_of(Obstacle::Kind kind) {
  return kind == Obstacle::Kind::kOtherFormat ? ": a lock of another format" : "";
}

Text replicas_of(int count) { return count == 1 ? " replica" : " replicas"; }

}  // namespace

std::string same(Text text) noexcept { return message_of({text}); }

std::string cleaned(Text text) noexcept { return message_of({Foreign{text}}); }

std::string needs_one_server(Text what) noexcept {
  return message_of({what, " is not possible with a Redlock: use a client of one server"});
}

std::string unanswered(const Settings &server) noexcept {
  return message_of({"sent to ", &server, ", but no answer came"});
}

Text defect(Machine machine) noexcept {
  switch (machine) {
    case Machine::kAcquisition:
      return "defect in redlatch: an event in the wrong state of the acquisition";
    case Machine::kWaitlist:
      return "defect in redlatch: an event in the wrong state of the waitlist";
    case Machine::kHeldLease:
      return "defect in redlatch: an event in the wrong state of the held lease";
    case Machine::kUpgrade:
      return "defect in redlatch: an event in the wrong state of the upgrade";
    case Machine::kCleanup:
      return "defect in redlatch: an event in the wrong state of the cleanup";
  }
  return {};
}

// ---- the end of a lease ------------------------------------------------------------------------

Text loss(LossReason reason) noexcept {
  switch (reason) {
    case LossReason::kNone:
    case LossReason::kNoMajority:
      return {};
    case LossReason::kExpired:
      return "the lease ended";
    case LossReason::kTakenOver:
      return "the server has another holder: a restart or a failover without the data, DEL or "
             "FLUSHALL, a forced release, an eviction or an expiry had removed the lease";
    case LossReason::kForced:
      return "it was taken by force";
    case LossReason::kMaxHold:
      return "max_hold was reached";
    case LossReason::kClosed:
      return "client is gone";  // short: a destructor uses it, and needs no memory for a copy
    case LossReason::kDefect:
      return "defect in redlatch; the log has more";
    case LossReason::kGone:
      return "the server does not have the lease any more: a restart or a failover without the "
             "data, DEL or FLUSHALL, a forced release, an eviction or an expiry has removed it";
  }
  return {};
}

std::string not_renewed(bool is_renewed, Text trouble, Text connection) noexcept {
  std::string text = message_of(
      {"the lease ended", is_renewed ? " before a renewal was confirmed" : ", and renewal is off",
       After{": ", trouble}, After{": ", connection}});
  if (text.empty()) text = loss(LossReason::kExpired);  // short: this needs no memory
  return text;
}

std::string lost(Text lock, Text reason) noexcept {
  return message_of({LockName{lock}, " was lost: ", reason});
}

std::string ended_before(Text lock) noexcept {
  return message_of({LockName{lock}, " was released or detached before"});
}

// ---- acquire -----------------------------------------------------------------------------------

Text name_of(const operate::Holder &holder) noexcept {
  using Kind = operate::Holder::Kind;
  if (holder.kind == Kind::kThread) return "the thread that waits";
  return holder.kind == Kind::kThisClient ? "this client" : holder.name;
}

std::string busy(Text lock, const Obstacle &obstacle, const operate::Holder &holder) noexcept {
  using Kind = Obstacle::Kind;
  const Kind kind = obstacle.kind;
  // A cap that has no end of its own has another one after each request.
  const bool has_end = kind != Kind::kWaiters && kind != Kind::kOtherFormat && kind != Kind::kCap;
  const bool is_limited = has_end && obstacle.pttl_ms >= 0;
  const Text until = kind == Kind::kLeftToOthers ? " for "
                     : !is_limited               ? (has_end ? " without a time limit" : "")
                     : kind == Kind::kPermits    ? ", enough leases end in "
                                                 : ", its lease ends in ";
  const MessagePart time = is_limited ? MessagePart(obstacle.pttl_ms) : MessagePart(Text());
  return message_of({LockName{lock}, " is busy: ", text_of(kind), obstacle.key_type, end_of(kind),
                     until, time, is_limited ? " ms" : "", After{kHolderIs, name_of(holder)}});
}

// A holder with a name is more than "held".
std::string not_granted(Text lock, int64_t wait_ms, const Obstacle &obstacle,
                        const operate::Holder &holder) noexcept {
  const Obstacle::Kind kind = obstacle.kind;
  const Text name = name_of(holder);
  const bool is_obvious = kind == Obstacle::Kind::kHolder && !name.empty();
  return message_of({LockName{lock}, " was not granted within ", Seconds{wait_ms},
                     After{": ", is_obvious ? "" : text_of(kind)}, obstacle.key_type, end_of(kind),
                     After{kHolderIs, name}});
}

std::string not_granted_in_move(Text lock, int64_t wait_ms) noexcept {
  return message_of({LockName{lock}, " was not granted within ", Seconds{wait_ms}, kSlotMoves});
}

std::string not_acquired_in_move(Text lock) noexcept {
  return message_of({LockName{lock}, " cannot be acquired now", kSlotMoves});
}

std::string acquire_unanswered(const Settings &server) noexcept {
  return message_of({"sent to ", &server, ", but no answer came within the wait; a cleanup ",
                     "continues in the background"});
}

std::string redirected_in_vain(Text lock, const Settings &server) noexcept {
  return message_of({"no node serves ", LockName{lock}, ": ", &server,
                     " redirected it (MOVED) to a node that does not, or may not be used"});
}

std::string owner_has_it(Text lock, protocol::Mode has, protocol::Mode wants) noexcept {
  const Text what = has == protocol::Mode::kRead     ? "reads already: upgrade that lease"
                    : wants == protocol::Mode::kRead ? "writes already: downgrade that lease"
                                                     : "has it already, and it is not reentrant";
  return message_of({LockName{lock}, ": its owner ", what});
}

std::string ttl_too_short(int64_t answer_ms, int64_t ttl_ms) noexcept {
  return message_of(
      {"ttl must be well above the ", answer_ms, " ms that the answer took (got ", ttl_ms, " ms)"});
}

// ---- upgrade, downgrade ------------------------------------------------------------------------

std::string upgrades_already(Text lock) noexcept {
  return message_of({LockName{lock}, ": this lease waits to upgrade already"});
}

std::string owner_reads_as_well(Text lock) noexcept {
  return message_of({LockName{lock}, ": its owner reads by another lease as well, and would wait ",
                     "for itself"});
}

std::string others_read(Text lock, bool is_deadlock) noexcept {
  return message_of(
      {LockName{lock}, is_deadlock ? ": another reader waits to upgrade, and would wait for this "
                                     "one: release it first"
                                   : " is busy: others read as well"});
}

std::string not_upgraded(Text lock) noexcept {
  return message_of(
      {LockName{lock}, " was not upgraded within the wait: the lease continues to ", "read"});
}

std::string not_upgraded_in_move(Text lock) noexcept {
  return message_of({LockName{lock}, " cannot be upgraded now", kSlotMoves});
}

std::string has_no_readers(Text lock, bool is_semaphore) noexcept {
  return message_of({LockName{lock}, " must be a read-write lock (got a ",
                     is_semaphore ? "semaphore" : "reentrant one", ", which has no readers)"});
}

// ---- attach, extend, inspect and others --------------------------------------------------------

std::string not_attached(Text lock, bool is_held) noexcept {
  return message_of({LockName{lock}, is_held ? " is held by that token, which was not detached: "
                                               "only its holder can detach it"
                                             : " is not held by that token"});
}

std::string ttl_of_format(int64_t longest_ms, Text format, int64_t got_ms) noexcept {
  return message_of({"ttl must be ", kMinTtlMs, " ms to ", Seconds{longest_ms}, " with the format ",
                     format, " (got ", got_ms, " ms)"});
}

std::string slot_not_served(Text lock, const Settings &server) noexcept {
  return message_of({&server, " does not serve the slot of ", LockName{lock},
                     " now: it is being moved to another node, or has no primary"});
}

// ---- runs of once ------------------------------------------------------------------------------

std::string has_run(Text lock, int64_t left_ms) noexcept {
  if (left_ms == 0) {
    return message_of({"a run of ", LockName{lock}, " has succeeded while this caller waited"});
  }
  return message_of({"a run of ", LockName{lock}, " has succeeded in this period, which ends in ",
                     Seconds{left_ms}});
}

std::string tries_used(Text lock, int64_t tries, int64_t left_ms) noexcept {
  return message_of({"no run of ", LockName{lock}, " has succeeded in this period, which ends in ",
                     Seconds{left_ms}, ": the tries are used up (", tries, ")"});
}

std::string too_many_periods(Text lock) noexcept {
  return message_of({LockName{lock}, ": at most ", kMaxMarks,
                     " keys of periods may be remembered at the same time"});
}

std::string needs_mutex(Text lock) noexcept {
  return message_of(
      {LockName{lock}, " must be a mutex in the format string for a run or a flight"});
}

std::string not_noted(Text lock) noexcept {
  return message_of({LockName{lock},
                     " was released, but the server could not store the result of the run or "
                     "flight: it has no memory, its user no permission, the key has another type, "
                     "or another run has begun"});
}

// ---- replicas ----------------------------------------------------------------------------------

std::string too_few_replicas(int64_t count, int replicas, int64_t timeout_ms) noexcept {
  return message_of(
      {count, " of ", replicas, replicas_of(replicas), " confirmed within ", Seconds{timeout_ms}});
}

std::string no_replica_asked(int64_t timeout_ms) noexcept {
  return message_of({"replicas were not asked within ", Seconds{timeout_ms},
                     ", because the slot of the lock is being moved to another node of the "
                     "cluster, or has no primary"});
}

std::string no_connection_for_wait(Text why) noexcept {
  return message_of({"no connection for WAIT, which min_replicas needs: ", why});
}

std::string wait_refused(const Settings &server, Text why) noexcept {
  return message_of({&server, " refused WAIT, which min_replicas needs: ", why});
}

std::string not_replicated(Text lock, Text why) noexcept {
  return message_of({LockName{lock}, ": ", why});
}

std::string not_replicated_in_time(Text lock, int replicas) noexcept {
  return message_of({LockName{lock}, ": fewer than ", replicas, replicas_of(replicas),
                     " confirmed within the wait"});
}

std::string lost_unreplicated(Text lock, Text reason) noexcept {
  return message_of({LockName{lock}, " was granted, and lost before its replicas confirmed",
                     After{": ", reason}});
}

std::string held_unreplicated(Text lock, Text why) noexcept {
  return message_of(
      {LockName{lock}, " is held, but ", why, ": replicas are asked again with each renewal"});
}

// ---- a cluster ---------------------------------------------------------------------------------

std::string other_limit(Text lock, int64_t own, int64_t other) noexcept {
  return message_of({"clients have different limits for ", LockName{lock}, ": ", own, " here, ",
                     other, " elsewhere; each counts for its own acquisitions"});
}

std::string clock_behind(const Settings &server, int64_t ms) noexcept {
  return message_of({"the clock of ", &server, " is ", ms,
                     " ms behind that of the node that had its locks before: fences may fall"});
}

}  // namespace redlatch::lock::words
