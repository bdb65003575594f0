// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words: the texts of operations that users read. Without memory a text is empty.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace redlatch::operate::words {

using Text = std::string_view;

std::string not_held(Text lock) noexcept;
std::string not_held_by_token(Text lock) noexcept;
std::string not_a_lock(Text lock) noexcept;
std::string list_too_long(int64_t most) noexcept;

}  // namespace redlatch::operate::words
