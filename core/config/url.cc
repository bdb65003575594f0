// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/url.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/password.h"
#include "base/text.h"
#include "config/options.h"
#include "config/url_parts.h"
#include "host/process.h"

namespace redlatch::config {

namespace {

constexpr const char *kBadCode = "a '%' must begin a code of two hexadecimal digits, such as %2F,";

// Those of sentinels may be written with a '+' as well.
constexpr std::array<std::string_view, 14> kSchemes = {
    "redis",         "rediss",         "valkey",          "valkeys",         "unix",
    "embedded",      "redis-sentinel", "rediss-sentinel", "valkey-sentinel", "valkeys-sentinel",
    "redis+cluster", "rediss+cluster", "valkey+cluster",  "valkeys+cluster"};
constexpr const char *kSentinelPort = "26379";
constexpr const char *kSentinelForm = "redis-sentinel://host:26379,host:26379/NAME/0";

// How other clients give the name of the primary.
constexpr std::array<std::string_view, 8> kNameParameters = {
    "sentinelmasterid", "master_name",  "mastername", "master",
    "master_set",       "service_name", "master_id",  "primary_name"};

// As it is written in kSchemes.
std::string canonical(std::string_view scheme) {
  std::string name(scheme);
  const size_t plus = name.find("+sentinel");
  if (plus != std::string::npos) name[plus] = '-';
  return name;
}

bool names_primary(std::string_view parameter) {
  std::string name(parameter.substr(0, parameter.find('=')));
  for (char &c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(kNameParameters.begin(), kNameParameters.end(), name) != kNameParameters.end();
}

std::string list_of_schemes() {
  std::string list;
  for (const auto scheme : kSchemes) {
    list += (list.empty() ? "" : ", ") + std::string(scheme) + "://";
  }
  return list;
}

// The same for all processes of a user, however they were started: see docs/design/0007.
std::string default_folder() { return "/tmp/redlatch-" + std::to_string(user_number()); }

class UrlParser {
 public:
  UrlParser(std::string_view url, Settings &settings)
      : shown_(redact_url(url)), rest_(url), settings_(settings) {}

  Outcome parse();

 private:
  Outcome wrong(const std::string &what) const {
    return failure(Status::kInvalid, what + " in " + shown_);
  }
  Outcome take_scheme();
  Outcome take_user();
  Outcome take_server();
  Outcome take_sentinels();
  Outcome take_nodes();
  Outcome take_list(const std::string &port, const std::string &what, size_t limit,
                    std::vector<HostPort> &all);
  Outcome take_address(std::string_view server, HostPort &address) const;
  Outcome take_primary_name();
  Outcome take_path();
  Outcome take_socket(std::string_view path);
  Outcome take_folder(std::string_view path);
  Outcome take_query();
  Outcome take_option(std::string_view pair, bool is_behind_secret);
  std::string_view take_until(std::string_view ends);

  const std::string shown_;
  std::string_view rest_;
  Settings &settings_;
  bool is_unix_ = false;
  bool is_embedded_ = false;
  bool has_sentinels_ = false;
  bool is_cluster_ = false;
};

Outcome UrlParser::parse() {
  if (rest_.size() > kMaxUrlBytes) {
    return wrong("the URL must be at most " + std::to_string(kMaxUrlBytes) + " bytes (got " +
                 std::to_string(rest_.size()) + " bytes)");
  }
  if (auto outcome = take_scheme(); !outcome.ok()) return outcome;
  if (rest_.find('#') != std::string_view::npos) {
    if (has_sentinels_)
      return wrong("the name of the primary must be in the path, as in " +
                   std::string(kSentinelForm) + ", not behind a '#',");
    return wrong("a '#' must be written as %23, and a fragment is not allowed");
  }
  if (auto outcome = take_user(); !outcome.ok()) return outcome;
  if (!is_unix_ && !is_embedded_) {
    auto outcome = has_sentinels_ ? take_sentinels() : is_cluster_ ? take_nodes() : take_server();
    if (!outcome.ok()) return outcome;
  }
  if (auto outcome = take_path(); !outcome.ok()) return outcome;
  return take_query();
}

// Take the text before the first of `ends`, or all of it.
std::string_view UrlParser::take_until(std::string_view ends) {
  const std::string_view part = rest_.substr(0, rest_.find_first_of(ends));
  rest_.remove_prefix(part.size());
  return part;
}

Outcome UrlParser::take_scheme() {
  const size_t end = rest_.find("://");
  const std::string scheme(rest_.substr(0, end));
  if (end == std::string_view::npos || !is_scheme(scheme)) {
    return failure(Status::kInvalid, "URL must begin with one of " + list_of_schemes());
  }
  rest_.remove_prefix(end + 3);
  const std::string known = canonical(scheme);
  if (std::find(kSchemes.begin(), kSchemes.end(), known) == kSchemes.end()) {
    const std::string near = nearest(kSchemes, scheme);
    return wrong("scheme must be one of " + list_of_schemes() + " (got '" + scheme + "://'" +
                 (near.empty() ? "" : ", did you mean '" + near + "://'?") + ")");
  }
  has_sentinels_ = is_sentinel_scheme(known);
  is_cluster_ = is_cluster_scheme(known);
  settings_.tls.is_on = known.starts_with("rediss") || known.starts_with("valkeys");
  is_unix_ = scheme == "unix";
  is_embedded_ = scheme == "embedded";
  return {};
}

Outcome UrlParser::take_user() {
  const std::string_view authority = rest_.substr(0, rest_.find_first_of("/?"));
  const size_t at = authority.rfind('@');
  const bool is_tcp = !is_unix_ && !is_embedded_;
  if (is_tcp && rest_.find('@', authority.size()) != std::string_view::npos) {
    return wrong(
        "a '/', '?' or '@' in a user, a password or an option must be written as %2F, "
        "%3F or %40");
  }
  if (at == std::string_view::npos) return {};
  const std::string_view who = authority.substr(0, at);
  if (has_parameter(who)) {
    return wrong(
        "options must follow a '?', and a '=' in a user or a password must be written as %3D,");
  }
  const size_t colon = who.find(':');
  rest_.remove_prefix(at + 1);
  if (!percent_decode(who.substr(0, colon), settings_.user)) return wrong(kBadCode);
  if (colon == std::string_view::npos) return {};
  std::string password;
  const WipeAtEnd wipe(password);
  if (!percent_decode(who.substr(colon + 1), password)) return wrong(kBadCode);
  settings_.password = password;
  return {};
}

Outcome UrlParser::take_server() {
  HostPort address{{}, settings_.port};
  auto outcome = take_address(take_until("/?"), address);
  settings_.host = address.host;
  settings_.port = address.port;
  return outcome;
}

Outcome UrlParser::take_sentinels() {
  auto outcome = take_list(kSentinelPort, "sentinel", kMaxSentinels, settings_.sentinel.addresses);
  return outcome.ok() ? take_primary_name() : outcome;
}

Outcome UrlParser::take_nodes() {
  return take_list(settings_.port, "node", kMaxClusterAddresses, settings_.cluster.addresses);
}

// The hosts, with commas between them. `port` is used where none is named.
Outcome UrlParser::take_list(const std::string &port, const std::string &what, size_t limit,
                             std::vector<HostPort> &all) {
  assert(all.empty() && "a URL is read into new settings");
  std::string_view list = take_until("/?");
  for (bool has_more = true; has_more;) {
    const size_t comma = list.find(',');
    has_more = comma != std::string_view::npos;
    HostPort address{{}, port};
    if (auto outcome = take_address(list.substr(0, comma), address); !outcome.ok()) return outcome;
    if (std::find(all.begin(), all.end(), address) != all.end()) {
      return wrong(what + " " + address.text() + " must be named once (got it twice)");
    }
    if (all.size() == limit) {
      return wrong("the " + what + "s must be 1 to " + std::to_string(limit) + " (got more)");
    }
    all.push_back(address);
    if (has_more) list.remove_prefix(comma + 1);
  }
  return {};
}

// Leaves the slash before the database.
Outcome UrlParser::take_primary_name() {
  if (rest_.starts_with('/')) rest_.remove_prefix(1);
  const std::string_view name = take_until("/?");
  settings_.sentinel.primary_name = name;
  if (is_primary_name(name)) return {};
  std::string hint = name.empty() ? " (got none)" : "";
  for (std::string_view query = rest_; !query.empty();) {
    query.remove_prefix(1);
    if (names_primary(query)) hint = " (got a parameter in its place)";
    query.remove_prefix(std::min(query.find('&'), query.size()));
  }
  return wrong("the name of the primary must be 1 to " + std::to_string(kMaxPrimaryNameBytes) +
               " letters, digits, '.', '-' and '_' in the path, as in " + kSentinelForm + hint +
               ",");
}

// One server. `address` has the port that is used if none is named.
Outcome UrlParser::take_address(std::string_view server, HostPort &address) const {
  const bool is_bracketed = server.starts_with('[');
  const size_t close = is_bracketed ? server.find(']') : std::string_view::npos;
  if (is_bracketed && close == std::string_view::npos)
    return wrong("an address that begins with '[' must have a ']'");
  const std::string_view host =
      is_bracketed ? server.substr(1, close - 1) : server.substr(0, server.find(':'));
  const std::string_view behind = server.substr(is_bracketed ? close + 1 : host.size());
  if (is_bracketed && !is_ipv6(host)) return wrong("the address in brackets must be IPv6,");
  if (!is_bracketed && !is_host(host)) {
    return wrong("the host must be 1 to " + std::to_string(kMaxHostBytes) +
                 " letters, digits, '.', '-' and '_' (an IPv6 address in brackets), and options "
                 "must follow a '?',");
  }
  address.host = host;
  // RFC 6874: the '%' before a zone is written as %25.
  const size_t zone = address.host.find("%25");
  if (zone != std::string::npos) address.host.erase(zone + 1, 2);
  if (behind.empty()) return {};
  if (!behind.starts_with(':') || !is_port(behind.substr(1))) {
    return wrong("the port must be a number of 1 to 65535, and an IPv6 address in brackets,");
  }
  int number = 0;
  if (parse_number(behind.substr(1), number)) address.port = std::to_string(number);
  return {};
}

Outcome UrlParser::take_path() {
  const std::string_view path = take_until("?");
  if ((is_embedded_ || is_unix_) && !is_path(path)) {
    return wrong(
        "a space, control character, '%', ';', ',', '&', '=' or '|' in the path must be "
        "percent-encoded");
  }
  if (is_embedded_) return take_folder(path);
  if (is_unix_) return take_socket(path);
  assert(path.empty() || path.front() == '/');
  if (path.size() <= 1) return {};
  if (set_option(settings_, "db", path.substr(1)).ok()) return {};
  return wrong("the database must be a number of 0 to " + std::to_string(kMaxDatabase));
}

Outcome UrlParser::take_socket(std::string_view path) {
  if (!percent_decode(path, settings_.socket_path)) return wrong(kBadCode);
  if (!settings_.socket_path.starts_with('/') || settings_.socket_path.size() > kMaxSocketPath ||
      settings_.socket_path.find('\0') != std::string::npos) {
    return wrong("the socket needs an absolute path of at most " + std::to_string(kMaxSocketPath) +
                 " bytes, such as unix:///run/redis.sock");
  }
  return {};
}

Outcome UrlParser::take_folder(std::string_view path) {
  std::string &folder = settings_.folder;
  if (!percent_decode(path, folder)) return wrong(kBadCode);
  if (folder.empty()) folder = default_folder();
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (!folder.starts_with('/') || folder.find('\0') != std::string::npos) {
    return wrong(
        "an embedded server has no host: embedded:// is the server of this user, "
        "embedded:///a/folder (three slashes) that of a folder,");
  }
  if (folder.size() > kMaxFolderPath) {
    return wrong("the folder's path must be at most " + std::to_string(kMaxFolderPath) +
                 " bytes, because the name of a socket in it is limited (got " +
                 std::to_string(folder.size()) + " bytes)");
  }
  settings_.socket_path = folder + "/" + std::string(kSocketFile);
  return {};
}

Outcome UrlParser::take_query() {
  if (!rest_.empty()) rest_.remove_prefix(1);
  bool is_behind_secret = false;
  while (!rest_.empty()) {
    const std::string_view pair = take_until("&");
    if (!rest_.empty()) rest_.remove_prefix(1);
    is_behind_secret = is_behind_secret || pair.empty();
    if (pair.empty()) continue;
    if (auto outcome = take_option(pair, is_behind_secret); !outcome.ok()) return outcome;
    is_behind_secret =
        is_behind_secret || pair.starts_with("password=") || pair.starts_with("sentinel_password=");
  }
  return {};
}

Outcome UrlParser::take_option(std::string_view pair, bool is_behind_secret) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) return wrong("each option must be name=value");
  const std::string_view name = pair.substr(0, equals);
  const std::string_view raw = pair.substr(equals + 1);
  const Option *option = find_option(name);
  if (option != nullptr && option->scope == Scope::kQuorum) {
    return wrong("option " + quoted(name) + " is for the whole Redlock and not allowed");
  }
  if (has_sentinels_ && names_primary(pair)) {
    return wrong("the name of the primary must be in the path, as in " +
                 std::string(kSentinelForm) + ", not in a parameter,");
  }
  if (option == nullptr || option->is_of_acquisitions()) {
    const auto outcome = unknown_option(is_shown_name(pair, is_behind_secret) ? name : "");
    return failure(Status::kInvalid, outcome.message + " (in " + shown_ + ")");
  }
  if (option->kind != Kind::kPASSWORD && !is_plain_value(raw)) {
    return wrong("a space, control character, '%', ';', ',', '=', '?', '@' or '|' in option " +
                 quoted(name) + " must be percent-encoded");
  }
  std::string value;
  const WipeAtEnd wipe(value);
  if (!percent_decode(raw, value)) return wrong(kBadCode);
  auto outcome = set_option(settings_, name, value);
  if (outcome.ok()) return outcome;
  // Else it may be a part of a password that was not encoded.
  if (is_shown_value(*option, raw)) outcome.message += got(*option, value);
  outcome.message += " (in " + clean(shown_) + ")";
  return outcome;
}

}  // namespace

Outcome parse_url(std::string_view url, Settings &settings) {
  return UrlParser(url, settings).parse();
}

}  // namespace redlatch::config
