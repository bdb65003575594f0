// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words: the texts of a cluster that users read, as lock/words.h. Without memory a text is empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace redlatch::cluster::words {

using Text = std::string_view;

// No node is used for a lock, or for a request without a lock.
inline constexpr Text kLockUnserved = "no node serves the slot of this lock";
inline constexpr Text kSlotUnserved = "no node serves a slot";
std::string host_not_named(Text host) noexcept;
std::string too_many_nodes(int64_t most) noexcept;
// `why` is one of those above.
std::string unserved(const Settings &cluster, Text why) noexcept;

}  // namespace redlatch::cluster::words
