// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Sentinel: one of several, as a client sees it: it names the primary as it knows it, and publishes
// that another one has taken over. Group decides that, and tells each sentinel in its own time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "network.h"
#include "plan.h"
#include "schedule.h"
#include "trace.h"

namespace redlatch::sim {

// Addresses of servers and sentinels, numbered from 0.
inline constexpr const char *kPrimaryName = "orders";
HostPort server_address(size_t server);
HostPort sentinel_address(size_t sentinel);
// The number of a server or a sentinel in its address.
size_t number_in(const HostPort &address);

class Sentinel : public ServerEnd {
 public:
  // What it knows.
  struct View {
    size_t primary = 0;
    int64_t epoch = 1;
    bool is_announced = true;  // it publishes that; otherwise only an answer says so
  };

  Sentinel(const Plan &plan, Schedule &schedule, Network &network, Trace &trace, size_t number)
      : plan_(plan), schedule_(schedule), network_(network), trace_(trace), number_(number) {}

  bool accept(uint64_t link);  // false if it is down
  void learn(const View &view);
  // It leads the failover: it names the new primary and says that a replica is promoted. It says
  // that the primary has changed when the other replicas follow, after `late`.
  void lead(const View &view, Nanos late);
  bool can_lead() const { return is_up_ && schedule_.now() >= held_until_; }
  void hold_back(Nanos until);  // learns nothing until then
  void crash();
  void restart() {
    is_up_ = true;
    up_since_ = schedule_.now();
  }
  bool is_up() const { return is_up_; }
  Nanos up_since() const { return up_since_; }
  const View &view() const { return view_; }
  Nanos view_since() const { return view_since_; }

  void received(uint64_t link, CommandList commands) override;
  void closed(uint64_t link) override { sessions_.erase(link); }

 private:
  struct Session {
    std::set<std::string, std::less<>> channels;
  };
  Message answer(Argv argv) const;
  Value describe(Argv argv) const;
  void take(const View &view);
  void publish(std::string_view channel, const std::string &message);

  const Plan &plan_;
  Schedule &schedule_;
  Network &network_;
  Trace &trace_;
  const size_t number_;
  View view_;
  View next_;  // what it learns at held_until_
  Nanos held_until_ = 0;
  Nanos up_since_ = 0;
  Nanos view_since_ = 0;
  bool is_up_ = true;
  std::map<uint64_t, Session> sessions_;
};

}  // namespace redlatch::sim
