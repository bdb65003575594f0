// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Group: a primary, its replicas, and sentinels. It carries what a primary writes to its replicas,
// in order and late, and replaces the primary: with a replica that has everything, or with one that
// has not, while the old one is down, paused or parted, and may take writes afterwards.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "context.h"
#include "group_rules.h"
#include "random.h"
#include "sentinel.h"

namespace redlatch::sim {

class Group : public Journal {
 public:
  Group(Context &context, GroupRules &rules);

  void inject(Fault fault);
  void calm();

  size_t primary() const { return primary_; }
  int64_t epoch() const { return epoch_; }
  // The last epoch in which it became the primary; 0: it never did.
  int64_t epoch_of(size_t server) const { return epochs_[server]; }
  size_t sentinel_count() const { return sentinels_.size(); }
  // The sum of the steps back of the primary's clock that failovers were.
  Nanos stepped_back() const { return rules_.stepped_back(); }
  Sentinel &sentinel(size_t number) { return *sentinels_[number]; }

  // Journal
  void wrote(size_t server, Effects effects) override;
  int64_t confirmed_count(size_t server, uint64_t offset) const override;

 private:
  static constexpr size_t kNone = SIZE_MAX;

  // How a replica follows a primary.
  struct Replica {
    size_t of = kNone;    // the primary
    uint64_t number = 0;  // counts primaries: what comes from an earlier one is ignored
    bool is_synced = false;
    bool is_cut = false;     // parted from the primary: what is sent now is lost
    Nanos last = 0;          // arrival of the last effects
    Nanos stalled = 0;       // nothing arrives until then
    uint64_t applied = 0;    // writes of the primary
    uint64_t confirmed = 0;  // of them, as the primary knows
  };

  Server &server(size_t number) { return *context_.servers[number]; }
  void follow(size_t replica, size_t primary);
  void synchronise(size_t replica, uint64_t number);
  void confirm(size_t replica, uint64_t number, uint64_t offset);

  void fail_over();
  void check_handover(size_t heir, Nanos until);
  void crash_primary();
  void pause_primary();
  void split();
  // A replica is promoted after `detection`; the old primary becomes a replica after `resignation`.
  void replace(Nanos detection, Nanos resignation);
  bool promote(size_t heir);
  void resign(size_t old);
  size_t any_replica();
  void inform_sentinels();
  void stall_replica();
  void hold_back_sentinel();
  void end_sentinel();
  void cut_watch();
  bool is_any_busy() const;
  Nanos between(int64_t least_ms, int64_t most_ms) {
    return random_.between(least_ms, most_ms) * kMs;
  }

  Context &context_;
  GroupRules &rules_;
  Random random_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
  std::vector<Replica> replicas_;  // by server; that of a primary is not used
  size_t primary_ = 0;
  int64_t epoch_ = 1;
  std::vector<int64_t> epochs_;  // by server
  bool is_busy_ = false;         // a failover is under way
  size_t parted_ = kNone;        // the sentinel on the side of a parted primary
};

}  // namespace redlatch::sim
