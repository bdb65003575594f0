// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Which parts of a URL may be shown.
#include <algorithm>
#include <cassert>

#include "base/text.h"
#include "config/options.h"
#include "config/url.h"
#include "config/url_parts.h"

namespace redlatch::config {

namespace {

constexpr std::string_view kHidden = "***";

std::string shown_if(bool is_shown, std::string_view text) {
  return std::string(is_shown ? text : kHidden);
}

bool is_small_number(std::string_view text) {
  int number = 0;
  return parse_number(text, number) && number >= 0 && number <= kMaxDatabase;
}

// "user:password" before the '@'. A name alone may be a password with its ':' misplaced.
std::string redact_user(std::string_view who) {
  if (who.empty()) return "";
  const size_t colon = who.find(':');
  if (colon == std::string_view::npos || (colon > 0 && colon + 1 == who.size())) {
    return std::string(kHidden);
  }
  const std::string_view user = who.substr(0, colon);
  const bool is_name = is_plain_value(user) && user.find('/') == std::string_view::npos;
  return shown_if(is_name, user) + ":" + std::string(kHidden);
}

// "host:port"
std::string redact_address(std::string_view authority) {
  const bool is_bracketed = authority.starts_with('[');
  const size_t close = is_bracketed ? authority.find(']') : 0;
  const size_t end = close == std::string_view::npos ? close : authority.find(':', close);
  const std::string_view host = authority.substr(0, end);
  const bool is_good = is_bracketed ? host.ends_with(']') && host.size() > 2 &&
                                          is_ipv6(host.substr(1, host.size() - 2))
                                    : is_host(host);
  if (!is_good) return std::string(kHidden);
  if (host.size() == authority.size()) return std::string(host);
  const std::string_view port = authority.substr(host.size() + 1);
  return std::string(host) + ":" + shown_if(is_port(port), port);
}

std::string redact_database(std::string_view database) {
  return shown_if(database.empty() || is_small_number(database), database);
}

// "host:port/0"
std::string redact_server(std::string_view server) {
  const size_t slash = std::min(server.find('/'), server.size());
  if (server.empty()) return "";
  std::string shown = redact_address(server.substr(0, slash));
  if (slash == server.size() || shown == kHidden) return shown;
  return shown + "/" + redact_database(server.substr(slash + 1));
}

// "host:port,host:port". Behind a part that is not shown, nothing is.
std::string redact_list(std::string_view list) {
  std::string shown;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    shown += redact_address(list.substr(0, comma));
    if (shown.ends_with(kHidden)) return shown;
    list.remove_prefix(comma);
    if (list.empty()) break;
    shown += ',';
    list.remove_prefix(1);
  }
  return shown;
}

// "host:port,host:port/0"
std::string redact_nodes(std::string_view server) {
  const size_t slash = std::min(server.find('/'), server.size());
  const std::string shown = redact_list(server.substr(0, slash));
  if (slash == server.size() || shown.ends_with(kHidden)) return shown;
  return shown + "/" + redact_database(server.substr(slash + 1));
}

// "host:port,host:port/name/0"
std::string redact_sentinels(std::string_view server) {
  const size_t slash = std::min(server.find('/'), server.size());
  std::string shown = redact_list(server.substr(0, slash));
  if (slash == server.size() || shown.ends_with(kHidden)) return shown;
  const std::string_view path = server.substr(slash + 1);
  const std::string_view name = path.substr(0, path.find('/'));
  shown += "/" + shown_if(name.empty() || is_primary_name(name), name);
  if (name.size() == path.size() || shown.ends_with(kHidden)) return shown;
  return shown + "/" + redact_database(path.substr(name.size() + 1));
}

// "?name=value&.."
std::string redact_query(std::string_view query) {
  assert(query.empty() || query.front() == '?');
  std::string shown;
  bool is_behind_secret = false;
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&', 1));
    query.remove_prefix(pair.size());
    shown += pair.front();
    pair.remove_prefix(1);
    const size_t equals = pair.find('=');
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value =
        equals == pair.npos ? pair.substr(0, 0) : pair.substr(equals + 1);
    const Option *option = find_option(name);
    const bool is_plain = equals != std::string_view::npos && option != nullptr &&
                          option->is_of_servers() && is_shown_value(*option, value);
    if (is_shown_name(pair, is_behind_secret)) {
      shown.append(name).append("=").append(shown_if(is_plain, value));
    } else if (!pair.empty()) {
      shown += kHidden;
    }
    // A value that is not shown may contain an '&', so that the next parameter is a part of it.
    is_behind_secret = is_behind_secret || !is_plain;
  }
  return shown;
}

bool is_local(std::string_view scheme) { return scheme == "unix" || scheme == "embedded"; }

// The path of a socket or a folder, which may have an '@'; behind "@/" it may be another path, and
// what is before that a password that was not encoded.
bool is_local_path(std::string_view path) {
  return path.starts_with('/') && is_path(path) && path.find("@/") == std::string_view::npos;
}

// The part before the query, less "user:password@". It ends in kHidden if it is malformed.
std::string redact_place(std::string_view scheme, std::string_view place) {
  if (is_local(scheme)) return shown_if(place.empty() || is_local_path(place), place);
  if (is_cluster_scheme(scheme)) return redact_nodes(place);
  return is_sentinel_scheme(scheme) ? redact_sentinels(place) : redact_server(place);
}

// True if the last '@' may be the end of a password that was not encoded, or be in one: what is
// behind it may then be a server or the rest of a secret. In its place it ends the user.
bool is_ambiguous(std::string_view scheme, std::string_view rest) {
  const size_t at = rest.rfind('@');
  const size_t authority = std::min(rest.find_first_of("/?#"), rest.size());
  if (at == std::string_view::npos) return false;
  if (at < authority) return has_parameter(rest.substr(0, at));
  const std::string_view path = rest.substr(0, rest.find_first_of("?#"));
  return !is_local(scheme) || at > path.size() || !is_local_path(path);
}

}  // namespace

std::string redact_url(std::string_view url) {
  const size_t scheme_end = url.find("://");
  const std::string_view scheme = url.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || !is_scheme(scheme)) return std::string(kHidden);
  std::string shown = std::string(scheme) + "://";
  std::string_view rest = url.substr(shown.size());
  if (url.size() > kMaxUrlBytes || is_ambiguous(scheme, rest)) return shown.append(kHidden);
  const size_t path = std::min(rest.find_first_of("/?#"), rest.size());
  if (const size_t at = rest.substr(0, path).rfind('@'); at != std::string_view::npos) {
    shown += redact_user(rest.substr(0, at)) + "@";
    rest.remove_prefix(at + 1);
  }
  const std::string_view place = rest.substr(0, rest.find_first_of("?#"));
  shown += redact_place(scheme, place);
  if (shown.ends_with(kHidden)) return shown;  // what follows may be the rest of it
  rest.remove_prefix(place.size());
  const size_t fragment = std::min(rest.find('#'), rest.size());
  shown += redact_query(rest.substr(0, fragment));
  if (fragment < rest.size()) shown.append("#").append(kHidden);
  return shown;
}

}  // namespace redlatch::config
