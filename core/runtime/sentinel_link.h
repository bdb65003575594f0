// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelLink: what a link keeps whose server is named by sentinels: what is known of them, and a
// connection to each.
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
#include "base/thread_annotations.h"
#include "net/epoll_set.h"
#include "runtime/connections.h"
#include "runtime/runtime_mutex.h"
#include "runtime/side_connection.h"
#include "sentinel/primary_watch.h"

namespace redlatch::runtime {

struct SentinelLink {
  // Its connections have the keys from `first_key` on. Throws std::bad_alloc.
  SentinelLink(const Settings &settings_, uint32_t first_key);

  // @return what the attempt of the link begins with. Throws std::bad_alloc.
  const sentinel::Knowledge &begin_attempt() REQUIRES(runtime_mutex) {
    stop.clear();
    return watch.begin_discovery();
  }
  std::string address() const REQUIRES(runtime_mutex) {
    return settings.of_primary(watch.opinion().primary).address();
  }

  // A connection to a sentinel, by its number in `watch`.
  struct Side {
    explicit Side(uint32_t key) : connection(key) {}
    SideConnection connection GUARDED_BY(runtime_mutex);
    std::shared_ptr<Settings> settings UNGUARDED("completed by the attempt");  // of the sentinel
  };

  const Settings &settings;
  ServerAge age GUARDED_BY(runtime_mutex);                // of the primary, if it was measured
  net::Event stop UNGUARDED("any thread may signal it");  // ends the attempt of the link to connect
  // The primary has changed: connect without a pause.
  bool must_connect_now GUARDED_BY(runtime_mutex) = false;
  std::vector<Finding> findings GUARDED_BY(runtime_mutex);  // of the last survey of the sentinels

  sentinel::PrimaryWatch watch GUARDED_BY(runtime_mutex);
  std::vector<Side> sides GUARDED_BY(runtime_mutex);
};

}  // namespace redlatch::runtime
