// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/tls_options.h"

namespace redlatch::config {

namespace {

Outcome check(const TlsSettings &tls, const std::string &address) {
  const std::string of = " (of " + address + ")";
  if (tls.cert.empty() != tls.key.empty()) {
    const std::string cert = "'" + tls.option("tls_cert") + "'";
    const std::string key = "'" + tls.option("tls_key") + "'";
    return failure(Status::kInvalid,
                   "option " +
                       (tls.key.empty() ? cert + " needs " + key + ", its private key"
                                        : key + " needs " + cert + ", its certificate") +
                       of);
  }
  if (tls.verify == TlsSettings::kNone && !tls.ca.empty()) {
    return failure(Status::kInvalid, "option '" + tls.option("tls_ca") + "' is of no use with " +
                                         tls.option("tls_verify") + "=none, which checks nothing" +
                                         of);
  }
  return {};
}

}  // namespace

Outcome check_tls_options(const Settings &settings) {
  const TlsSettings &of_sentinels = settings.sentinel.tls;
  if (auto outcome = check(settings.tls, settings.address()); !outcome.ok()) return outcome;
  if (auto outcome = check(of_sentinels, settings.address()); !outcome.ok()) return outcome;
  if (of_sentinels.is_asked_for && !of_sentinels.is_on) {
    return failure(Status::kInvalid,
                   "option 'sentinel_tls' must be yes for options sentinel_tls_.. "
                   "(of " +
                       settings.address() + ")");
  }
  return settings.tls.is_on || !settings.tls.is_asked_for ? Outcome{} : no_tls(settings.address());
}

Outcome no_tls(const std::string &address) {
  return failure(Status::kInvalid,
                 "options tls_.. must be used with rediss://, valkeys://, rediss-sentinel:// and "
                 "rediss+cluster:// only (got " +
                     address + ")");
}

}  // namespace redlatch::config
