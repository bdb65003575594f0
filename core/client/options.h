// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options of a client: from a URL and by name, checked, with messages that name the input and what
// is allowed. One grammar for every language.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::client {

// Options by name, checked one by one, not yet applied.
class Options {
 public:
  Outcome set(std::string_view name, std::string_view value);
  // Take what the environment says, for whatever neither URL nor set() says.
  Outcome set_from_env();

  // What `url` and these options say together. An empty URL stands for that of the environment.
  // Passwords never appear in messages.
  Outcome resolve(std::string_view url, Settings &settings) const;
  // Likewise of a Redlock: `urls` with spaces or newlines between them.
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

// `url` with its password as ***; malformed ones too.
std::string redact_url(std::string_view url);

}  // namespace redlatch::client
