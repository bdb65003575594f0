// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// World: one run. Clients, callers, one server or several, and faults; rules are checked after
// every command and every call of a client. Then follow a calm without new faults, in which every
// waiter must be served, and an end after which nothing may be left.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "caller.h"
#include "cluster.h"
#include "context.h"
#include "group.h"
#include "mutants.h"
#include "passwords.h"
#include "peer.h"

namespace redlatch::sim {

struct Result {
  bool is_broken = false;
  std::string rule, how;
  Nanos at = 0;
  uint64_t hash = 0;
  Nanos simulated = 0;
  Stats stats;

  // Why this run does not count; empty if it does.
  std::string what_is_missing(const Plan &plan) const;
};

class World {
 public:
  World(const Plan &plan, const Mutant *mutant, FILE *words);
  ~World();

  Result run();

 private:
  // world.cc
  std::unique_ptr<Checker> make_checker(const Mutant *mutant);
  void run_until(Nanos end);
  void populate(int slot);
  void watch();
  void check_waits();
  void end_work();
  void end_everything();
  bool is_quiet() const;
  void hand_over(int from, const GivenLease &given);

  // faults.cc
  void schedule_fault();
  void inject();
  void inject_into_client(Fault fault);
  void inject_into_node(Fault fault);
  void inject_into_node(Fault fault, size_t node);
  void strike_opening(int slot, size_t node);
  void break_connection(Fault fault, Client &client, size_t node);
  void pause(Client &client);
  void part(Fault fault, Client &client);
  void part_from(Client &client, const std::vector<size_t> &nodes, bool is_up, bool is_down,
                 Nanos until);
  void kill(int slot, Fault fault);
  void shut_down(Client &client);
  void kill_newcomer();
  void kill_crowd();
  void forge();
  void silence(Fault fault);
  void hide_restart(size_t node);
  void bring_down(Fault fault, size_t node);
  void crash(size_t node, Nanos down_for, Fault fault);
  void forget(size_t node);
  void step_clock(Fault fault, size_t node);
  Client *any_client();
  size_t any_node() { return random_.below(static_cast<size_t>(plan_.node_count)); }
  size_t few() const { return static_cast<size_t>(plan_.minority()); }
  std::vector<size_t> some_nodes(size_t count);
  void calm();

  const Plan plan_;
  Schedule schedule_;
  Stats stats_;
  Trace trace_;
  Verdict verdict_;
  Network network_;
  Beliefs beliefs_;
  std::vector<std::unique_ptr<Server>> servers_;
  const std::unique_ptr<Checker> checker_;
  std::vector<Slot> slots_;
  Context context_;
  Random random_;               // for the faults
  Random shutdowns_;            // in place of crashes
  const int64_t bytes_before_;  // memory of the core before the run
  Nanos worked_until_ = 0;      // end of the simulation; later times are only skipped to
  Nanos second_ = 0;            // the current second, and the events before it
  uint64_t events_before_ = 0;
  std::vector<size_t> gone_;  // nodes that do not come back
  std::vector<std::unique_ptr<Peer>> peers_;
  std::unique_ptr<Group> group_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Passwords> passwords_;
};

}  // namespace redlatch::sim
