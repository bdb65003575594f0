// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The client that a command works with, opened from flags, environment and URL, and the words for
// what goes wrong with its server. The first of flag, URL and environment wins.
#pragma once

#include <cstdint>
#include <string>

#include "arguments.h"
#include "exit_code.h"
#include "handles.h"

namespace redlatch::cli {

// The URL of the server: of --url, --local or the environment. Throws UsageError if none is named.
[[nodiscard]] std::string chosen_url(const Arguments& arguments);

class Session {
 public:
  // Throws UsageError or Failure. Touches no network.
  explicit Session(const Arguments& arguments);

  [[nodiscard]] rl_client* client() const { return client_.get(); }
  [[nodiscard]] rl_error* error() const { return error_.get(); }
  // The URL without its password.
  [[nodiscard]] const std::string& server() const { return server_; }
  // Is it an embedded server, whose locks nobody on other hosts sees?
  [[nodiscard]] bool is_local() const { return server_.starts_with("embedded://"); }
  // Who we are, as others see it.
  [[nodiscard]] const std::string& holder() const { return holder_; }

  // What to say and how to exit after a call that failed with `status` and `message`.
  [[nodiscard]] Failure failure(rl_status status, const std::string& message,
                                std::int64_t tried_ms) const;

  // NULL with the reason in error().
  [[nodiscard]] InfoHandle inspect(const std::string& name) const;

 private:
  std::string server_;
  std::string holder_;
  ErrorHandle error_;
  ClientHandle client_;
};

}  // namespace redlatch::cli
