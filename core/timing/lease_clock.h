// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// How long a lease is valid, and when it is renewed. Arithmetic on times of the local clock.
//
// Drift: 1 % of the lease for clocks whose rates differ, and 2 ms for the granularity of expiry and
// scheduling (Redlock's clock drift factor).
#pragma once

#include <algorithm>
#include <cassert>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch::timing {

constexpr Nanos drift_of(Nanos lease) { return lease / 100 + 2 * kMs; }

// A lease asked for by a message sent at `sent_at` ends no earlier than this.
constexpr Nanos deadline_of(Nanos sent_at, Nanos lease) {
  return sent_at + lease - drift_of(lease);
}

// The time that a holder has to stop after the notice that its lease has ended. Then the lock is
// given back, and another holder may get it. At most the drift that deadline_of() subtracts.
constexpr Nanos notice_of(Nanos lease) { return std::min(drift_of(lease), 1000 * kMs); }

// A renewal after a third of the lease leaves two more tries before its end.
constexpr Nanos renewal_of(Nanos sent_at, Nanos lease) { return sent_at + lease / 3; }

// After a temporary refusal (LOADING, OOM): several tries within the remaining lease.
constexpr Nanos renewal_retry(Nanos now, Nanos deadline) {
  return now + std::clamp((deadline - now) / 8, 5 * kMs, 1000 * kMs);
}

// A lease that must not outlive `end_at` (max_hold) is requested just long enough to reach it, with
// drift; never shorter than the shortest lease.
constexpr Nanos lease_within(Nanos lease, Nanos now, Nanos end_at) {
  assert(lease > 0);
  if (end_at == kNever) return lease;
  const Nanos left = std::max<Nanos>(end_at - now, 0);
  return std::min(lease, std::max<Nanos>(left + left / 50 + 4 * kMs, kMinTtlMs * kMs));
}

// Renewals that are due within this time are sent together with one that is due now: fewer wake-ups
// and writes if many leases are held.
constexpr Nanos renewal_slack(Nanos lease) { return lease / 60; }

}  // namespace redlatch::timing
