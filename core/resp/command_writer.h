// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Commands as the bytes that a server reads.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redlatch::resp {

// Append one command in RESP to `out`. Throws std::bad_alloc and leaves `out` as it was.
void append_command(std::string &out, std::span<const std::string_view> argv);

}  // namespace redlatch::resp
