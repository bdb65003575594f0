// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words: the texts of a connection that users read. Without memory a text is empty.
#pragma once

#include <string>
#include <string_view>

#include "base/settings.h"

namespace redlatch::session::words {

std::string not_connected_yet(const Settings &server) noexcept;
std::string lost_connection(const Settings &server) noexcept;

// Why the connection for messages is given up.
inline constexpr std::string_view kNoMessage = "the message of a grant did not come";
inline constexpr std::string_view kNoAnswer = "no answer came within command_timeout";
// For the log.
std::string messages_dead(const Settings &server, std::string_view why) noexcept;

}  // namespace redlatch::session::words
