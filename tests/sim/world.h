// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// World: one run. Clients, callers, a server, faults, and the rules that are checked after every
// event; then a calm in which everybody must be served, and an end after which nothing may be left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beliefs.h"
#include "caller.h"
#include "client.h"
#include "mutants.h"
#include "network.h"
#include "peer.h"
#include "plan.h"
#include "rules.h"
#include "scene.h"
#include "schedule.h"
#include "server.h"
#include "tally.h"
#include "trace.h"
#include "verdict.h"

namespace redlatch::sim {

struct Result {
  bool is_broken = false;
  std::string rule, how;
  Nanos at = 0;
  uint64_t hash = 0;
  Nanos simulated = 0;
  Tally tally;

  // What there was too little of for this run to count; empty if it counts.
  std::string what_is_missing(const Plan &plan) const;
};

// One run, in the world that `plan` is of.
Result run_plan(const Plan &plan, const Mutant *mutant, FILE *words);

class World {
 public:
  World(const Plan &plan, const Mutant *mutant, FILE *words);
  ~World();

  Result run();

 private:
  struct Slot {
    std::unique_ptr<Client> client;  // none while its process is gone
    std::vector<std::unique_ptr<Caller>> callers;
    uint64_t life = 0;
  };

  // world.cc
  void run_until(Nanos end);
  void populate(int slot);
  void watch();
  void judge_idle();
  void judge_waits();
  void end_work();
  void end_everything();
  bool is_quiet() const;
  void hand_over(int from, const GivenLease &given);

  // faults.cc
  void schedule_fault();
  void inject();
  void inject_into_client(Fault fault);
  void inject_into_server(Fault fault);
  void break_connection(Fault fault, Client &client);
  void bring_down(Fault fault);
  void step_clock(Fault fault);
  void kill(int slot, Fault fault);
  void kill_newcomer();
  void kill_crowd();
  void forge();
  void excuse_holders();
  Client *any_client();
  void calm();

  const Plan plan_;
  Schedule schedule_;
  Tally tally_;
  Trace trace_;
  Verdict verdict_;
  Network network_;
  Server server_;
  Beliefs beliefs_;
  Rules rules_;
  Scene scene_;
  Random random_;               // of the faults
  const int64_t bytes_before_;  // of the core
  bool is_working_ = true;
  bool is_calm_ = false;
  Nanos calm_since_ = 0;
  Nanos worked_until_ = 0;  // afterwards time is only skipped
  Nanos second_ = 0;        // which it is, and what had been entered when it began
  uint64_t events_before_ = 0;
  Nanos stepped_back_ = 0;  // in sum
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace redlatch::sim
