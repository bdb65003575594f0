// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options of a client, from a URL and by name. Messages name the input and what is allowed. One
// grammar for every language.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// Options that were set by name. Each is checked when it is set, and applied by resolve().
class Options {
 public:
  Outcome set(std::string_view name, std::string_view value);
  // Read the environment. Its values apply where neither the URL nor set() gives one.
  Outcome set_from_env();

  // The settings of `url` and these options together. If `url` is empty, the URL of the environment
  // is used. Passwords never appear in messages.
  Outcome resolve(std::string_view url, Settings &settings) const;
  // The same for a Redlock: `urls` are separated by spaces or line ends.
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

// True if `name` is an option of one server, or of a whole Redlock.
bool is_option(std::string_view name);
bool is_quorum_option(std::string_view name);
// Set one option of one server. Messages name the option and what is allowed, never the value.
Outcome set_option(Settings &settings, std::string_view name, std::string_view value);
// A failure that suggests the nearest name, or lists all. It quotes `name` only if that has the
// form of a name, because it may be a part of a secret.
Outcome unknown_option(std::string_view name);
// The word of `known` that is nearest to `word`; empty if none is near.
std::string nearest(std::span<const std::string_view> known, std::string_view word);
std::string nearest_option(std::string_view name);

}  // namespace redlatch::config
