// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Checks of arguments before a call starts anything. Messages name the input and what is allowed.
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

// True if `value`, read from a lock's key, has the form of a redlatch token.
bool is_own_token(std::string_view value);

// The glob for keys of locks in this client's namespace whose names match `pattern`; empty: all.
std::string key_pattern(const Settings &settings, std::string_view pattern);

// When a wait that starts now times out; kNever if it has no limit.
Nanos limit_of(int64_t wait_ms);

}  // namespace redlatch::runtime
