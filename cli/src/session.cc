// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "duration.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// An empty variable counts as none: that is how one switches it off for a single call.
std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string redacted(const std::string& url) {
  std::string out(rl_url_redact(url.data(), url.size(), nullptr, 0) + 1, '\0');
  out.resize(rl_url_redact(url.data(), url.size(), out.data(), out.size()));
  return out;
}

// The value of a parameter of the URL as it stands there; nothing if it has none of that name.
std::optional<std::string> url_parameter(const std::string& url, const std::string& name) {
  std::size_t at = url.find('?');
  while (at != std::string::npos) {
    const std::size_t end = url.find('&', at + 1);
    const std::string parameter = url.substr(at + 1, end - at - 1);
    if (parameter.starts_with(name + "=")) return parameter.substr(name.size() + 1);
    at = end;
  }
  return std::nullopt;
}

// Host name and process id, as the library would say it.
std::string default_holder() {
  std::array<char, 128> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return std::string(host.data()) + "/" + std::to_string(getpid());
}

std::string password_from_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string password;
  if (!std::getline(file, password)) {
    const std::string reason = errno != 0 ? strerror(errno) : "it is empty";
    throw Failure{kExitConfig, "cannot read the password file " + in_quotes(path) + ": " + reason};
  }
  if (password.ends_with('\r')) password.pop_back();
  return password;
}

std::optional<std::string> chosen_password(const Arguments& arguments, bool is_in_url) {
  if (arguments.password_file) return password_from_file(*arguments.password_file);
  if (is_in_url) return std::nullopt;
  if (auto path = environment("REDLATCH_PASSWORD_FILE")) return password_from_file(*path);
  return environment("REDISCLI_AUTH");
}

void set_option(rl_client_options* options, const std::string& name, const std::string& value,
                rl_error* error) {
  const rl_status status =
      rl_client_options_set(options, name.data(), name.size(), value.data(), value.size(), error);
  if (status == RL_OK) return;
  throw Failure{exit_code_of(status), escaped(rl_error_message(error))};
}

}  // namespace

std::string chosen_url(const Arguments& arguments) {
  if (arguments.is_local) return "embedded://";
  if (arguments.url) return *arguments.url;
  for (const char* name : {"REDLATCH_URL", "VALKEY_URL", "REDIS_URL"}) {
    if (auto url = environment(name)) return *url;
  }
  throw UsageError(
      "no server was named: use --url redis://HOST:PORT, set REDLATCH_URL, or use "
      "--local for locks of this host only");
}

Session::Session(const Arguments& arguments) : error_(not_null(rl_error_new())) {
  const std::string url = chosen_url(arguments);
  server_ = redacted(url);
  const ClientOptionsHandle options(not_null(rl_client_options_new()));
  const auto set = [&](const char* name, const std::string& value) {
    set_option(options.get(), name, value, error_.get());
  };

  std::optional<std::string> name_space = arguments.name_space;
  if (!name_space && !url_parameter(url, "namespace")) {
    name_space = environment("REDLATCH_NAMESPACE");
  }
  if (name_space) set("namespace", *name_space);
  if (arguments.user) set("user", *arguments.user);
  // Passwords of the environment are for other servers: an embedded one has none.
  const bool is_known = server_ != url || (is_local() && !arguments.password_file);
  if (auto password = chosen_password(arguments, is_known)) {
    std::string& text = *password;
    set("password", text);
    explicit_bzero(text.data(), text.size());
  }
  if (const auto holder = url_parameter(url, "holder")) {
    holder_ = *holder;
  } else {
    holder_ = default_holder();
    set("holder", holder_);
  }

  client_.reset(rl_client_open(url.data(), url.size(), options.get(), error_.get()));
  if (!client_) throw failure(rl_error_status(error_.get()), rl_error_message(error_.get()), 0);
}

Failure Session::failure(rl_status status, const std::string& message,
                         std::int64_t tried_ms) const {
  std::string text = escaped(message);
  while (text.ends_with('.')) text.pop_back();
  const bool is_away = status == RL_E_UNAVAILABLE || status == RL_E_OUTCOME_UNKNOWN;
  const bool is_about_server =
      is_away || status == RL_E_DENIED || status == RL_E_SERVER || status == RL_E_UNSUPPORTED;
  // The library's words mostly name the server already.
  if (is_about_server && text.find("://") == std::string::npos) text = server_ + ": " + text;
  if (is_away) {
    if (tried_ms > 0) text += "; tried for " + seconds_text(tried_ms);
    if (!is_local()) text += ". Check --url / REDLATCH_URL";
  } else if (status == RL_E_DENIED && !is_local()) {
    text += ". Check --user and --password-file";
  }
  return {exit_code_of(status), text};
}

InfoHandle Session::inspect(const std::string& name) const {
  return InfoHandle(rl_inspect(client_.get(), name.data(), name.size(), error_.get()));
}

}  // namespace redlatch::cli
