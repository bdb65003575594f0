// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options of a client: from a URL and by name, checked, with messages that name the input and what
// is allowed. One grammar for every language.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::client {

// Options by name, checked one by one, not yet applied.
class Options {
 public:
  Outcome set(std::string_view name, std::string_view value);
  // Apply to `settings`, over what the URL said.
  void apply(Settings &settings) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// What `url` and `options` say. Passwords never appear in messages.
Outcome parse_url(std::string_view url, const Options &options, Settings &settings);

// `url` with its password as ***; malformed ones too.
std::string redact_url(std::string_view url);

}  // namespace redlatch::client
