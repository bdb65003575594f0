// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/process.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace redlatch {

const char *environment_variable(const char *name) { return std::getenv(name); }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

int64_t process_number() { return getpid(); }

int64_t user_number() { return geteuid(); }

}  // namespace redlatch
