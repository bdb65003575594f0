// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Whom a `run` tells what happens: people on stderr, programs at --status-fd.
#pragma once

#include "events.h"
#include "log.h"

namespace redlatch::cli {

struct Reports {
  const Log& log;
  const Events& events;
};

}  // namespace redlatch::cli
