// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <csignal>
#include <ctime>
#include <optional>
#include <string>

#include "command_client.h"
#include "commands.h"
#include "exit_code.h"
#include "handles.h"
#include "json.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::int64_t kStartMs = 10'000;
// A signal that comes while one connects is seen after this.
constexpr std::int64_t kConnectMs = 500;

// Without --url the environment's, if it names an embedded server, else the user's own.
std::string embedded_url(const Arguments& arguments) {
  if (arguments.urls.size() > 1) throw UsageError("server: several --url; it is about one");
  if (!arguments.urls.empty()) return arguments.urls.front();
  try {
    const CommandClient client(arguments);
    if (client.is_local()) return client.server();
  } catch (const UsageError&) {
    // No URL is given, which is allowed here.
  }
  return "embedded://";
}

std::string text_field(const rl_info* info, std::int32_t field) {
  return read_text([&](char* buffer, std::size_t size) {
    return rl_info_text(info, RL_PART_SERVER, 0, field, buffer, size);
  });
}

std::int64_t number_field(const rl_info* info, std::int32_t field) {
  return rl_info_number(info, RL_PART_SERVER, 0, field);
}

std::string server_table(const rl_info* info, bool is_running) {
  std::string out = "folder    " + escaped(text_field(info, RL_FIELD_FOLDER)) + "\n";
  out += std::string("state     ") + (is_running ? "running" : "not running") +
         " (locks of this host only)\n";
  if (!is_running) return out;
  out += "version   " + escaped(text_field(info, RL_FIELD_VERSION)) + "\n";
  out += "pid       " + std::to_string(number_field(info, RL_FIELD_PID)) + "\n";
  out += "clients   " + std::to_string(number_field(info, RL_FIELD_CLIENT_COUNT)) + "\n";
  return out + "locks     " + std::to_string(number_field(info, RL_FIELD_LOCK_COUNT)) + "\n";
}

std::string server_json(const rl_info* info, bool is_running) {
  JsonObject object;
  object.number("schema", 1).text("folder", text_field(info, RL_FIELD_FOLDER));
  object.text("state", is_running ? "running" : "not_running");
  if (is_running) {
    object.text("version", text_field(info, RL_FIELD_VERSION));
    object.number("pid", number_field(info, RL_FIELD_PID));
    object.number("clients", number_field(info, RL_FIELD_CLIENT_COUNT));
    object.number("locks", number_field(info, RL_FIELD_LOCK_COUNT));
  }
  return object.done() + "\n";
}

// @return the exit code.
int show(const std::string& url, Output output) {
  const ErrorHandle error(not_null(rl_error_new()));
  const InfoHandle info(rl_embedded_inspect(url.data(), url.size(), nullptr, error.get()));
  if (!info) {
    throw Failure{exit_code_of(rl_error_status(error.get())),
                  escaped(rl_error_message(error.get()))};
  }
  const bool is_running = rl_info_number(info.get(), RL_PART_SERVER, 0, RL_FIELD_PID) > 0;
  const bool is_json = output == Output::kJson || output == Output::kJsonLines;
  write_output(is_json ? server_json(info.get(), is_running)
                       : server_table(info.get(), is_running));
  return is_running ? kExitHeld : kExitFree;
}

bool has_ended(const sigset_t& ending, std::int64_t within_ms, const Log& log) {
  const timespec limit{within_ms / 1000, within_ms % 1000 * 1'000'000};
  const int signal = sigtimedwait(&ending, nullptr, &limit);
  if (signal > 0) log.detail("ended by signal " + std::to_string(signal));
  return signal > 0;
}

// A server that was killed is replaced within a second; its locks are gone.
int keep_running(const CommandClient& client, const sigset_t& ending, const Log& log) {
  std::string trouble;
  while (!has_ended(ending, 1000, log)) {
    const rl_status status = rl_client_connect(client.handle(), kConnectMs, client.error());
    const std::string message = status == RL_OK ? "" : rl_error_message(client.error());
    if (!message.empty() && message != trouble) log.say(escaped(message));
    trouble = message;
  }
  return 0;
}

}  // namespace

int serve(const Arguments& arguments, const Log& log) {
  const std::string url = embedded_url(arguments);
  if (!arguments.stays) return show(url, arguments.output);
  sigset_t ending{};
  sigemptyset(&ending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ending, signal);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  Arguments chosen = arguments;
  chosen.is_local = false;
  chosen.urls = {url};
  const CommandClient client(chosen);
  if (!client.is_local()) {
    throw UsageError("--url must be embedded:// or embedded:///FOLDER (got " +
                     in_quotes(client.server()) + ")");
  }
  rl_status status = RL_E_UNAVAILABLE;
  for (std::int64_t tried_ms = 0; status == RL_E_UNAVAILABLE && tried_ms < kStartMs;
       tried_ms += kConnectMs) {
    status = rl_client_connect(client.handle(), kConnectMs, client.error());
    if (status == RL_E_UNAVAILABLE && has_ended(ending, 0, log)) return 0;
  }
  if (status != RL_OK) throw client.failure();
  (void)show(url, arguments.output);
  return keep_running(client, ending, log);
}

}  // namespace redlatch::cli
