// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options of a client, from a URL and by name. Messages name the input and what is allowed. One
// grammar for every language.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_table.h"
#include "config/secret_file.h"

namespace redlatch::config {

// Options that were set by name. Each is checked when it is set, and applied by resolve().
class Options {
 public:
  Outcome set(std::string_view name, std::string_view value);
  // Read the environment. Its values apply where neither the URL nor set() gives one.
  Outcome set_from_env();

  // The value of an option as text, from set() or else from the environment. Empty for one that has
  // none, for a password and for an unknown name.
  std::string get(std::string_view name) const;

  // The settings of `url` and these options together. If `url` is empty, the URL of the environment
  // is used. Passwords never appear in messages.
  Outcome resolve(std::string_view url, Settings &settings) const;
  // The same for a Redlock: `urls` are separated by spaces or line ends.
  Outcome resolve(std::string_view urls, std::vector<Settings> &nodes,
                  QuorumSettings &settings) const;

 private:
  using Values = std::map<std::string, Password, std::less<>>;  // some are passwords
  Values values_;
  bool reads_env_ = false;
  Values from_env_;      // by option name, or "url"
  PipeSecrets secrets_;  // of password files

  Outcome set_password_file(const std::string &name, std::string_view value);
  Outcome resolve_node(std::string_view url, Settings &settings, PipeSecrets &secrets) const;
  std::string_view env(std::string_view name) const;
  Outcome no_server(const std::string &what) const;
  bool names_tls() const;
};

}  // namespace redlatch::config
