// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Login: a user and a password that the application has given.
#pragma once

#include <cstdint>
#include <string>

#include "base/password.h"

namespace redlatch::driver {

struct Login {
  uint64_t number = 0;  // rises with each one that was given; 0: the settings have the login
  std::string user;     // empty: the default user
  Password password;
};

}  // namespace redlatch::driver
