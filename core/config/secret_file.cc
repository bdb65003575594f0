// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/secret_file.h"

#include <utility>

#include "base/text.h"
#include "config/url_parts.h"
#include "host/secret_line.h"

namespace redlatch::config {

Outcome read_secret(const std::string &path, Secret &secret, PipeSecrets &of_pipes) {
  if (const auto known = of_pipes.find(path); known != of_pipes.end()) {
    secret = {known->second, false};
    return {};
  }
  SecretLine line;
  const std::string reason = read_secret_line(path, LineSource::kAny, line);
  if (!reason.empty()) {
    // Text that does not look like a path may be the password itself.
    const std::string shown = is_shown_path(path) ? " " + quoted(path, 256) : "";
    return failure(Status::kInvalid, "cannot read the password file" + shown + ": " + reason);
  }
  if (line.is_pipe) of_pipes.emplace(path, line.text);
  secret = {std::move(line.text), line.is_regular};
  return {};
}

}  // namespace redlatch::config
