// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session.h"

#include <cstdlib>
#include <string_view>

#include "duration.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::string_view kPasswordFile = "password_file";

rl_status set_option(rl_client_options* options, std::string_view name, std::string_view value,
                     rl_error* error) {
  return rl_client_options_set(options, name.data(), name.size(), value.data(), value.size(),
                               error);
}

// A password file that cannot be read is a matter of the host, not of the call.
bool is_bad_password_file(const char* path) {
  if (path == nullptr || *path == '\0') return false;
  const ClientOptionsHandle probe(not_null(rl_client_options_new()));
  return set_option(probe.get(), kPasswordFile, path, nullptr) != RL_OK;
}

// The library takes the URL from there; what is asked here is which words help when it has none.
bool is_server_in_environment() {
  for (const char* name : {"REDLATCH_URL", "VALKEY_URL", "REDIS_URL"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

// Options by name. Throws a Failure for a value that is not allowed.
class Options {
 public:
  explicit Options(rl_error* error) : handle_(not_null(rl_client_options_new())), error_(error) {
    check(rl_client_options_set_from_env(get(), error_), "");
  }

  [[nodiscard]] rl_client_options* get() const { return handle_.get(); }

  void set(std::string_view name, const std::optional<std::string>& value) {
    if (value) check(set_option(get(), name, *value, error_), name);
  }

 private:
  void check(rl_status status, std::string_view name) const {
    if (status == RL_OK) return;
    throw Failure{name == kPasswordFile ? kExitConfig : exit_code_of(status),
                  escaped(rl_error_message(error_))};
  }

  ClientOptionsHandle handle_;
  rl_error* error_;
};

}  // namespace

Session::Session(const Arguments& arguments) : error_(not_null(rl_error_new())) {
  Options options(error_.get());
  options.set("namespace", arguments.name_space);
  options.set("holder", arguments.run.holder);
  options.set("user", arguments.user);
  options.set("password", arguments.password);
  options.set(kPasswordFile, arguments.password_file);
  const std::string url = arguments.is_local ? "embedded://" : arguments.url.value_or("");
  if (url.empty() && !is_server_in_environment()) {
    throw UsageError(
        "no server was named: use --url redis://HOST:PORT, set REDLATCH_URL, or use --local for "
        "locks of this host only");
  }
  client_.reset(rl_client_open(url.data(), url.size(), options.get(), error_.get()));
  if (client_) return;
  const Failure reason = failure();
  if (is_bad_password_file(std::getenv("REDLATCH_PASSWORD_FILE"))) {
    throw Failure{kExitConfig, reason.text + ". Check REDLATCH_PASSWORD_FILE"};
  }
  // Without --url it may be any of several variables that is meant.
  throw Failure{reason.exit_code,
                reason.text + (url.empty() ? ". Check --url / REDLATCH_URL" : "")};
}

Failure Session::failure(rl_status status, const std::string& message,
                         std::int64_t tried_ms) const {
  std::string text = escaped(message);
  while (text.ends_with('.')) text.pop_back();
  const bool is_away = status == RL_E_UNAVAILABLE || status == RL_E_OUTCOME_UNKNOWN;
  const bool is_about_server =
      is_away || status == RL_E_DENIED || status == RL_E_SERVER || status == RL_E_UNSUPPORTED;
  // The library's words mostly name the server already.
  if (client_ && is_about_server && text.find("://") == std::string::npos) {
    text = server() + ": " + text;
  }
  if (is_away) {
    if (tried_ms > 0) text += "; tried for " + seconds_text(tried_ms);
    if (!is_local()) text += ". Check --url / REDLATCH_URL";
  } else if (status == RL_E_DENIED && !is_local()) {
    text += ". Check --user and --password-file";
  }
  return {exit_code_of(status), text};
}

Failure Session::failure() const {
  return failure(rl_error_status(error()), rl_error_message(error()), 0);
}

InfoHandle Session::inspect(const std::string& name) const {
  InfoHandle info = try_inspect(name);
  if (!info) throw failure();
  return info;
}

InfoHandle Session::try_inspect(const std::string& name) const {
  return InfoHandle(rl_inspect(client_.get(), name.data(), name.size(), error_.get()));
}

std::string Session::why_polling() const {
  constexpr std::string_view kPoll = "poll: ";
  const std::string delivery = option("delivery");
  return delivery.starts_with(kPoll) ? delivery.substr(kPoll.size()) : std::string();
}

std::string Session::option(std::string_view name) const {
  return read_text([&](char* buffer, std::size_t size) {
    return rl_client_option(client_.get(), name.data(), name.size(), buffer, size);
  });
}

}  // namespace redlatch::cli
