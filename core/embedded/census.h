// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Census: what runs in a folder, and whether anybody needs it. A look, which starts nothing and
// keeps nothing alive.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::embedded {

struct Census {
  std::string folder;
  std::string version;       // "Valkey 8.0.1"; empty: no server answers there
  int64_t pid = 0;           // of the server
  int64_t client_count = 0;  // connections, this one not counted
  int64_t lock_count = 0;    // keys but those that we keep beside a lock; at most kMaxCounted
};

inline constexpr int64_t kMaxCounted = 100'000;

// The settings are those of an embedded server. That none runs is no failure.
Outcome take_census(const Settings &settings, Nanos limit, Census &census);

// The same where only a yes or no is asked: at most one lock is counted.
Outcome look_for_work(const Settings &settings, Nanos limit, Census &census);

}  // namespace redlatch::embedded
