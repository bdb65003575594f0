// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The receivers of the reports of a `run`: people on stderr, programs at --status-fd.
#pragma once

#include "events.h"
#include "log.h"

namespace redlatch::cli {

struct Reports {
  const Log& log;
  const Events& events;
};

}  // namespace redlatch::cli
