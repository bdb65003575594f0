// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/tls_options.h"

namespace redlatch::config {

Outcome check_tls_options(const Settings &settings) {
  const TlsSettings &tls = settings.tls;
  const std::string of = " (of " + settings.address() + ")";
  if (tls.cert.empty() != tls.key.empty()) {
    return failure(Status::kInvalid,
                   (tls.key.empty() ? "option 'tls_cert' needs 'tls_key', its private key"
                                    : "option 'tls_key' needs 'tls_cert', its certificate") +
                       of);
  }
  if (tls.verify == TlsSettings::kNone && !tls.ca.empty()) {
    return failure(Status::kInvalid,
                   "option 'tls_ca' is of no use with tls_verify=none, which checks nothing" + of);
  }
  return tls.is_on || !tls.is_asked_for ? Outcome{} : no_tls(settings.address());
}

Outcome no_tls(const std::string &address) {
  return failure(Status::kInvalid,
                 "options tls_.. go with rediss:// and valkeys:// only, not with " + address);
}

}  // namespace redlatch::config
