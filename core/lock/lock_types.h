// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Values that the machines of this folder are given and give back. They have no behaviour.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "protocol/token.h"

namespace redlatch::lock {

// Identifies an acquisition to the server.
struct Identity {
  std::string token;
  std::string member;  // of the server's queue; empty: one try, which is never queued
  std::string owner;   // reentrant: never empty. Else that of the caller, and changes at a hand-off
  std::string permits;                           // of a semaphore: protocol::claim_of(); else empty
  std::string candidate;                         // the id of one in an election; else empty
  protocol::Mode mode = protocol::Mode::kWrite;  // what it asks for, or has

  // It goes to the scripts beside the token.
  const std::string &claim() const { return permits.empty() ? owner : permits; }
};

// State that the token of an acquisition may still have on the server.
struct ServerFootprint {
  bool has_member = false;      // it can be queued
  bool was_queued = false;      // .. and has done so
  bool may_be_queued = false;   // .. and may do so: CANCEL is due
  bool may_be_held = false;     // it may hold the key: RELEASE is due
  bool is_provisional = false;  // it holds by a message alone, which no reply has confirmed
  int16_t handoff_count = 0;    // local ones, with this token
  bool is_detached = false;     // another client may hold with this token: never RELEASE
  Nanos late_apply_until = 0;   // an ACQUIRE without an answer may take effect until then
  Nanos held_until = 0;         // deadline of the lease; 0: it was never granted
  Nanos ttl = 0;                // that was asked for last
};

// Result of a grant.
struct Grant {
  Nanos deadline = 0;
  Nanos renewal_at = 0;
  int64_t fence = 0;
  int64_t since_ms = 0;         // on the server's clock; 0: not known
  int64_t attach_count = 0;     // how often the lease was detached and attached before
  int16_t fence_count = 0;      // for local acquisitions, this one included; 0: a usual grant
  bool is_provisional = false;  // only a message says so, or its ttl is not the caller's
};

// Terms that the caller of a lease asked for.
struct LeaseTerms {
  Nanos ttl = 0;
  Nanos end_at = kNever;  // by max_hold
  bool is_renewed = true;
  bool is_described = true;      // others can read on the server who holds
  bool is_fence_shared = false;  // with other readers: a local hand-off has the same one
};

}  // namespace redlatch::lock
