// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/url_parts.h"

#include <algorithm>
#include <charconv>

#include "base/password.h"
#include "base/text.h"
#include "config/option_table.h"

namespace redlatch::config {

namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// @return whether `text` is made of letters, digits and `others` only.
bool is_made_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](char c) {
    return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

// Each of `refused` is a separator in some grammar, so the text after it may be another option.
bool is_free_of(std::string_view text, std::string_view refused) {
  std::string unused;
  const WipeAtEnd wipe(unused);
  return percent_decode(text, unused) && std::none_of(text.begin(), text.end(), [refused](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte <= 0x20 || byte == 0x7f || refused.find(c) != std::string_view::npos;
         });
}

}  // namespace

bool percent_decode(std::string_view text, std::string &out) {
  out.clear();
  out.reserve(text.size());  // of a password no part is left in a smaller buffer
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const char *digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) {
      return false;
    }
    out += static_cast<char>(byte);
    i += 2;
  }
  return true;
}

bool is_scheme(std::string_view text) {
  constexpr size_t kMaxScheme = 16;
  return !text.empty() && text.size() <= kMaxScheme &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz+-.") == std::string_view::npos;
}

bool is_sentinel_scheme(std::string_view scheme) {
  return scheme.ends_with("-sentinel") || scheme.ends_with("+sentinel");
}

bool is_cluster_scheme(std::string_view scheme) { return scheme.ends_with("+cluster"); }

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostBytes && is_made_of(text, "-._") &&
         text.front() != '-';
}

bool is_ipv6(std::string_view text) {
  const size_t zone = std::min(text.find('%'), text.size());
  const std::string_view address = text.substr(0, zone);
  const bool is_link_local = address.starts_with("fe80:") || address.starts_with("FE80:");
  if (zone < text.size() && !is_link_local) return false;
  return std::count(address.begin(), address.end(), ':') >= 2 && text.size() <= kMaxHostBytes &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos &&
         is_made_of(text.substr(std::min(zone + 1, text.size())), "-._");
}

bool is_port(std::string_view text) {
  int number = 0;
  return parse_number(text, number) && number >= 1 && number <= 65'535;
}

bool is_option_name(std::string_view text) {
  constexpr size_t kMaxShown = 32;
  return !text.empty() && text.size() <= kMaxShown &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-") == std::string_view::npos;
}

bool is_shown_name(std::string_view pair, bool is_behind_secret) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = pair.substr(0, equals);
  if (!nearest_option(name).empty()) return true;
  return !is_behind_secret && is_option_name(name) && is_plain_value(pair.substr(equals + 1));
}

bool is_primary_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPrimaryNameBytes && is_made_of(text, ".-_");
}

bool is_path(std::string_view text) { return is_free_of(text, ";,&=#?|"); }

bool is_plain_value(std::string_view text) { return is_free_of(text, ";,&=#?|@"); }

bool has_parameter(std::string_view user) {
  while (!user.empty()) {
    const std::string_view name = user.substr(0, user.find_first_of("&;,:="));
    const bool is_value_next = name.size() < user.size() && user[name.size()] == '=';
    if (is_value_next && !nearest_option(name).empty()) return true;
    user.remove_prefix(std::min(name.size() + 1, user.size()));
  }
  return false;
}

bool is_shown_path(std::string_view text) {
  constexpr size_t kMaxShown = 256;
  return (text.starts_with('/') || text.starts_with('.')) && text.size() <= kMaxShown &&
         is_plain_value(text);
}

}  // namespace redlatch::config
