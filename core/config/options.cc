// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/secret_file.h"
#include "config/tls_options.h"
#include "config/url.h"
#include "protocol/keys.h"

namespace redlatch::config {

namespace {

Outcome invalid(const std::string &message) { return failure(Status::kInvalid, message); }

// Does not show the value: in a URL it may hold a secret that was meant for another option.
Outcome must_be(std::string_view name, const std::string &allowed) {
  return invalid("option " + quoted(name) + " must be " + allowed);
}

// ---- values ------------------------------------------------------------------------------------

// 500ms, 2s, 5m, 1h; without a unit, seconds. @return 0 if `text` is not a valid duration.
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
    return must_be(name, "a duration of 1ms to 1h, such as 500ms, 2s or 1m");
  }
  target = duration;
  return {};
}

Outcome set_database(std::string_view value, int &target) {
  int number = -1;
  if (!parse_number(value, number) || number < 0 || number > kMaxDatabase) {
    return must_be("db", "a number of 0 to " + std::to_string(kMaxDatabase));
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

// The server refuses spaces and control characters in client names.
Outcome set_client_name(std::string_view value, std::string &target) {
  const bool is_plain =
      std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain) return must_be("client_name", "printable ASCII without spaces");
  return set_text("client_name", value, kMaxLabelBytes, target);
}

Outcome set_protocol(std::string_view value, int &target) {
  if (value != "2" && value != "3") return must_be("protocol", "2 or 3");
  target = value[0] - '0';
  return {};
}

// The supervisor runs in another folder, where a relative path would name another file.
Outcome set_server(std::string_view value, std::string &target) {
  if (!value.starts_with('/') || value.find('\0') != std::string_view::npos) {
    return must_be("server", "the absolute path of a valkey-server or redis-server");
  }
  return set_text("server", value, kMaxNameBytes, target);
}

// ---- names -------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 16> kNames = {
    "namespace", "user",     "password",    "password_file",
    "db",        "holder",   "client_name", "connect_timeout",
    "timeout",   "protocol", "server",      "tls_ca",
    "tls_cert",  "tls_key",  "tls_sni",     "tls_verify"};
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

bool is_of_tls(std::string_view name) { return name.starts_with("tls_"); }

// ---- options of a Redlock ----------------------------------------------------------------------

Outcome set_switch(std::string_view name, std::string_view value, bool &target) {
  if (value != "yes" && value != "no") return must_be(name, "yes or no");
  target = value == "yes";
  return {};
}

// A duration of `least` to `most`, or `word`, which means 0.
Outcome set_duration_or(std::string_view name, std::string_view value, std::string_view word,
                        Nanos least, Nanos most, Nanos &target) {
  const Nanos duration = value == word ? 0 : parse_duration(value);
  if (value != word && (duration < least || duration > most)) {
    return must_be(name, std::string(word) + " or a duration of " + std::to_string(least / kMs) +
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

// ---- nodes --------------------------------------------------------------------------------------

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

// Each line has one URL or several; the last line may end with a line end. An empty line is an
// error: a URL that is missing must not make a quorum of fewer nodes.
Outcome split_urls(std::string_view lines, std::vector<std::string_view> &urls) {
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = trimmed(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.empty()) return invalid("URL " + std::to_string(urls.size() + 1) + " is empty");
    while (!line.empty()) {
      urls.push_back(line.substr(0, line.find_first_of(kSpaces)));
      line.remove_prefix(urls.back().size());
      line = trimmed(line);
    }
  }
  return {};
}

std::string default_holder() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::string pid = "/" + std::to_string(getpid());
  return std::string(host.data()).substr(0, kMaxLabelBytes - pid.size()) + pid;
}

// Shows a refused value that was set by name, but only if it cannot be a secret.
std::string got(std::string_view name, std::string_view value) {
  constexpr size_t kMaxShown = 32;
  const bool is_secret = name == "user" || name == "password" || name == "password_file";
  const bool is_word =
      !value.empty() && value.size() <= kMaxShown &&
      std::all_of(value.begin(), value.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '+';
      });
  return is_word && !is_secret ? " (got " + quoted(value) + ")" : std::string();
}

}  // namespace

std::string nearest(std::span<const std::string_view> known, std::string_view word) {
  constexpr size_t kMaxDistance = 2;
  constexpr size_t kMaxWord = 32;  // the distance costs the product of both lengths
  if (word.size() > kMaxWord) return {};
  std::string_view best;
  size_t least = kMaxDistance + 1;
  for (const std::string_view one : known) {
    const size_t edits = distance(one, word);
    if (edits < least && 2 * edits < one.size()) {
      best = one;
      least = edits;
    }
  }
  return std::string(best);
}

bool is_option(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool is_quorum_option(std::string_view name) {
  return std::find(kQuorumNames.begin(), kQuorumNames.end(), name) != kQuorumNames.end();
}

std::string nearest_option(std::string_view name) {
  const std::string near = nearest(kNames, name);
  return near.empty() ? nearest(kQuorumNames, name) : near;
}

Outcome unknown_option(std::string_view name) {
  std::string text = "unknown option";
  if (is_option_name(name)) text += " " + quoted(name);
  const std::string near = nearest_option(name);
  if (!near.empty()) return invalid(text + " (did you mean '" + near + "'?)");
  for (const std::string_view one : kNames) {
    text += (one == kNames.front() ? " (known are " : ", ") + std::string(one);
  }
  return invalid(text + "; for those of a Redlock see docs/redlock.md)");
}

Outcome set_option(Settings &settings, std::string_view name, std::string_view value) {
  if (name == "namespace") {
    auto checked = protocol::check_namespace(value);
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
  return unknown_option(name);
}

Outcome Options::set(std::string_view name, std::string_view value) {
  Settings scratch;
  QuorumSettings quorum;
  auto outcome = is_quorum_option(name) ? set_quorum_option(quorum, name, value)
                                        : set_option(scratch, name, value);
  if (outcome.ok()) {
    values_.insert_or_assign(std::string(name), std::string(value));
  } else if (is_option(name) || is_quorum_option(name)) {
    outcome.message += got(name, value);
  }
  return outcome;
}

// REDISCLI_AUTH comes last, because a password in a file is safer than one in the environment.
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
    // An empty variable counts as unset, so that a shell can disable it for one command.
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

// Checks that involve several options.
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
    if (is_quorum_option(name)) return invalid("option " + quoted(name) + " is for a Redlock only");
  }
  if (url.empty()) url = env("url");
  if (url.empty()) return invalid("no server was named: give a URL, or set REDLATCH_URL");
  auto outcome = resolve_node(url, settings);
  return outcome.ok() && names_tls() && !settings.tls.is_on ? no_tls(settings.address()) : outcome;
}

Outcome Options::resolve(std::string_view urls, std::vector<Settings> &nodes,
                         QuorumSettings &settings) const {
  nodes.clear();
  settings = {};
  for (const auto &[name, value] : values_) {
    if (!is_quorum_option(name)) continue;
    if (auto outcome = set_quorum_option(settings, name, value); !outcome.ok()) return outcome;
  }
  if (urls.empty()) urls = trimmed(env("url"));
  std::vector<std::string_view> all;
  if (auto outcome = split_urls(urls, all); !outcome.ok()) return outcome;
  for (const std::string_view url : all) {
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
  // TLS options set by name are for the nodes that have TLS.
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
  if (auto outcome = parse_url(url, settings); !outcome.ok()) return outcome;
  for (const auto &[name, value] : values_) {
    if (is_quorum_option(name) || (is_of_tls(name) && !settings.tls.is_on)) continue;
    if (auto outcome = set_option(settings, name, value); !outcome.ok()) return outcome;
  }
  if (auto outcome = check_together(settings); !outcome.ok()) return outcome;
  // Passwords of the environment are not for embedded servers, and other passwords override them.
  if (!settings.folder.empty() || !settings.password.empty()) return {};
  // Last, because a password file that is not needed may be missing.
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

}  // namespace redlatch::config
