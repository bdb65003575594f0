// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/password_files.h"

#include <string>
#include <utility>

#include "base/text.h"
#include "host/secret_line.h"

namespace redlatch::runtime {

namespace {

template <class Owner>
Outcome read_again(Owner &owner, const std::string &address) {
  if (!owner.is_password_read_again) return {};
  SecretLine line;
  const std::string reason = read_secret_line(owner.password_file, LineSource::kRegular, line);
  if (reason.empty()) {
    owner.password = std::move(line.text);
    return {};
  }
  // It is a path: it was read when the client was opened.
  return failure(Status::kUnavailable, "cannot read the password file " +
                                           quoted(owner.password_file, 256) + ": " + reason +
                                           " (for " + address + ")");
}

}  // namespace

Outcome read_passwords_again(Settings &settings) {
  const std::string address = settings.address();
  auto outcome = read_again(settings, address);
  return outcome.ok() ? read_again(settings.sentinel, address) : outcome;
}

}  // namespace redlatch::runtime
