// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ServerStatus: the state of the embedded server of a folder, and whether it is in use. Reading it
// starts no server, and keeps none alive.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::embedded {

struct ServerStatus {
  std::string folder;
  std::string version;       // "Valkey 8.0.1"; empty: no server runs there
  int64_t pid = 0;           // of the server
  int64_t client_count = 0;  // connections, without this one
  int64_t lock_count = 0;    // keys, without the auxiliary keys of locks; counting stops after
                             // kMaxCounted
};

inline constexpr int64_t kMaxCounted = 100'000;

// `settings` are those of an embedded server. Ok without a version if no server runs.
Outcome read_status(const Settings &settings, Nanos limit, ServerStatus &status);

// The same, but counting stops after the first lock, and the folder is not checked.
Outcome read_activity(const Settings &settings, Nanos limit, ServerStatus &status);

}  // namespace redlatch::embedded
