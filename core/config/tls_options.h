// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The TLS options: tls_ca, tls_cert, tls_key, tls_sni, tls_verify.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// @return nullopt if `name` is not a TLS option.
std::optional<Outcome> set_tls_option(TlsSettings &settings, std::string_view name,
                                      std::string_view value);
// Check that the TLS options fit together, and with the scheme.
Outcome check_tls_options(const Settings &settings);
// The failure if TLS options are set for a URL without TLS.
Outcome no_tls(const std::string &address);
// The value of the option `name`; empty for an unknown name.
std::string tls_option_of(const TlsSettings &settings, std::string_view name);

}  // namespace redlatch::config
