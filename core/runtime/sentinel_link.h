// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelLink: what a link keeps whose server is named by sentinels: what is known of them, and a
// connection to each. Guarded by the mutex of the runtime.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/finding.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "net/epoll_set.h"
#include "runtime/connections.h"
#include "runtime/side_connection.h"
#include "sentinel/primary_watch.h"

namespace redlatch::runtime {

struct SentinelLink {
  // Its connections have the keys from `first_key` on. Throws std::bad_alloc.
  SentinelLink(const Settings &settings_, uint32_t first_key);

  // @return what the attempt of the link begins with. Throws std::bad_alloc.
  const sentinel::Knowledge &begin_attempt() {
    stop.clear();
    return watch.begin_discovery();
  }
  std::string address() const { return settings.of_primary(watch.opinion().primary).address(); }

  // A connection to a sentinel, by its number in `watch`.
  struct Side {
    explicit Side(uint32_t key) : connection(key) {}
    SideConnection connection;
    std::shared_ptr<Settings> settings;  // of the sentinel; the attempt completes them
  };

  const Settings &settings;
  ServerAge age;                  // of the primary, if it was measured
  net::Event stop;                // ends the attempt of the link to connect
  bool must_connect_now = false;  // the primary has changed: connect without a pause
  std::vector<Finding> findings;  // of the last survey of the sentinels

  sentinel::PrimaryWatch watch;
  std::vector<Side> sides;
};

}  // namespace redlatch::runtime
