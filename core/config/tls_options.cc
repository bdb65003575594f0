// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/tls_options.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/descriptor.h"
#include "base/text.h"
#include "config/url.h"

namespace redlatch::config {

namespace {

using Verify = TlsSettings::Verify;

constexpr std::array<std::pair<std::string_view, Verify>, 3> kVerify = {
    {{"full", Verify::kFull}, {"ca", Verify::kCa}, {"none", Verify::kNone}}};

Outcome wrong(std::string_view name, const std::string &what) {
  return failure(Status::kInvalid, "option " + quoted(name) + what);
}

// Some users give the key itself instead of its file.
Outcome wrong_path(std::string_view name, std::string_view path, const std::string &what) {
  return wrong(name, (is_shown_path(path) ? ": " + quoted(path, 256) : std::string()) + what);
}

// Made absolute: each connection attempt reads the file, and the working directory may change.
Outcome set_path(std::string_view name, std::string_view value, std::string &target) {
  const std::string path(value);
  if (path.empty() || path.find('\0') != std::string::npos || path.size() >= PATH_MAX) {
    return wrong(name, " is not a path of 1 to " + std::to_string(PATH_MAX - 1) + " bytes");
  }
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat seen {};
  if (file.get() < 0 || fstat(file.get(), &seen) != 0) {
    return wrong_path(name, value, " cannot be read: " + std::generic_category().message(errno));
  }
  const bool may_be_folder = name == "tls_ca";
  if (!S_ISREG(seen.st_mode) && !(may_be_folder && S_ISDIR(seen.st_mode))) {
    return wrong_path(name, value,
                      may_be_folder ? " is neither a file nor a folder" : " is not a file");
  }
  std::error_code error;
  target = std::filesystem::absolute(path, error);
  return error ? wrong_path(name, value, ": " + error.message()) : Outcome{};
}

Outcome set_sni(std::string_view value, std::string &target) {
  // With a leading dot OpenSSL would accept any name in that domain.
  if (value.starts_with('.') || !(is_host(value) || is_ipv6(value))) {
    return wrong("tls_sni", " is not the name of a host");
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
  return wrong("tls_verify", " is not one of full, ca and none");
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
  const std::string of = " (of " + settings.address() + ")";
  if (tls.cert.empty() != tls.key.empty()) {
    return failure(Status::kInvalid,
                   (tls.key.empty() ? "option 'tls_cert' needs 'tls_key', its private key"
                                    : "option 'tls_key' needs 'tls_cert', its certificate") +
                       of);
  }
  if (tls.verify == Verify::kNone && !tls.ca.empty()) {
    return failure(Status::kInvalid,
                   "option 'tls_ca' is of no use with tls_verify=none, which checks nothing" + of);
  }
  return tls.is_on || !tls.is_asked_for ? Outcome{} : no_tls(settings.address());
}

Outcome no_tls(const std::string &address) {
  return failure(Status::kInvalid,
                 "options tls_.. go with rediss:// and valkeys:// only, not with " + address);
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

}  // namespace redlatch::config
