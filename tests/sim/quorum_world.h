// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumWorld: one run with several servers. As World, for clients that lock on most of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "beliefs.h"
#include "caller.h"
#include "mutants.h"
#include "network.h"
#include "plan.h"
#include "quorum_client.h"
#include "quorum_rules.h"
#include "schedule.h"
#include "server.h"
#include "tally.h"
#include "trace.h"
#include "verdict.h"
#include "world.h"

namespace redlatch::sim {

class QuorumWorld {
 public:
  QuorumWorld(const Plan &plan, const Mutant *mutant, FILE *words);
  ~QuorumWorld();

  Result run();

 private:
  struct Slot {
    std::unique_ptr<QuorumClient> client;  // none while its process is gone
    std::vector<std::unique_ptr<Caller>> callers;
    uint64_t life = 0;
  };

  // quorum_world.cc
  QuorumScene make_scene(const Mutant *mutant);
  void run_until(Nanos end);
  void populate(int slot);
  void watch();
  void judge_missing();
  void judge_idle();
  void judge_waits();
  void judge_losses();
  void end_work();
  void end_everything();
  bool is_quiet() const;

  // quorum_faults.cc
  void schedule_fault();
  void inject();
  void inject_into_client(Fault fault);
  void inject_into_node(Fault fault);
  void break_connection(Fault fault, QuorumClient &client);
  void part(Fault fault, QuorumClient &client);
  void part_from(QuorumClient &client, const std::vector<size_t> &nodes, bool is_up, bool is_down,
                 Nanos until);
  void silence(Fault fault);
  void bring_down(Fault fault, size_t node);
  void crash(size_t node, Nanos down_for, bool keeps_data);
  void hide_restart(size_t node);
  void forget(size_t node);
  void step_clock(Fault fault, size_t node);
  void kill(int slot, Fault fault);
  QuorumClient *any_client();
  size_t any_node() { return random_.below(servers_.size()); }
  std::vector<size_t> some_nodes(size_t count);
  void calm();

  const Plan plan_;
  Schedule schedule_;
  Tally tally_;
  Trace trace_;
  Verdict verdict_;
  Network network_;
  Beliefs beliefs_;
  std::vector<std::unique_ptr<Server>> servers_;
  QuorumRules rules_;
  QuorumScene scene_;
  Random random_;               // of the faults
  const int64_t bytes_before_;  // of the core
  bool is_working_ = true;
  bool is_calm_ = false;
  Nanos calm_since_ = 0;
  Nanos worked_until_ = 0;  // afterwards time is only skipped
  Nanos second_ = 0;        // which it is, and what had been entered when it began
  uint64_t events_before_ = 0;
  Nanos stepped_back_ = 0;             // in sum, of the node that was most
  std::vector<size_t> stepped_;        // nodes whose clock may be stepped
  std::vector<size_t> gone_;           // .. and that do not come back
  std::map<std::string, Nanos> idle_;  // since when a lock that is waited for has had no holder
  std::vector<Slot> slots_;
};

}  // namespace redlatch::sim
