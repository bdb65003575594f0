// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// URLs of servers: parsed, and shown without their secrets.
#pragma once

#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// Set `settings` as `url` says. Messages name a malformed part and never quote it.
Outcome parse_url(std::string_view url, Settings &settings);

// `url` for messages. Passwords, a user without a password, and malformed parts are shown
// as ***; if the URL is too long, or has an '@' in the path or the query, all behind the scheme.
std::string redact_url(std::string_view url);

}  // namespace redlatch::config
