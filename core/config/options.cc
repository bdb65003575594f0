// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/options.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/option_values.h"
#include "config/tls_options.h"
#include "config/url.h"
#include "config/url_parts.h"
#include "host/process.h"

namespace redlatch::config {

namespace {

Outcome invalid(const std::string &message) { return failure(Status::kInvalid, message); }

bool is_of_tls(std::string_view name) {
  const Option *option = find_option(name);
  return option != nullptr && option->scope == Scope::kTls;
}

bool is_of_quorum(std::string_view name) {
  const Option *option = find_option(name);
  return option != nullptr && option->scope == Scope::kQuorum;
}

bool is_of_file(const Option &option) {
  return option.kind == Kind::kFILE || option.kind == Kind::kFILE_OR_FOLDER;
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
    if (line.empty())
      return invalid("URL " + std::to_string(urls.size() + 1) + " must not be empty");
    while (!line.empty()) {
      urls.push_back(line.substr(0, line.find_first_of(kSpaces)));
      line.remove_prefix(urls.back().size());
      line = trimmed(line);
    }
  }
  return {};
}

std::string default_holder() {
  const std::string number = "/" + std::to_string(process_number());
  return host_name().substr(0, kMaxLabelBytes - number.size()) + number;
}

}  // namespace

Outcome Options::set(std::string_view name, std::string_view value) {
  const Option *option = find_option(name);
  if (option == nullptr || option->is_of_acquisitions()) return unknown_option(name);
  Settings scratch;
  QuorumSettings quorum;
  const bool is_of_node = option->is_of_servers();
  auto outcome = is_of_node ? set_option(scratch, name, value) : set_option(quorum, name, value);
  if (!outcome.ok()) {
    outcome.message += got(*option, value);
    return outcome;
  }
  std::string key(name);
  if (option->kind == Kind::kPASSWORD_FILE) return set_password_file(key, value);
  // Paths are absolute from now on: the working directory may change until the client is opened.
  const std::string file = key + "_file";
  values_.insert_or_assign(
      key, is_of_file(*option) ? Password(option_of(scratch, name)) : Password(value));
  if (option->kind == Kind::kPASSWORD) values_.erase(file);
  return {};
}

Outcome Options::set_password_file(const std::string &name, std::string_view value) {
  std::string path(value);
  if (const int error = make_absolute(path); error != 0) {
    return invalid("cannot read the password file: " + reason_of(error));
  }
  const std::string password = name.substr(0, name.rfind('_'));
  Secret secret;
  PipeSecrets fresh;
  if (auto outcome = read_secret(std::string(value), secret, fresh); !outcome.ok()) return outcome;
  if (!fresh.empty()) secrets_.insert_or_assign(path, std::move(secret.text));
  if (fresh.empty()) secrets_.erase(path);
  values_.insert_or_assign(name, path);
  values_.erase(password);
  return {};
}

std::string Options::get(std::string_view name) const {
  const auto found = values_.find(name);
  const std::string_view text =
      found == values_.end() ? env(name) : std::string_view(found->second);
  const Option *option = find_option(name);
  if (text.empty() || option == nullptr) return {};
  if (is_of_file(*option)) return std::string(text);  // the file may be gone
  if (is_of_quorum(name)) {
    QuorumSettings quorum;
    return set_option(quorum, name, text).ok() ? option_of(quorum, name) : std::string();
  }
  Settings scratch;
  return set_option(scratch, name, text).ok() ? option_of(scratch, name) : std::string();
}

// REDISCLI_AUTH comes last, because a password in a file is safer than one in the environment.
Outcome Options::set_from_env() {
  constexpr auto kVariables = std::to_array<std::pair<const char *, const char *>>({
#define RL_VARIABLE(VARIABLE, option) {#VARIABLE, #option},
#include "config/options.def"
  });
  Values found;
  for (const auto &[variable, name] : kVariables) {
    // An empty variable counts as unset, so that a shell can disable it for one command.
    const char *value = environment_variable(variable);
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
  reads_env_ = true;
  return {};
}

namespace {

Outcome goes_with(const std::string &option, const std::string &scheme, const Settings &settings) {
  return invalid(option + " must be used with " + scheme + " only (got " + settings.address() +
                 ")");
}

Outcome check_cluster(const Settings &settings) {
  const ClusterSettings &cluster = settings.cluster;
  if (!settings.is_cluster() && cluster.is_asked_for) {
    return goes_with("option 'cluster_hosts'", "redis+cluster://", settings);
  }
  if (settings.is_cluster() && settings.database != 0) {
    return invalid("db must be 0 on a cluster (got " + std::to_string(settings.database) + ")");
  }
  std::string_view list = cluster.allowed_hosts;
  for (bool has_more = !list.empty(); has_more;) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view host = list.substr(0, comma);
    if (!is_host(host) && !is_ipv6(host)) {
      return invalid(
          "option 'cluster_hosts' must be host names and IP addresses, with ',' between "
          "them (got " +
          redlatch::quoted(host) + ")");
    }
    has_more = comma < list.size();
    if (has_more) list.remove_prefix(comma + 1);
  }
  return {};
}

// Checks that involve several options.
Outcome check_together(const Settings &settings) {
  const bool is_embedded = !settings.folder.empty();
  const bool has_password = !settings.password.empty() || !settings.password_file.empty();
  if (is_embedded && (!settings.user.empty() || has_password)) {
    return invalid(
        "user and password must not be set for an embedded server: its folder keeps others out");
  }
  if (!is_embedded && !settings.server.empty()) {
    return goes_with("option 'server'", "embedded://", settings);
  }
  if (!settings.has_sentinels() && settings.sentinel.is_asked_for) {
    return goes_with("options sentinel_..", "redis-sentinel://", settings);
  }
  if (auto outcome = check_cluster(settings); !outcome.ok()) return outcome;
  return check_tls_options(settings);
}

template <class Owner>
Outcome read_file(Owner &owner, PipeSecrets &secrets) {
  if (owner.password_file.empty()) return {};
  Secret secret;
  auto outcome = read_secret(owner.password_file, secret, secrets);
  owner.password = std::move(secret.text);
  owner.is_password_read_again = secret.is_read_again;
  return outcome;
}

}  // namespace

bool Options::names_tls() const {
  return std::any_of(values_.begin(), values_.end(),
                     [](const auto &value) { return is_of_tls(value.first); });
}

Outcome Options::no_server(const std::string &what) const {
  return invalid("no server was named: give " + what + (reads_env_ ? ", or set REDLATCH_URL" : ""));
}

std::string_view Options::env(std::string_view name) const {
  const auto found = from_env_.find(name);
  return found == from_env_.end() ? std::string_view() : std::string_view(found->second);
}

Outcome Options::resolve(std::string_view url, Settings &settings) const {
  for (const auto &[name, value] : values_) {
    if (is_of_quorum(name))
      return invalid("option " + redlatch::quoted(name) + " must be used with a Redlock only");
  }
  if (url.empty()) url = env("url");
  if (url.empty()) return no_server("a URL");
  PipeSecrets secrets = secrets_;
  auto outcome = resolve_node(url, settings, secrets);
  return outcome.ok() && names_tls() && !settings.tls.is_on ? no_tls(settings.address()) : outcome;
}

Outcome Options::resolve(std::string_view urls, std::vector<Settings> &nodes,
                         QuorumSettings &settings) const {
  nodes.clear();
  settings = {};
  for (const auto &[name, value] : values_) {
    if (!is_of_quorum(name)) continue;
    if (auto outcome = set_option(settings, name, value); !outcome.ok()) return outcome;
  }
  if (urls.empty()) urls = trimmed(env("url"));
  std::vector<std::string_view> all;
  if (auto outcome = split_urls(urls, all); !outcome.ok()) return outcome;
  PipeSecrets secrets = secrets_;
  for (const std::string_view url : all) {
    if (nodes.size() == kMaxNodes) {
      return invalid("a Redlock must have at most " + std::to_string(kMaxNodes) +
                     " nodes (got more, from " + redact_url(url) + " on)");
    }
    Settings node;
    if (auto outcome = resolve_node(url, node, secrets); !outcome.ok()) return outcome;
    if (node.has_sentinels()) {
      return invalid(
          "a node of a Redlock must be one server, because a failover to a replica forgets votes; "
          "give the URL of the server itself (got " +
          node.shown_url + ")");
    }
    if (node.is_cluster()) {
      return invalid(
          "a node of a Redlock must be one server, because the nodes of a cluster are not "
          "independent; use the cluster alone, or independent servers (got " +
          node.shown_url + ")");
    }
    for (const Settings &other : nodes) {
      if (other.address() == node.address()) {
        return invalid("nodes of a Redlock must be independent servers (got " + node.shown_url +
                       " twice)");
      }
      if (other.name_space != node.name_space) {
        return invalid("option 'namespace' must be the same for all nodes (got " +
                       redlatch::quoted(node.name_space) + " for " + node.shown_url + ", and " +
                       redlatch::quoted(other.name_space) + " for " + other.shown_url + ")");
      }
    }
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) return no_server("URLs");
  // TLS options set by name are for the nodes that have TLS.
  const bool has_tls =
      std::any_of(nodes.begin(), nodes.end(), [](const Settings &node) { return node.tls.is_on; });
  if (names_tls() && !has_tls) return no_tls(nodes.front().shown_url);
  if (nodes.size() % 2 == 1) return {};
  return invalid(
      "nodes of a Redlock must be an odd number, because one more would not let one more fail; "
      "leave out one, such as " +
      nodes.back().shown_url + " (got " + std::to_string(nodes.size()) + " nodes)");
}

Outcome Options::resolve_node(std::string_view url, Settings &settings,
                              PipeSecrets &secrets) const {
  settings = Settings{};
  settings.holder = default_holder();
  settings.name_space = env("namespace");
  settings.shown_url = redact_url(url);
  if (auto outcome = parse_url(url, settings); !outcome.ok()) return outcome;
  for (const auto &[name, value] : values_) {
    if (is_of_quorum(name) || (is_of_tls(name) && !settings.tls.is_on)) continue;
    if (auto outcome = set_option(settings, name, value); !outcome.ok()) return outcome;
  }
  if (auto outcome = check_together(settings); !outcome.ok()) return outcome;
  // Passwords of the environment are not for embedded servers, and other passwords override them.
  if (settings.folder.empty() && settings.password.empty() && settings.password_file.empty()) {
    settings.password_file = env("password_file");
    if (settings.password_file.empty()) {
      settings.password = env("password");
    } else if (const int error = make_absolute(settings.password_file); error != 0) {
      return invalid("cannot read the password file: " + reason_of(error));
    }
  }
  // Last, because a password file that is not needed may be missing.
  auto outcome = read_file(settings, secrets);
  if (outcome.ok()) outcome = read_file(settings.sentinel, secrets);
  if (!outcome.ok()) outcome.message += " (for " + clean(settings.shown_url) + ")";
  return outcome;
}

}  // namespace redlatch::config
