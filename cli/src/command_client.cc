// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "command_client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include "duration.h"
#include "guesses.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::string_view kPasswordFile = "password_file";
constexpr const char* kSpaces = " \t\r\n";

std::atomic<bool> is_client_abandoned{false};

rl_status set_option(rl_client_options* options, std::string_view name, std::string_view value,
                     rl_error* error) {
  return rl_client_options_set(options, name.data(), name.size(), value.data(), value.size(),
                               error);
}

// A password file that cannot be read is a fault of the host, not of the call.
bool is_bad_password_file(const char* path) {
  if (path == nullptr || *path == '\0') return false;
  const ClientOptionsHandle probe(not_null(rl_client_options_new()));
  return set_option(probe.get(), kPasswordFile, path, nullptr) != RL_OK;
}

// The first variable that is set; an empty one counts as unset.
std::string servers_of_environment() {
  for (const char* name : {"REDLATCH_URL", "VALKEY_URL", "REDIS_URL"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

// URLs are separated by spaces or line ends, as in the library. An empty line is a missing URL.
std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> urls;
  const std::size_t begin = std::min(text.find_first_not_of(kSpaces), text.size());
  std::istringstream lines(text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::size_t count = urls.size();
    urls.insert(urls.end(), std::istream_iterator<std::string>(words), {});
    if (urls.size() > count) continue;
    throw UsageError("URL " + std::to_string(count + 1) + " of the environment must not be empty");
  }
  return urls;
}

void check_no_quorum_options(const OptionFlags& options) {
  const std::string flag = options.given_of_quorum();
  if (flag.empty()) return;
  throw UsageError(flag + " needs a quorum: name each server by its own --url");
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// The probable URL behind a text that has no scheme, for the begin of a message.
std::string meant_url(const std::vector<std::string>& urls) {
  for (const std::string& url : urls) {
    if (const auto meant = with_scheme(url); !meant.empty()) return "did you mean " + meant + "? ";
  }
  return "";
}

bool is_of_this_host(const std::string& url) {
  if (url.starts_with("unix://")) return true;
  if (!url.starts_with("redis://") && !url.starts_with("rediss://")) return false;
  std::string host = url.substr(url.find("://") + 3);
  host = host.substr(0, host.find_first_of("/?"));
  host = host.substr(host.rfind('@') + 1);  // npos + 1 is 0
  return host.starts_with("127.") || host.starts_with("[::1]") ||
         host.substr(0, host.find(':')) == "localhost";
}

// Options by name. Throws a Failure for a value that is not allowed.
class Options {
 public:
  explicit Options(rl_error* error) : handle_(not_null(rl_client_options_new())), error_(error) {
    check(rl_client_options_set_from_env(get(), error_));
  }

  [[nodiscard]] rl_client_options* get() const { return handle_.get(); }

  void set(const OptionFlags& flags) {
    if (const auto refusal = flags.apply(get())) {
      throw Failure{refusal->option == kPasswordFile ? kExitConfig : exit_code_of(refusal->status),
                    refusal->message};
    }
  }

  void set_password(const std::optional<std::string>& password) {
    if (password) check(set_option(get(), "password", *password, error_));
  }

 private:
  void check(rl_status status) const {
    if (status == RL_OK) return;
    throw Failure{exit_code_of(status), escaped(rl_error_message(error_))};
  }

  ClientOptionsHandle handle_;
  rl_error* error_;
};

}  // namespace

std::vector<std::string> server_urls(const Arguments& arguments) {
  if (arguments.is_local) return {"embedded://"};
  std::vector<std::string> urls = arguments.urls;
  if (urls.empty()) urls = split_lines(servers_of_environment());
  if (urls.empty()) {
    throw UsageError(
        "no server was named: use --url redis://HOST:PORT, set REDLATCH_URL, or use --local for "
        "locks of this host only");
  }
  return urls;
}

CommandClient::CommandClient(const Arguments& arguments) : error_(not_null(rl_error_new())) {
  const std::vector<std::string> urls = server_urls(arguments);
  if (urls.size() == 1) check_no_quorum_options(arguments.options);
  open(arguments, urls);
}

CommandClient::CommandClient(const Arguments& arguments, const std::string& url)
    : error_(not_null(rl_error_new())) {
  Arguments of_server = arguments;
  of_server.options.drop_those_of_quorum();
  open(of_server, {url});
}

CommandClient CommandClient::of_one(const Arguments& arguments, const char* command) {
  const std::vector<std::string> urls = server_urls(arguments);
  if (urls.size() > 1) {
    throw UsageError(std::string(command) + " is about one server, and " +
                     std::to_string(urls.size()) + " are named: name one of them by --url");
  }
  check_no_quorum_options(arguments.options);
  return CommandClient(arguments, urls.front());
}

void CommandClient::open(const Arguments& arguments, const std::vector<std::string>& urls) {
  Options options(error_.get());
  options.set(arguments.options);
  options.set_password(arguments.password);
  const std::string text = joined(urls, "\n");
  is_quorum_ = urls.size() > 1;
  is_default_ = arguments.urls.empty();
  const auto open_client = is_quorum_ ? rl_redlock_open : rl_client_open;
  client_.reset(open_client(text.data(), text.size(), options.get(), error_.get()));
  if (client_) return;
  Failure reason = failure();
  reason.text.insert(0, meant_url(urls));
  if (is_bad_password_file(std::getenv("REDLATCH_PASSWORD_FILE"))) {
    throw Failure{kExitConfig, reason.text + ". Check REDLATCH_PASSWORD_FILE"};
  }
  const bool is_named = !arguments.urls.empty() || arguments.is_local;
  // Without --url the value may come from any of several variables.
  throw Failure{reason.exit_code, reason.text + (is_named ? "" : ". Check --url / REDLATCH_URL")};
}

std::string CommandClient::server() const {
  std::string text = option("url");
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) {
    text.replace(at, 1, ", ");
  }
  return text;
}

rl_status CommandClient::connect(std::int64_t wait_ms) const {
  return rl_client_connect(handle(), wait_ms, error());
}

void CommandClient::shut_down() const { rl_client_shutdown(handle()); }

void CommandClient::close_within(std::int64_t limit_ms) {
  const auto end = std::make_shared<std::promise<void>>();
  const std::future<void> has_ended = end->get_future();
  try {
    std::thread([client = handle(), end] {
      rl_client_shutdown(client);
      end->set_value();
    }).detach();
  } catch (const std::system_error&) {
    return;  // no thread: the destructor waits longer
  }
  const auto limit = std::chrono::milliseconds(limit_ms);
  if (has_ended.wait_for(limit) == std::future_status::ready) return;
  (void)client_.release();
  is_client_abandoned = true;
}

bool CommandClient::was_abandoned() { return is_client_abandoned; }

Failure CommandClient::failure(rl_status status, const std::string& message,
                               std::int64_t tried_ms) const {
  std::string text = escaped(message);
  while (text.ends_with('.')) text.pop_back();
  const bool is_away = status == RL_E_UNAVAILABLE || status == RL_E_OUTCOME_UNKNOWN;
  const bool is_about_server =
      is_away || status == RL_E_DENIED || status == RL_E_SERVER || status == RL_E_UNSUPPORTED;
  // The library's message mostly names the server already.
  if (!is_quorum() && is_about_server && text.find("://") == std::string::npos) {
    text = server() + ": " + text;
  }
  if (is_away) {
    if (tried_ms > 0) text += "; tried for " + seconds_text(tried_ms);
    if (!is_local()) text += ". Check --url / REDLATCH_URL";
    if (is_default_ && !is_quorum() && status == RL_E_UNAVAILABLE && is_of_this_host(server())) {
      text += ", or use --local for locks of this host only";
    }
  } else if (status == RL_E_DENIED && !is_local()) {
    const bool is_of_sentinel = text.find("sentinel ") != std::string::npos;
    text += is_of_sentinel ? ". Check --sentinel-user and --sentinel-password-file"
                           : ". Check --user and --password-file";
    if (text.find("rediss://") != std::string::npos) text += "; of TLS, --cacert, --cert and --key";
  }
  return {exit_code_of(status), text};
}

Failure CommandClient::failure() const {
  return failure(rl_error_status(error()), rl_error_message(error()), 0);
}

InfoHandle CommandClient::inspect(const std::string& name) const {
  InfoHandle info = try_inspect(name);
  if (!info) throw failure();
  return info;
}

InfoHandle CommandClient::try_inspect(const std::string& name) const {
  return InfoHandle(rl_inspect(client_.get(), name.data(), name.size(), error_.get()));
}

std::vector<NodeStatus> CommandClient::nodes() const {
  const InfoHandle info(rl_client_info(handle(), error()));
  if (!info) throw failure();
  std::vector<NodeStatus> nodes;
  for (std::int32_t i = 0; i < rl_info_count(info.get(), RL_PART_NODE); ++i) {
    const auto state = rl_info_number(info.get(), RL_PART_NODE, i, RL_FIELD_STATE);
    nodes.push_back({state, read_text([&](char* buffer, std::size_t size) {
                       return rl_info_text(info.get(), RL_PART_NODE, i, RL_FIELD_REASON, buffer,
                                           size);
                     })});
  }
  return nodes;
}

std::string CommandClient::why_polling() const {
  const NodeStatus node = nodes().front();
  return node.state == RL_NODE_POLLED ? node.reason : std::string();
}

std::string CommandClient::option(std::string_view name) const {
  return read_text([&](char* buffer, std::size_t size) {
    return rl_client_option(handle(), name.data(), name.size(), buffer, size);
  });
}

}  // namespace redlatch::cli
