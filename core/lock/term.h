// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The lease of a candidate: its term in an election.
#pragma once

#include "base/settings.h"
#include "lock/lock_state.h"
#include "lock/results.h"
#include "protocol/command.h"

namespace redlatch::lock {

// The description of a holder, which borrows from both.
protocol::HolderInfo info_of(const TokenRecord &record, const Settings &settings);
// A leader leads until it resigns, or loses the term. @return false: the request, a detach or a
// downgrade of its lease, is refused.
bool may_leave(Request &request, Results &results);

}  // namespace redlatch::lock
