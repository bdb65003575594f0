// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The commands. Each returns its exit code or throws a Failure.
#pragma once

#include "arguments.h"
#include "log.h"

namespace redlatch::cli {

[[nodiscard]] int run(const Arguments& arguments, const Log& log);          // `once`, too.
[[nodiscard]] int forget_runs(const Arguments& arguments, const Log& log);  // `once --forget`
[[nodiscard]] int elect(const Arguments& arguments, const Log& log);
[[nodiscard]] int show_leader(const Arguments& arguments, const Log& log);
[[nodiscard]] int show_status(const Arguments& arguments, const Log& log);
[[nodiscard]] int list_locks(const Arguments& arguments, const Log& log);
[[nodiscard]] int force_release(const Arguments& arguments, const Log& log);
[[nodiscard]] int recall(const Arguments& arguments, const Log& log);
[[nodiscard]] int limit(const Arguments& arguments, const Log& log);
[[nodiscard]] int doctor(const Arguments& arguments, const Log& log);
[[nodiscard]] int serve(const Arguments& arguments, const Log& log);

}  // namespace redlatch::cli
