// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "client/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"
#include "client/secret_file.h"
#include "client/tls_options.h"
#include "embedded/folder.h"
#include "wire/keys.h"

namespace redlatch::client {

namespace {

constexpr size_t kMaxSocketPath = 107;  // sockaddr_un::sun_path, less its NUL

Outcome invalid(std::string message) { return failure(Status::kInvalid, std::move(message)); }

// ---- values ------------------------------------------------------------------------------------

// 500ms, 2s, 5m, 1h; without a unit, seconds. 0 if it is none.
Nanos parse_duration(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = text.substr(digits);
  int64_t count = 0;
  if (!parse_number(text.substr(0, digits), count)) return 0;
  Nanos scale = 0;
  if (unit == "ms") scale = kMs;
  if (unit == "s" || unit.empty()) scale = 1000 * kMs;
  if (unit == "m") scale = 60'000 * kMs;
  if (unit == "h") scale = 3'600'000 * kMs;
  if (scale == 0 || count > kMaxTimeoutMs * kMs / scale) return 0;
  return count * scale;
}

Outcome set_duration(std::string_view name, std::string_view value, Nanos &target) {
  const Nanos duration = parse_duration(value);
  if (duration < kMs) {
    return invalid("option " + quoted(name) + ": " + quoted(value) +
                   " is not a duration of 1ms to 1h, such as 500ms, 2s or 1m");
  }
  target = duration;
  return {};
}

Outcome set_database(std::string_view value, int &target) {
  int number = -1;
  if (!parse_number(value, number) || number < 0 || number > kMaxDatabase) {
    return invalid("option 'db': " + quoted(value) + " is not a number of 0 to " +
                   std::to_string(kMaxDatabase));
  }
  target = number;
  return {};
}

Outcome set_text(std::string_view name, std::string_view value, size_t limit, std::string &target) {
  if (value.size() > limit) {
    return invalid("option " + quoted(name) + " has " + std::to_string(value.size()) +
                   " bytes: allowed are at most " + std::to_string(limit));
  }
  target = value;
  return {};
}

// The server takes no spaces or control characters in names of connections.
Outcome set_client_name(std::string_view value, std::string &target) {
  const bool is_plain =
      std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain) {
    return invalid("option 'client_name': " + quoted(value) +
                   " holds other than printable ASCII without spaces");
  }
  return set_text("client_name", value, kMaxLabelBytes, target);
}

Outcome set_protocol(std::string_view value, int &target) {
  if (value != "2" && value != "3") {
    return invalid("option 'protocol': " + quoted(value) + " is none; 2 and 3 are");
  }
  target = value[0] - '0';
  return {};
}

// A relative one would mean another file to the supervisor, which runs in another folder.
Outcome set_server(std::string_view value, std::string &target) {
  if (!value.starts_with('/') || value.find('\0') != std::string_view::npos) {
    return invalid("option 'server': " + quoted(value) +
                   " is not the absolute path of a valkey-server or redis-server");
  }
  return set_text("server", value, kMaxNameBytes, target);
}

// ---- names -------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 16> kNames = {
    "namespace", "user",     "password",    "password_file",
    "db",        "holder",   "client_name", "connect_timeout",
    "timeout",   "protocol", "server",      "tls_ca",
    "tls_cert",  "tls_key",  "tls_sni",     "tls_verify"};
constexpr std::array<std::string_view, 6> kSchemes = {"redis",   "rediss", "valkey",
                                                      "valkeys", "unix",   "embedded"};
constexpr std::array<std::string_view, 3> kLaterSchemes = {"redis-sentinel", "redis+cluster",
                                                           "valkey+cluster"};

constexpr std::array<std::string_view, 5> kQuorumNames = {"restart_guard", "durable", "fenced",
                                                          "node_timeout", "min_validity"};

// Levenshtein distance, row by row.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); i++) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, change}));
    }
  }
  return row.back();
}

template <size_t N>
std::string nearest(const std::array<std::string_view, N> &known, std::string_view name) {
  const auto best = std::min_element(known.begin(), known.end(), [&](auto a, auto b) {
    return distance(a, name) < distance(b, name);
  });
  return std::string(*best);
}

std::string list_of_schemes() {
  std::string list;
  for (const auto scheme : kSchemes) {
    list += (list.empty() ? "" : ", ") + std::string(scheme) + "://";
  }
  return list;
}

bool is_of_tls(std::string_view name) { return name.starts_with("tls_"); }

Outcome set_option(Settings &settings, std::string_view name, std::string_view value) {
  if (name == "namespace") {
    auto checked = wire::check_namespace(value);
    if (checked.ok()) settings.name_space = value;
    return checked;
  }
  if (name == "user") return set_text(name, value, kMaxNameBytes, settings.user);
  if (name == "password") {
    if (value.size() > kMaxPasswordBytes) return invalid("option 'password' is over 64 KiB");
    settings.password = value;
    return {};
  }
  if (name == "password_file") return read_secret(std::string(value), settings.password);
  if (name == "db") return set_database(value, settings.database);
  if (name == "holder") return set_text(name, value, kMaxLabelBytes, settings.holder);
  if (name == "client_name") return set_client_name(value, settings.client_name);
  if (name == "connect_timeout") return set_duration(name, value, settings.connect_timeout);
  if (name == "timeout") return set_duration(name, value, settings.timeout);
  if (name == "protocol") return set_protocol(value, settings.protocol);
  if (name == "server") return set_server(value, settings.server);
  if (is_of_tls(name)) {
    if (auto outcome = set_tls_option(settings.tls, name, value)) return *outcome;
  }
  const std::string_view shown = name.substr(0, 64);
  std::string close = nearest(kNames, shown);
  const std::string of_quorum = nearest(kQuorumNames, shown);
  if (distance(of_quorum, shown) < distance(close, shown)) close = of_quorum;
  return invalid("unknown option " + quoted(name) + ": did you mean '" + close + "'?");
}

// ---- options of a Redlock ----------------------------------------------------------------------

bool is_of_quorum(std::string_view name) {
  return std::find(kQuorumNames.begin(), kQuorumNames.end(), name) != kQuorumNames.end();
}

Outcome set_switch(std::string_view name, std::string_view value, bool &target) {
  if (value != "yes" && value != "no") {
    return invalid("option " + quoted(name) + ": " + quoted(value) + " is none; yes and no are");
  }
  target = value == "yes";
  return {};
}

// A duration of `least` to `most`, or `word`, which stands for 0.
Outcome set_duration_or(std::string_view name, std::string_view value, std::string_view word,
                        Nanos least, Nanos most, Nanos &target) {
  const Nanos duration = value == word ? 0 : parse_duration(value);
  if (value != word && (duration < least || duration > most)) {
    return invalid("option " + quoted(name) + ": " + quoted(value) + " is neither " +
                   std::string(word) + " nor a duration of " + std::to_string(least / kMs) +
                   "ms to " + std::to_string(most / kMs) + "ms, such as 2s or 1m");
  }
  target = duration;
  return {};
}

Outcome set_quorum_option(QuorumSettings &settings, std::string_view name, std::string_view value) {
  constexpr Nanos kHour = kMaxTimeoutMs * kMs;
  if (name == "durable") return set_switch(name, value, settings.is_durable);
  if (name == "fenced") return set_switch(name, value, settings.is_fenced);
  if (name == "restart_guard") {
    return set_duration_or(name, value, "off", 1000 * kMs, kHour, settings.restart_guard);
  }
  if (name == "node_timeout") {
    return set_duration_or(name, value, "auto", kMs, 60'000 * kMs, settings.node_timeout);
  }
  return set_duration_or(name, value, "0", kMs, kHour, settings.min_validity);
}

// ---- URLs --------------------------------------------------------------------------------------

bool percent_decode(std::string_view text, std::string &out) {
  out.clear();
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

std::string default_holder() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::string pid = "/" + std::to_string(getpid());
  return std::string(host.data()).substr(0, kMaxLabelBytes - pid.size()) + pid;
}

class UrlParser {
 public:
  UrlParser(std::string_view url, Settings &settings)
      : shown_(redact_url(url)), rest_(url), settings_(settings) {}

  Outcome parse();

 private:
  Outcome wrong(const std::string &what) const { return invalid(what + " in " + shown_); }
  Outcome take_scheme();
  Outcome take_user();
  Outcome take_server();
  Outcome take_path();
  Outcome take_socket(std::string_view path);
  Outcome take_folder(std::string_view path);
  Outcome take_query();
  bool take_until(std::string_view ends, std::string_view &part);

  const std::string shown_;
  std::string_view rest_;
  Settings &settings_;
  bool is_unix_ = false;
  bool is_embedded_ = false;
};

Outcome UrlParser::parse() {
  if (rest_.size() > 8 * kMaxNameBytes) return invalid("URL is over 8 KiB");
  if (auto outcome = take_scheme(); !outcome.ok()) return outcome;
  if (auto outcome = take_user(); !outcome.ok()) return outcome;
  if (!is_unix_ && !is_embedded_) {
    if (auto outcome = take_server(); !outcome.ok()) return outcome;
  }
  if (auto outcome = take_path(); !outcome.ok()) return outcome;
  return take_query();
}

// Move what stands before the first of `ends` to `part`. The end itself stays.
bool UrlParser::take_until(std::string_view ends, std::string_view &part) {
  const size_t end = std::min(rest_.find_first_of(ends), rest_.size());
  part = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return !part.empty();
}

Outcome UrlParser::take_scheme() {
  const size_t end = rest_.find("://");
  if (end == std::string_view::npos) {
    return invalid("URL " + quoted(shown_, 256) + " has no scheme: it must begin with one of " +
                   list_of_schemes());
  }
  const std::string scheme(rest_.substr(0, end));
  rest_.remove_prefix(end + 3);
  if (std::find(kLaterSchemes.begin(), kLaterSchemes.end(), scheme) != kLaterSchemes.end()) {
    return failure(Status::kUnsupported, "scheme '" + scheme + "' in " + shown_ +
                                             " is not possible in this build; possible are " +
                                             list_of_schemes());
  }
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    return wrong("unknown scheme " + quoted(scheme) + " (did you mean '" +
                 nearest(kSchemes, std::string_view(scheme).substr(0, 64)) + "://'? known are " +
                 list_of_schemes() + ")");
  }
  settings_.tls.is_on = scheme == "rediss" || scheme == "valkeys";
  is_unix_ = scheme == "unix";
  is_embedded_ = scheme == "embedded";
  return {};
}

Outcome UrlParser::take_user() {
  const std::string_view authority = rest_.substr(0, rest_.find_first_of("/?#"));
  const size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return {};
  const std::string_view who = authority.substr(0, at);
  const size_t colon = who.find(':');
  rest_.remove_prefix(at + 1);
  if (!percent_decode(who.substr(0, colon), settings_.user)) return wrong("malformed %-code");
  if (colon == std::string_view::npos) return {};
  if (!percent_decode(who.substr(colon + 1), settings_.password)) return wrong("malformed %-code");
  return {};
}

Outcome UrlParser::take_server() {
  std::string_view server;
  if (!take_until("/?#", server)) return wrong("no host");
  std::string_view host = server;
  std::string_view port;
  const bool is_bracketed = server.starts_with('[');
  const size_t close = server.find(']');
  if (is_bracketed && close == std::string_view::npos) return wrong("no ']' behind the address");
  const size_t colon = server.find(':', is_bracketed ? close : 0);
  if (colon != std::string_view::npos) {
    host = server.substr(0, colon);
    port = server.substr(colon + 1);
  }
  if (is_bracketed) host = server.substr(1, close - 1);
  if (host.empty() || host.size() > 255) return wrong("no host, or one over 255 bytes");
  if (host.find_first_of(std::string_view(" \t\r\n\0", 5)) != std::string_view::npos) {
    return wrong("a space in the host");
  }
  settings_.host = host;
  if (colon == std::string_view::npos) return {};
  int number = 0;
  if (!parse_number(port, number) || number < 1 || number > 65'535) {
    return wrong("the port is not a number of 1 to 65535");
  }
  settings_.port = port;
  return {};
}

Outcome UrlParser::take_path() {
  std::string_view path;
  take_until("?#", path);
  if (is_embedded_) return take_folder(path);
  if (is_unix_) return take_socket(path);
  if (path.size() <= 1) return {};
  if (set_database(path.substr(1), settings_.database).ok()) return {};
  return wrong("the database is not a number of 0 to " + std::to_string(kMaxDatabase));
}

Outcome UrlParser::take_socket(std::string_view path) {
  if (!percent_decode(path, settings_.socket_path)) return wrong("malformed %-code");
  if (!settings_.socket_path.starts_with('/') || settings_.socket_path.size() > kMaxSocketPath ||
      settings_.socket_path.find('\0') != std::string::npos) {
    return wrong("the socket needs an absolute path of at most " + std::to_string(kMaxSocketPath) +
                 " bytes, as unix:///run/redis.sock");
  }
  return {};
}

Outcome UrlParser::take_folder(std::string_view path) {
  std::string &folder = settings_.folder;
  if (!percent_decode(path, folder)) return wrong("malformed %-code");
  if (folder.empty()) folder = embedded::default_folder();
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  if (!folder.starts_with('/') || folder.find('\0') != std::string::npos) {
    return wrong(
        "an embedded server runs on this host, so none is to be named: embedded:// is the "
        "user's own, embedded:///a/folder (three slashes) that of a folder,");
  }
  if (folder.size() > embedded::kMaxFolderPath) {
    return wrong("the folder's path has " + std::to_string(folder.size()) +
                 " bytes: allowed are at most " + std::to_string(embedded::kMaxFolderPath) +
                 ", because the name of a socket in it is limited");
  }
  settings_.socket_path = folder + "/" + std::string(embedded::kSocketFile);
  return {};
}

Outcome UrlParser::take_query() {
  if (rest_.starts_with('#')) return wrong("a fragment (#..) is not allowed");
  if (!rest_.empty()) rest_.remove_prefix(1);
  while (!rest_.empty()) {
    std::string_view pair;
    take_until("&", pair);
    if (!rest_.empty()) rest_.remove_prefix(1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    std::string name;
    std::string value;
    if (equals == std::string_view::npos) return wrong("a parameter has no '='");
    if (!percent_decode(pair.substr(0, equals), name) ||
        !percent_decode(pair.substr(equals + 1), value)) {
      return wrong("malformed %-code");
    }
    if (is_of_quorum(name)) return wrong("option " + quoted(name) + " is one of the whole Redlock");
    if (std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      return wrong("unknown URL parameter " + quoted(name) + " (did you mean '" +
                   nearest(kNames, std::string_view(name).substr(0, 64)) + "'?)");
    }
    if (auto outcome = set_option(settings_, name, value); !outcome.ok()) {
      outcome.message += " (in " + shown_ + ")";
      return outcome;
    }
  }
  return {};
}

}  // namespace

Outcome Options::set(std::string_view name, std::string_view value) {
  Settings scratch;
  QuorumSettings quorum;
  auto outcome = is_of_quorum(name) ? set_quorum_option(quorum, name, value)
                                    : set_option(scratch, name, value);
  if (outcome.ok()) values_.insert_or_assign(std::string(name), std::string(value));
  return outcome;
}

// The password itself comes last: a file is where those put it who care.
Outcome Options::set_from_env() {
  constexpr std::array<std::pair<const char *, const char *>, 6> kVariables = {
      {{"REDLATCH_URL", "url"},
       {"VALKEY_URL", "url"},
       {"REDIS_URL", "url"},
       {"REDLATCH_NAMESPACE", "namespace"},
       {"REDLATCH_PASSWORD_FILE", "password_file"},
       {"REDISCLI_AUTH", "password"}}};
  Values found;
  for (const auto &[variable, name] : kVariables) {
    // An empty one counts as none: that is how one switches it off for a single call.
    const char *value = std::getenv(variable);
    if (value == nullptr || *value == '\0' || !found.emplace(name, value).second) continue;
    Settings scratch;
    const std::string_view option = name;
    auto outcome = option == "url" || option == "password_file"
                       ? Outcome{}
                       : set_option(scratch, option, value);
    if (outcome.ok()) continue;
    outcome.message += " (in the variable " + std::string(variable) + ")";
    return outcome;
  }
  from_env_ = std::move(found);
  return {};
}

namespace {

// What each option cannot know of the others.
Outcome check_together(const Settings &settings) {
  const bool is_embedded = !settings.folder.empty();
  if (is_embedded && !(settings.user.empty() && settings.password.empty())) {
    return invalid("an embedded server has no user and no password: its folder keeps others out");
  }
  if (!is_embedded && !settings.server.empty()) {
    return invalid("option 'server' goes with embedded:// only, not with " + settings.address());
  }
  return check_tls_options(settings);
}

}  // namespace

bool Options::names_tls() const {
  return std::any_of(values_.begin(), values_.end(),
                     [](const auto &value) { return is_of_tls(value.first); });
}

std::string_view Options::env(std::string_view name) const {
  const auto found = from_env_.find(name);
  return found == from_env_.end() ? std::string_view() : std::string_view(found->second);
}

Outcome Options::resolve(std::string_view url, Settings &settings) const {
  for (const auto &[name, value] : values_) {
    if (is_of_quorum(name)) return invalid("option " + quoted(name) + " is one of a Redlock only");
  }
  if (url.empty()) url = env("url");
  if (url.empty()) return invalid("no server was named: give a URL, or set REDLATCH_URL");
  auto outcome = resolve_node(url, settings);
  return outcome.ok() && names_tls() && !settings.tls.is_on ? no_tls(settings.address()) : outcome;
}

Outcome Options::resolve(std::string_view urls, std::vector<Settings> &nodes,
                         QuorumSettings &settings) const {
  constexpr std::string_view kSpaces = " \t\r\n";
  nodes.clear();
  settings = {};
  for (const auto &[name, value] : values_) {
    if (!is_of_quorum(name)) continue;
    if (auto outcome = set_quorum_option(settings, name, value); !outcome.ok()) return outcome;
  }
  if (urls.empty()) urls = env("url");
  while (!urls.empty()) {
    const std::string_view url = urls.substr(0, urls.find_first_of(kSpaces));
    urls.remove_prefix(std::min(url.size() + 1, urls.size()));
    if (url.empty()) continue;
    if (nodes.size() == kMaxNodes) {
      return invalid("more than " + std::to_string(kMaxNodes) + " nodes, from " + redact_url(url) +
                     " on");
    }
    Settings node;
    if (auto outcome = resolve_node(url, node); !outcome.ok()) return outcome;
    for (const Settings &other : nodes) {
      if (other.address() == node.address()) {
        return invalid(node.shown_url + ": that server is named twice: nodes must be independent");
      }
      if (other.name_space != node.name_space) {
        return invalid(node.shown_url + " has the namespace " + quoted(node.name_space) + ", and " +
                       other.shown_url + " has " + quoted(other.name_space) +
                       ": it must be the same for all nodes");
      }
    }
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) return invalid("no server was named: give URLs, or set REDLATCH_URL");
  // What is said by name is for those that have TLS.
  const bool has_tls =
      std::any_of(nodes.begin(), nodes.end(), [](const Settings &node) { return node.tls.is_on; });
  if (names_tls() && !has_tls) return no_tls(nodes.front().shown_url);
  if (nodes.size() % 2 == 1) return {};
  return invalid(std::to_string(nodes.size()) +
                 " nodes: an odd number is needed, because one more would not let one more fail; "
                 "leave out one, such as " +
                 nodes.back().shown_url);
}

Outcome Options::resolve_node(std::string_view url, Settings &settings) const {
  settings = Settings{};
  settings.holder = default_holder();
  settings.name_space = env("namespace");
  settings.shown_url = redact_url(url);
  if (auto outcome = UrlParser(url, settings).parse(); !outcome.ok()) return outcome;
  for (const auto &[name, value] : values_) {
    if (is_of_quorum(name) || (is_of_tls(name) && !settings.tls.is_on)) continue;
    if (auto outcome = set_option(settings, name, value); !outcome.ok()) return outcome;
  }
  if (auto outcome = check_together(settings); !outcome.ok()) return outcome;
  // What the environment says is for other servers.
  if (!settings.folder.empty() || !settings.password.empty()) return {};
  // Looked at last, because a file that nobody needs may well be missing.
  const std::string_view source = env("password_file").empty() ? "password" : "password_file";
  return env(source).empty() ? Outcome{} : set_option(settings, source, env(source));
}

std::string option_of(const Settings &settings, std::string_view name) {
  const auto duration = [](Nanos nanos) { return std::to_string(nanos / kMs) + "ms"; };
  if (name == "url") return settings.shown_url;
  if (name == "namespace") return settings.name_space;
  if (name == "user") return settings.user;
  if (name == "db") return std::to_string(settings.database);
  if (name == "holder") return settings.holder;
  if (name == "client_name") return settings.client_name;
  if (name == "connect_timeout") return duration(settings.connect_timeout);
  if (name == "timeout") return duration(settings.timeout);
  if (name == "protocol") return std::to_string(settings.protocol);
  if (name == "server") return settings.server;
  return tls_option_of(settings.tls, name);
}

std::string option_of(const QuorumSettings &settings, std::string_view name) {
  const auto duration = [](Nanos nanos, const char *if_none) {
    return nanos == 0 ? std::string(if_none) : std::to_string(nanos / kMs) + "ms";
  };
  if (name == "restart_guard") return duration(settings.restart_guard, "off");
  if (name == "node_timeout") return duration(settings.node_timeout, "auto");
  if (name == "min_validity") return duration(settings.min_validity, "0");
  if (name == "durable") return settings.is_durable ? "yes" : "no";
  if (name == "fenced") return settings.is_fenced ? "yes" : "no";
  return {};
}

}  // namespace redlatch::client
