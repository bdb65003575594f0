// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Checks of what callers pass, before anything is started. Messages name the input and what is
// allowed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::runtime {

Outcome check_name(std::string_view name);
Outcome check_token(std::string_view token);
Outcome check_wait(int64_t wait_ms);
Outcome check_lease(int64_t lease_ms);

// Whether `value` in a lock's key was put there by a redlatch client.
bool is_own_token(std::string_view value);

// The glob over keys for the locks of this client whose names match `pattern`; empty: all.
std::string key_pattern(const Settings &settings, std::string_view pattern);

// The time at which a valid wait is over.
Nanos limit_of(int64_t wait_ms);

}  // namespace redlatch::runtime
