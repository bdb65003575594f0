// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words: the texts about several names that users read, as lock/words.h. Without memory a text is
// empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lock/request.h"

namespace redlatch::composite::words {

using Text = std::string_view;

// A lease of several names cannot do `op`.
std::string not_with_several(Text lock, lock::Request::Op op) noexcept;
// `why`: of the lock that was waited for last.
std::string not_granted(size_t count, int64_t wait_ms, Text why) noexcept;
std::string part_lost(Text part, Text why) noexcept;
// A release or an extension has failed.
std::string of_part(Text part, Text why) noexcept;

}  // namespace redlatch::composite::words
