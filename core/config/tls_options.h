// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Checks of the TLS options together, and of those with the scheme.
#pragma once

#include <string>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::config {

// Check that the TLS options of the server, and those of sentinels, fit together, and with the
// scheme.
Outcome check_tls_options(const Settings &settings);
// The failure if TLS options are set for a URL without TLS.
Outcome no_tls(const std::string &address);

}  // namespace redlatch::config
