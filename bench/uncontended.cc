// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// One thread takes and gives back a lock that nobody else wants.
//
//   port scripts     the server, and the folder of the composed scripts
//   rounds cycles    each round: fresh keys, so many cycles of each candidate
//   blocks           into which these are cut, taking turns: a disturbance hits everybody alike
//   warmup           seconds before the first round
//   only             all, or one candidate (for counting its instructions)
//   held             permits of round 1 that others have
//
// Prints for each round and candidate the p50 and p99 in us, and the CPU time of this process.
#include <memory>
#include <string>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

constexpr int kLimit = 20'000;

struct Candidate {
  std::string name;
  std::function<void()> cycle;
  Samples samples;
  double cpu_us = 0;
};

class Uncontended {
 public:
  explicit Uncontended(const Arguments &arguments)
      : raw_(arguments.count("port")),
        scripts_(raw_, arguments.text("scripts")),
        plain_(raw_),
        client_(open_client(arguments.count("port"))),
        only_(arguments.text("only")) {
    for (int i = 0; i < arguments.count("held", 0); i++) {
      held_.push_back(acquire(client_, permits_of(1), permit_));
    }
  }

  void start_round(int number) {
    // The names have one slot of a cluster.
    const std::string name = "{uncontended}-" + std::to_string(number);
    candidates_.clear();
    add("ping", [this] { raw_.call(ping_); });
    add("plain", [this, cycle = plain_.cycle_of(name + "p")] { PlainLock::run(raw_, cycle); });
    add("scripts",
        [this, cycle = scripts_.cycle_of(name + "s")] { LockScripts::run(raw_, cycle); });
    add("library", [this, name = name + "l"] { release(acquire(client_, name)); });
    add("permit", [this, name = permits_of(number)] { release(acquire(client_, name, permit_)); });
    add("eight", [this, names = eight(name)] { release(acquire_all(client_, names)); });
  }

  void run_block(int cycles, size_t first) {
    for (size_t i = 0; i < candidates_.size(); i++) {
      Candidate &candidate = candidates_[(first + i) % candidates_.size()];
      const Usage before = Usage::so_far();
      for (int k = 0; k < cycles; k++) {
        const Nanos start = now();
        candidate.cycle();
        candidate.samples.add(now() - start);
      }
      candidate.cpu_us += Usage::so_far().since(before).cpu_us;
    }
  }

  Result take_round() {
    Result row;
    for (Candidate &candidate : candidates_) {
      const auto count = static_cast<double>(candidate.samples.size());
      row.add(candidate.name + "_p50_us", candidate.samples.us(0.5));
      row.add(candidate.name + "_p99_us", candidate.samples.us(0.99));
      row.add(candidate.name + "_cpu_us", candidate.cpu_us / count);
    }
    return row;
  }

 private:
  void add(const std::string &name, std::function<void()> cycle) {
    if (only_ == "all" || only_ == name) candidates_.push_back({name, std::move(cycle), {}});
  }

  static std::string permits_of(int number) {
    return "{uncontended}-" + std::to_string(number) + "permits";
  }

  static std::shared_ptr<rl_names> eight(const std::string &name) {
    const std::shared_ptr<rl_names> names(rl_names_new(), rl_names_free);
    for (char c = '1'; c <= '8'; c++) {
      const std::string one = name + "e" + c;
      if (rl_names_add(names.get(), one.data(), one.size(), RL_MODE_WRITE, nullptr) != RL_OK) {
        die("a name was refused");
      }
    }
    return names;
  }

  static LeasePtr acquire_all(const ClientPtr &client, const std::shared_ptr<rl_names> &names) {
    LeasePtr lease(rl_acquire_all(client.get(), names.get(), kWaitMs, nullptr, nullptr));
    if (!lease) die("eight names were not acquired");
    return lease;
  }

  Raw raw_;
  const LockScripts scripts_;
  const PlainLock plain_;
  const ClientPtr client_;
  const OptionsPtr permit_ = permit_of(kLimit);
  std::vector<LeasePtr> held_;  // other permits of the name of the first round
  const std::string only_;
  const std::string ping_ = command({"PING"});
  std::vector<Candidate> candidates_;
};

void measure(const Arguments &arguments) {
  Uncontended uncontended(arguments);
  const int blocks = arguments.count("blocks");
  const int cycles = arguments.count("cycles") / blocks;
  uncontended.start_round(0);
  const Nanos warm_at = now() + arguments.duration("warmup");
  while (now() < warm_at) uncontended.run_block(100, 0);
  Result result;
  for (int round = 1; round <= arguments.count("rounds"); round++) {
    uncontended.start_round(round);
    for (int i = 0; i < blocks; i++) uncontended.run_block(cycles, static_cast<size_t>(i));
    result.add_row(uncontended.take_round());
  }
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
