// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The options of `recall`, and of `leader`, which recalls with --resign.
#pragma once

#include "arguments.h"

namespace CLI {
class App;
}  // namespace CLI

namespace redlatch::cli {

void add_recall_options(CLI::App& command, Arguments& arguments);
void add_leader_options(CLI::App& command, Arguments& arguments);
// Throws UsageError.
void check_recall(const Arguments& arguments);

}  // namespace redlatch::cli
