// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options of a client: from a URL and by name, checked, with messages that name the input and what
// is allowed. One grammar for every language.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// Options by name, checked one by one, not yet applied.
class Options {
 public:
  Outcome set(std::string_view name, std::string_view value);
  // Take what the environment says, for whatever neither URL nor set() says.
  Outcome set_from_env();

  // What `url` and these options say together. An empty URL stands for that of the environment.
  // Passwords never appear in messages.
  Outcome resolve(std::string_view url, Settings &settings) const;
  // The same for a Redlock: `urls` with spaces or newlines between them.
  Outcome resolve(std::string_view urls, std::vector<Settings> &nodes,
                  QuorumSettings &settings) const;

 private:
  using Values = std::map<std::string, std::string, std::less<>>;
  Values values_;
  Values from_env_;  // by option name, or "url"

  Outcome resolve_node(std::string_view url, Settings &settings) const;
  std::string_view env(std::string_view name) const;
  bool names_tls() const;
};

// The value of the option `name` in `settings`, or "url"; empty for a secret or an unknown name.
std::string option_of(const Settings &settings, std::string_view name);
std::string option_of(const QuorumSettings &settings, std::string_view name);

// ---- what options and URLs share ---------------------------------------------------------------

// Is it the name of an option of one server, resp. of a whole Redlock?
bool is_option(std::string_view name);
bool is_quorum_option(std::string_view name);
// Set one option of one server. A message names the option and what is allowed, and no value.
Outcome set_option(Settings &settings, std::string_view name, std::string_view value);
// A failure that suggests the nearest name. Text that does not have the form of a name is not
// quoted.
Outcome unknown_option(std::string_view name);
// The one of `known` that differs little from `word`, or an empty text.
std::string nearest(std::span<const std::string_view> known, std::string_view word);
std::string nearest_option(std::string_view name);

}  // namespace redlatch::config
