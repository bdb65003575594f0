// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The grammar of URLs, to open a server and to show a URL without its secrets. Both accept the same
// parts, because a malformed part may be the rest of a password that was not encoded.
#pragma once

#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// Set what `url` says in `settings`. A message names the malformed part and never quotes it.
Outcome parse_url(std::string_view url, Settings &settings);

// `url` for people: user names, passwords without a name, and malformed parts are ***.
std::string redact_url(std::string_view url);

// ---- parts, as they are written in a URL -------------------------------------------------------

// What begins a URL, without "://".
bool is_scheme(std::string_view text);
// A host name or an IPv4 address.
bool is_host(std::string_view text);
// An IPv6 address without its brackets, with or without a zone.
bool is_ipv6(std::string_view text);
bool is_port(std::string_view text);
// Of the form that names of options have.
bool is_option_name(std::string_view text);
// May "name=value" be shown as far as the '=', although no option has a name like it? Not behind a
// secret, which may hold an '&', and not if the value looks like several.
bool is_shown_name(std::string_view pair, bool is_behind_secret);
// Of a socket or a folder.
bool is_path(std::string_view text);
// What may be the value of an option that is no secret. Others must be percent-encoded.
bool is_plain_value(std::string_view text);
// May the path that an option names be shown? Not if it may be the secret that the file holds.
bool is_shown_path(std::string_view text);

}  // namespace redlatch::config
