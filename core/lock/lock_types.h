// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Values that the machines of this folder are given and give back. They have no behaviour.
#pragma once

#include "base/clock.h"

namespace redlatch::lock {

// What the token of an acquisition may still have on the server.
struct ServerFootprint {
  bool has_member = false;      // it can stand in the queue
  bool may_be_queued = false;   // .. and may do so: CANCEL is due
  bool may_be_held = false;     // it may hold the key: RELEASE is due
  bool is_provisional = false;  // it holds by a message alone, which no reply has confirmed
  bool is_detached = false;     // another client may hold with this token: never RELEASE
  Nanos late_apply_until = 0;   // an ACQUIRE without an answer may take effect until then
  Nanos held_until = 0;         // deadline of the lease; 0: it was never granted
  Nanos ttl = 0;                // that was asked for last
};

}  // namespace redlatch::lock
