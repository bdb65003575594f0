// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The library's options as flags of the command: one for each row of options.def.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "redlatch/redlatch.h"

namespace CLI {
class App;
}  // namespace CLI

namespace redlatch::cli {

class OptionFlags {
 public:
  // For a client and a quorum, or for an acquisition. Must outlive the parsing.
  void add_client_options(CLI::App& app) { add(app, Use::kClient); }
  void add_acquire_options(CLI::App& app) { add(app, Use::kAcquire); }
  // Those of an acquisition that `once` and `elect` leave open.
  void add_mutex_options(CLI::App& app) { add(app, Use::kMutex); }

  // As it was typed, or set.
  [[nodiscard]] std::optional<std::string> value(std::string_view name) const;
  void set(std::string_view name, const std::string& text);
  // As if none was given that is for a quorum only.
  void drop_those_of_quorum();
  // The first given flag that is for a quorum only, or on one server only; "" = none.
  [[nodiscard]] std::string given_of_quorum() const { return given('Q'); }
  [[nodiscard]] std::string given_of_one_server() const { return given('L'); }

  // Set the given options by name. Throws UsageError with the library's message.
  void apply(rl_acquire_options* options) const;
  struct Refusal {
    rl_status status;
    std::string option;
    std::string message;
  };
  // The first one that the library refused.
  std::optional<Refusal> apply(rl_client_options* options) const;

 private:
  struct Flag {
    char scope = 0;  // C, T, Q, A or L: the first letter of the scope in options.def.
    std::string name;
    std::string spelling;
    bool is_duration = false;
    bool is_switch = false;
    bool is_on = false;  // The switch was given.
    std::string text_of_switch;
    std::optional<std::string> text;

    [[nodiscard]] std::optional<std::string> value() const;
    // The library's message, with the flag and the value as they were typed.
    [[nodiscard]] std::string message_of(const rl_error* error) const;
  };

  enum class Use { kClient, kAcquire, kMutex };
  void add(CLI::App& app, Use use);
  [[nodiscard]] std::string given(char scope) const;
  template <auto Set, class Options>
  std::optional<Refusal> apply_to(Options* options) const;

  std::deque<Flag> flags_;  // CLI11 has pointers to them.
};

}  // namespace redlatch::cli
