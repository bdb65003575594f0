// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "client/tls_options.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace redlatch::client {

namespace {

using Verify = TlsSettings::Verify;

constexpr std::array<std::pair<std::string_view, Verify>, 3> kVerify = {
    {{"full", Verify::kFull}, {"ca", Verify::kCa}, {"none", Verify::kNone}}};

Outcome wrong(std::string_view name, std::string_view value, const std::string &what) {
  return failure(Status::kInvalid, "option " + quoted(name) + ": " + quoted(value, 256) + what);
}

// It is read at each connecting, when the working directory may be another one.
Outcome set_path(std::string_view name, std::string_view value, std::string &target) {
  const std::string path(value);
  if (path.empty() || path.find('\0') != std::string::npos || path.size() > kMaxNameBytes) {
    return wrong(name, value, " is not a path of 1 to " + std::to_string(kMaxNameBytes) + " bytes");
  }
  if (access(path.c_str(), R_OK) != 0) {
    return wrong(name, value, " cannot be read: " + std::generic_category().message(errno));
  }
  std::error_code error;
  target = std::filesystem::absolute(path, error);
  return error ? wrong(name, value, ": " + error.message()) : Outcome{};
}

Outcome set_sni(std::string_view value, std::string &target) {
  constexpr std::string_view kUnusual(" \t\r\n\0", 5);
  if (value.empty() || value.size() > 255 || value.find_first_of(kUnusual) != value.npos) {
    return wrong("tls_sni", value, " is not the name of a host");
  }
  target = value;
  return {};
}

Outcome set_verify(std::string_view value, Verify &target) {
  for (const auto &[word, verify] : kVerify) {
    if (value != word) continue;
    target = verify;
    return {};
  }
  return wrong("tls_verify", value, " is none; full, ca and none are");
}

}  // namespace

std::optional<Outcome> set_tls_option(TlsSettings &settings, std::string_view name,
                                      std::string_view value) {
  settings.is_asked_for = true;
  if (name == "tls_ca") return set_path(name, value, settings.ca);
  if (name == "tls_cert") return set_path(name, value, settings.cert);
  if (name == "tls_key") return set_path(name, value, settings.key);
  if (name == "tls_sni") return set_sni(value, settings.sni);
  if (name == "tls_verify") return set_verify(value, settings.verify);
  return std::nullopt;
}

Outcome check_tls_options(const Settings &settings) {
  const TlsSettings &tls = settings.tls;
  if (tls.cert.empty() != tls.key.empty()) {
    return failure(Status::kInvalid, tls.key.empty()
                                         ? "option 'tls_cert' needs 'tls_key', its private key"
                                         : "option 'tls_key' needs 'tls_cert', its certificate");
  }
  if (tls.verify == Verify::kNone && !tls.ca.empty()) {
    return failure(Status::kInvalid,
                   "option 'tls_ca' is of no use with tls_verify=none, which checks nothing");
  }
  if (tls.is_on || !tls.is_asked_for) return {};
  return failure(
      Status::kInvalid,
      "options tls_.. go with rediss:// and valkeys:// only, not with " + settings.address());
}

std::string tls_option_of(const TlsSettings &settings, std::string_view name) {
  if (name == "tls_ca") return settings.ca;
  if (name == "tls_cert") return settings.cert;
  if (name == "tls_key") return settings.key;
  if (name == "tls_sni") return settings.sni;
  if (name != "tls_verify") return {};
  for (const auto &[word, verify] : kVerify) {
    if (settings.verify == verify) return std::string(word);
  }
  return {};
}

}  // namespace redlatch::client
