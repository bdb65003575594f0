// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// How long a lease may be believed, and when it is renewed. Pure arithmetic on the local clock.
//
// Drift: 1 % of the lease for clocks whose rates differ, and 2 ms for the granularity of expiry and
// scheduling (Redlock's clock drift factor).
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch::timing {

constexpr Nanos drift_of(Nanos lease) { return lease / 100 + 2 * kMs; }

// A lease asked for by a message sent at `sent_at` ends no earlier than this.
constexpr Nanos deadline_of(Nanos sent_at, Nanos lease) {
  return sent_at + lease - drift_of(lease);
}

// How long whoever is told now that a lease ended has to stop, before the lock is given back and
// may be somebody else's: at most what deadline_of() took off.
constexpr Nanos notice_of(Nanos lease) { return std::min(drift_of(lease), 1000 * kMs); }

// Renewal at a third leaves two more tries before the lease ends.
constexpr Nanos renewal_of(Nanos sent_at, Nanos lease) { return sent_at + lease / 3; }

// After a refusal that may pass (LOADING, OOM): a few tries within what is left.
constexpr Nanos renewal_retry(Nanos now, Nanos deadline) {
  return now + std::clamp((deadline - now) / 8, 5 * kMs, 1000 * kMs);
}

// A lease that must not outlive `end_at` (max_hold) is asked for only as long as it needs to reach
// it, drift included; never below the shortest lease.
constexpr Nanos lease_within(Nanos lease, Nanos now, Nanos end_at) {
  if (end_at == kNever) return lease;
  const Nanos left = std::max<Nanos>(end_at - now, 0);
  return std::min(lease, std::max<Nanos>(left + left / 50 + 4 * kMs, kMinLeaseMs * kMs));
}

// Renewals that fall due this soon leave together with the one that is due now: fewer wake-ups and
// writes when many leases are held.
constexpr Nanos renewal_slack(Nanos lease) { return lease / 60; }

}  // namespace redlatch::timing
