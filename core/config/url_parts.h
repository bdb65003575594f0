// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The parts of a URL, as they are written. Parsing and showing accept the same parts, because a
// malformed part may be the rest of a password that was not encoded.
#pragma once

#include <string>
#include <string_view>

namespace redlatch::config {

// Decode each %XX of `text`. @return false if a '%' begins no such code.
bool percent_decode(std::string_view text, std::string &out);

// The scheme of a URL, without "://".
bool is_scheme(std::string_view text);
// A scheme whose hosts are sentinels.
bool is_sentinel_scheme(std::string_view scheme);
// A scheme whose hosts are nodes of a cluster.
bool is_cluster_scheme(std::string_view scheme);
// A host name or an IPv4 address.
bool is_host(std::string_view text);
// An IPv6 address without its brackets, with or without a zone.
bool is_ipv6(std::string_view text);
bool is_port(std::string_view text);
// True if `text` has the form of an option name.
bool is_option_name(std::string_view text);
// True if the name in "name=value" may be shown: it is near the name of an option, or has its form.
// The form is not enough after a secret, which may hold an '&', or if the value is not a plain one.
bool is_shown_name(std::string_view pair, bool is_behind_secret);
// The name of a primary, as sentinels know it.
bool is_primary_name(std::string_view text);
// The path of a socket or a folder.
bool is_path(std::string_view text);
// True if the text before an '@' has an option, "name=value", as where a '?' is missing: the '@'
// may then be in a password, and the text behind it the rest of that.
bool has_parameter(std::string_view user);
// The value of an option that is not a secret. Other characters must be percent-encoded.
bool is_plain_value(std::string_view text);
// True if the path in an option may be shown: it must not be a secret that was given in its place.
bool is_shown_path(std::string_view text);

}  // namespace redlatch::config
