// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The client that a command works with, and the words for what goes wrong with its server.
#pragma once

#include <cstdint>
#include <string>

#include "arguments.h"
#include "exit_code.h"
#include "handles.h"

namespace redlatch::cli {

class Session {
 public:
  // Throws UsageError or Failure. Touches no network.
  explicit Session(const Arguments& arguments);

  [[nodiscard]] rl_client* client() const { return client_.get(); }
  [[nodiscard]] rl_error* error() const { return error_.get(); }
  // The URL without its password.
  [[nodiscard]] std::string server() const { return option("url"); }
  // Is it an embedded server, whose locks nobody on other hosts sees?
  [[nodiscard]] bool is_local() const { return server().starts_with("embedded://"); }
  // Why waiting is by polling and slow; empty when it is not.
  [[nodiscard]] std::string why_polling() const;
  // Who we are, as others see it.
  [[nodiscard]] std::string holder() const { return option("holder"); }

  // What to say and how to exit after a call that failed with `status` and `message`.
  [[nodiscard]] Failure failure(rl_status status, const std::string& message,
                                std::int64_t tried_ms) const;
  // The same for the call that has just set error().
  [[nodiscard]] Failure failure() const;

  // Throws Failure.
  [[nodiscard]] InfoHandle inspect(const std::string& name) const;
  // NULL with the reason in error().
  [[nodiscard]] InfoHandle try_inspect(const std::string& name) const;

 private:
  [[nodiscard]] std::string option(std::string_view name) const;

  ErrorHandle error_;
  ClientHandle client_;
};

}  // namespace redlatch::cli
