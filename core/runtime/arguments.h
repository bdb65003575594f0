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
#include "protocol/keys.h"
#include "protocol/token.h"

namespace redlatch::runtime {

using protocol::check_name;
using protocol::is_token;

Outcome check_token(std::string_view token);
Outcome check_wait(int64_t wait_ms);

// The glob for keys of locks in this client's namespace whose names match `pattern`; empty: all.
std::string key_pattern(const Settings &settings, std::string_view pattern);

// When a wait that starts now times out; kNever if it has no limit.
Nanos limit_of(int64_t wait_ms);
// How long credentials are valid; kNever if they have no end.
Nanos validity_of(int64_t valid_ms);

}  // namespace redlatch::runtime
