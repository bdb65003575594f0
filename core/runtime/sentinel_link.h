// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelLink: what a link keeps whose server is named by sentinels: what it has learned, which
// primary it uses, and its watch. Guarded by the mutex of the runtime.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/finding.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "net/epoll_set.h"
#include "runtime/connections.h"
#include "runtime/side_connection.h"
#include "sentinel/sentinel_watch.h"
#include "timing/backoff.h"

namespace redlatch::runtime {

struct SentinelLink {
  SentinelLink(const Settings &settings_, uint32_t side_key)
      : settings(settings_), side(side_key) {}

  // @return what the attempt of the link begins with. Throws std::bad_alloc.
  const sentinel::Knowledge &begin_attempt() {
    stop.clear();
    news.reset();
    return known;
  }
  // The sentinel to watch next: first one that did not name the primary.
  Settings next_sentinel() const;
  size_t sentinel_count() const { return settings.sentinel.addresses.size() + known.others.size(); }
  // The watch has no connection any more.
  void lose_watch(Nanos now, uint64_t entropy) noexcept;
  Nanos next_due(bool is_wanted) const;
  std::string address() const { return settings.of_primary(opinion.primary).address(); }

  const Settings &settings;
  sentinel::Knowledge known;
  sentinel::Opinion opinion;      // who named the primary that was last connected to
  ServerAge age;                  // of that primary, if it was measured
  net::Event stop;                // ends the attempt of the link to connect
  bool must_connect_now = false;  // the primary has changed: connect without a pause
  std::vector<Finding> findings;  // of the last survey of the sentinels
  std::optional<HostPort> news;   // since the attempt began: the new primary

  SideConnection side;
  std::optional<sentinel::SentinelWatch> watch;
  std::shared_ptr<Settings> watched;  // of the sentinel; the attempt of `side` completes them
  timing::Backoff backoff{50 * kMs, 2'000 * kMs};
  size_t turn = 0;  // how many watches have ended
  Nanos watch_at = 0;
  size_t failure_count = 0;  // in a row
};

}  // namespace redlatch::runtime
