// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The client or the quorum of a command, and the messages for failures of its servers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "exit_code.h"
#include "handles.h"

namespace redlatch::cli {

// The URLs of the servers from the arguments or the environment. Throws UsageError without a URL.
[[nodiscard]] std::vector<std::string> server_urls(const Arguments& arguments);

// The library's knowledge of a server.
struct NodeStatus {
  std::int64_t state = RL_NODE_UNKNOWN;
  std::string reason;  // For a state other than RL_NODE_UP.

  [[nodiscard]] bool votes() const { return state == RL_NODE_UP || state == RL_NODE_POLLED; }
};

class CommandClient {
 public:
  // One server, or a quorum of several. Throws UsageError or Failure. Touches no network.
  explicit CommandClient(const Arguments& arguments);
  // The server at `url` alone, also if it is one of several.
  CommandClient(const Arguments& arguments, const std::string& url);
  // A client of one server, for `command`. Throws UsageError if there are several.
  [[nodiscard]] static CommandClient of_one(const Arguments& arguments, const char* command);

  [[nodiscard]] bool is_quorum() const { return is_quorum_; }
  [[nodiscard]] rl_client* handle() const { return client_.get(); }
  [[nodiscard]] rl_error* error() const { return error_.get(); }
  // The URL without its password; of a quorum all of them.
  [[nodiscard]] std::string server() const;
  // True for an embedded server, whose locks exist on this host only.
  [[nodiscard]] bool is_local() const {
    return !is_quorum() && server().starts_with("embedded://");
  }
  // One for each server. Throws Failure.
  [[nodiscard]] std::vector<NodeStatus> nodes() const;
  // Why waiting is by polling and slow; empty when it is not.
  [[nodiscard]] std::string why_polling() const;
  // Our name as a holder.
  [[nodiscard]] std::string holder() const { return option("holder"); }

  // For the text of an option see rl_client_option().
  [[nodiscard]] std::string option(std::string_view name) const;

  // The status is also in error().
  [[nodiscard]] rl_status connect(std::int64_t wait_ms) const;
  void shut_down() const;
  // Ends the client. If its servers do not answer within `limit_ms`, the end of the process has to
  // do that: see was_abandoned().
  void close_within(std::int64_t limit_ms);
  // True if a client of this process still runs: the process must end without cleaning up.
  [[nodiscard]] static bool was_abandoned();

  // The message and the exit code after a call that failed with `status` and `message`.
  [[nodiscard]] Failure failure(rl_status status, const std::string& message,
                                std::int64_t tried_ms) const;
  // The same for the call that has just set error().
  [[nodiscard]] Failure failure() const;

  // Throws Failure.
  [[nodiscard]] InfoHandle inspect(const std::string& name) const;
  // NULL with the reason in error().
  [[nodiscard]] InfoHandle try_inspect(const std::string& name) const;

 private:
  void open(const Arguments& arguments, const std::vector<std::string>& urls);

  ErrorHandle error_;
  bool is_quorum_ = false;
  bool is_default_ = false;  // No --url was given.
  ClientHandle client_;
};

}  // namespace redlatch::cli
