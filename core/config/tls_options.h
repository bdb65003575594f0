// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The options of TLS: tls_ca, tls_cert, tls_key, tls_sni, tls_verify.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// @return nothing if there is no such option.
std::optional<Outcome> set_tls_option(TlsSettings &settings, std::string_view name,
                                      std::string_view value);
// Whether they go together, and with the scheme.
Outcome check_tls_options(const Settings &settings);
// What to say where there is no TLS.
Outcome no_tls(const std::string &address);
// Empty for an unknown name.
std::string tls_option_of(const TlsSettings &settings, std::string_view name);

}  // namespace redlatch::config
