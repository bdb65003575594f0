// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What may be shown of a URL.
#include <algorithm>
#include <array>

#include "client/options.h"

namespace redlatch::client {

namespace {

constexpr std::array<std::string_view, 14> kShownNames = {
    "namespace",       "db",      "holder",   "password_file", "client_name",
    "connect_timeout", "timeout", "protocol", "server",        "tls_ca",
    "tls_cert",        "tls_key", "tls_sni",  "tls_verify"};

bool is_shown(std::string_view name) {
  return std::find(kShownNames.begin(), kShownNames.end(), name) != kShownNames.end();
}

// What may be shown of "host:port/0" and the like. A part that is not of the expected form may be
// the rest of a password that nobody encoded.
std::string redact_server(std::string_view server, std::string_view scheme) {
  if (scheme == "unix://") return server.starts_with('/') ? std::string(server) : "***";
  if (scheme == "embedded://" && server.starts_with('/')) return std::string(server);
  const auto is_digits = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const size_t slash = std::min(server.find('/'), server.size());
  const std::string_view host = server.substr(0, slash);
  const std::string_view path = server.substr(std::min(slash + 1, server.size()));
  const size_t colon =
      host.find(':', host.starts_with('[') ? std::min(host.find(']'), host.size()) : 0);
  std::string shown(host.substr(0, colon));
  if (colon != std::string_view::npos) {
    shown += is_digits(host.substr(colon + 1)) ? std::string(host.substr(colon)) : ":***";
  }
  if (slash < server.size()) shown += is_digits(path) ? "/" + std::string(path) : "/***";
  return shown;
}

}  // namespace

std::string redact_url(std::string_view url) {
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  std::string shown(url.substr(0, begin));
  // A password may hold a bare slash or question mark: the last '@' ends it, to be safe.
  const size_t at = url.rfind('@');
  std::string_view rest = url.substr(begin);
  if (at != std::string_view::npos && at >= begin) {
    const std::string_view who = url.substr(begin, at - begin);
    const size_t colon = who.find_first_of(":/?");
    // Without a scheme it may be anything, and who knows where the password begins.
    shown.append(scheme == std::string_view::npos ? "***" : who.substr(0, colon));
    if (colon != std::string_view::npos) shown.append(":***");
    shown += '@';
    rest = url.substr(at + 1);
  }
  const size_t query = std::min(rest.find('?'), rest.size());
  shown += redact_server(rest.substr(0, query), url.substr(0, begin));
  rest.remove_prefix(query);
  // Of parameters only what cannot be a secret is shown: a mistyped name may stand before one.
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&', 1));
    rest.remove_prefix(pair.size());
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      shown.append(pair.substr(0, 1)).append("***");
    } else if (is_shown(pair.substr(1, equals - 1))) {
      shown.append(pair);
    } else {
      shown.append(pair.substr(0, equals + 1)).append("***");
    }
  }
  return shown;
}

}  // namespace redlatch::client
