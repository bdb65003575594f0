// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A password file is replaced when its password is rotated, so it is read again for each
// connection; a pipe can be read only once.
#pragma once

#include "base/settings.h"
#include "base/status.h"

namespace redlatch::runtime {

// Read the password files of the server and of its sentinels again, unless they were pipes. A
// failure is kUnavailable, because the file may be there for the next attempt. Reads a file, so it
// is called by threads that may block. Throws std::bad_alloc.
Outcome read_passwords_again(Settings &settings);

}  // namespace redlatch::runtime
