// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelLink: what a link keeps whose server is named by sentinels: what is known of them, and a
// connection to each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/finding.h"
#include "base/settings.h"
#include "base/thread_annotations.h"
#include "driver/log.h"
#include "driver/primary_follower.h"
#include "net/epoll_set.h"
#include "runtime/runtime_mutex.h"
#include "runtime/side_connection.h"

namespace redlatch::runtime {

struct SentinelLink {
  // Its connections have the keys from `first_key` on. Throws std::bad_alloc.
  SentinelLink(const Settings &settings, driver::Log &log, uint32_t first_key);

  // A connection to a sentinel, by its number in the watch.
  struct Side {
    explicit Side(uint32_t key) : connection(key) {}
    SideConnection connection GUARDED_BY(runtime_mutex);
    std::shared_ptr<Settings> settings UNGUARDED("completed by the attempt");  // of the sentinel
  };

  net::Event stop UNGUARDED("any thread may signal it");  // ends the attempt of the link to connect
  std::vector<Finding> findings GUARDED_BY(runtime_mutex);  // of the last survey of the sentinels
  driver::PrimaryFollower follower GUARDED_BY(runtime_mutex);
  std::vector<Side> sides GUARDED_BY(runtime_mutex);
};

}  // namespace redlatch::runtime
